"""The command: what it prints, and its exit codes."""

import pytest
from small_runs import SMALL, metrics

from train import command, config

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
    assert capsys.readouterr() == ("", f"train: {message}\n")
    assert not (tmp_path / "run").exists()


def test_a_process_that_is_not_the_first_says_which_it_is(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert command.main([]) == 2
    assert capsys.readouterr().err.startswith("train (rank 1): name a configuration with --config ")


def test_a_folder_without_the_dataset_is_one_sentence_too(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--data", str(tmp_path / "none")]
    assert command.main(["--config", "mnist", "--set", "train.device=cpu", *out]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"train: {tmp_path / 'none'}")
    assert captured.err.count("\n") == 1


def test_the_command_trains_prints_a_line_an_epoch_and_says_how_it_ended(tmp_path, capsys):
    words = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", *words, "--out", str(tmp_path)]
    assert command.main([*arguments, "--data", "my data", "--max-seconds", "0"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[0].startswith("epoch 1/3  loss ")
    again = f"{COMMAND} {tmp_path} --data 'my data' --max-seconds 0"
    assert shown[1] == f"stopped after epoch 1 of 3; go on with: {again}"
    assert command.main(["--resume", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line[:9] for line in shown[:2]] == ["epoch 2/3", "epoch 3/3"]
    last = metrics(tmp_path)[-1]["test_accuracy"]
    assert shown[2].startswith(f"{last:.2f} % at the last epoch (best ")


def test_the_command_lists_what_is_shipped(capsys):
    assert command.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(config.shipped())
