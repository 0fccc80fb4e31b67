"""The command: what it prints, and its exit codes."""

import re

import pytest
from python_batches import batch, publish
from small_runs import SMALL, metrics

from lbq_hw.train import command, models, neurons
from lbq_hw.train.settings import config, keys
from lbq_hw.train.settings.schema import flat

COMMAND = "python -m train --resume --out"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a configuration with --config (--list shows them, --help explains)"),
        (
            ["--config", "digits", "--set", "train.epoch=3"],
            "train.epoch is not a configuration key (nearest: train.epochs)",
        ),
        (
            ["--config", "digits", "--set", "train.device=tpu9"],
            "train.device must be auto, cpu or cuda, not 'tpu9'",
        ),
        (
            ["--config", "digits", "--set", "train.batch=5000", "--set", "train.device=cpu"],
            "batch must be at most 1438 with drop_last, not 5000",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, message, tmp_path, capsys):
    out = ["--out", str(tmp_path / "run")] if arguments else []
    assert command.main([*arguments, *out]) == 2
    assert capsys.readouterr() == ("", f"error: {message}\n")
    assert not (tmp_path / "run").exists()


def test_a_process_that_is_not_the_first_says_which_it_is(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert command.main([]) == 2
    assert capsys.readouterr().err.startswith("error: rank 1: name a configuration with --config ")


def test_a_folder_without_the_dataset_is_one_sentence_too(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--data", str(tmp_path / "none")]
    assert command.main(["--config", "mnist", "--set", "train.device=cpu", *out]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: there is no folder {tmp_path / 'none'}; ")
    assert captured.err.count("\n") == 1


def test_the_command_trains_prints_a_line_an_epoch_and_says_how_it_ended(tmp_path, capsys):
    words = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", *words, "--out", str(tmp_path)]
    assert command.main([*arguments, "--max-seconds", "0"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[0].startswith("epoch 1/3  loss ")
    again = f"{COMMAND} {tmp_path} --max-seconds 0"
    assert shown[1] == f"stopped after epoch 1 of 3; go on with: {again}"
    assert command.main(["--resume", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line[:9] for line in shown[:2]] == ["epoch 2/3", "epoch 3/3"]
    last = metrics(tmp_path)[-1]["test_accuracy"]
    assert shown[2].startswith(
        f"{last:.2f} % of the test images at the last epoch (best epoch, chosen on these images: "
    )


def test_the_command_trains_on_the_folder_that_torchvision_made(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "data" / "cifar-100-python"
    folder.mkdir(parents=True)
    for seed, split in enumerate(("train", "test")):
        data, _, _ = batch(4, seed, fine=True)
        (folder / split).write_bytes(data)
        publish(monkeypatch, "cifar100", split, {split: data})
    changes = ["train.epochs=1", "train.batch=2", "train.device=cpu", "train.amp=off"]
    changes += ["model.widths=[2, 2, 2]", "model.stem_stride=2"]
    words = [word for change in changes for word in ("--set", change)]
    arguments = ["--config", "cifar100-resnet20-t1", *words, "--data", str(folder.parent)]
    assert command.main([*arguments, "--out", str(tmp_path / "run")]) == 0
    assert (
        " % of the test images at the last epoch (best epoch, chosen on these images: "
        in capsys.readouterr().out
    )


def test_the_help_has_every_key_with_its_default_and_meaning(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    shown = capsys.readouterr().out
    values = config.load("digits").to_dict()
    values["train"]["layer_bits"] = "a table, which is empty here"
    assert [key.name for key in keys.every()] == list(flat(values))
    for key in keys.every():
        assert key.meaning
        assert re.search(rf"^  {re.escape(key.name)} .*{re.escape(key.meaning)}$", shown, re.M)
    assert '  train.optimizer = "sgd"          sgd or adamw\n' in shown
    assert "  train.epochs (needed)            passes over the training images\n" in shown
    assert "  neuron.beta                      decay\n" in shown


def test_the_choices_in_a_meaning_are_all_there_are():
    meanings = {key.name: re.split(", | or ", key.meaning) for key in keys.every()}
    assert sorted(meanings["model.name"]) == sorted(models.MODELS)
    assert sorted(meanings["neuron.kind"]) == sorted(neurons.KINDS)


def test_the_command_lists_what_is_shipped(capsys):
    assert command.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(config.shipped())
