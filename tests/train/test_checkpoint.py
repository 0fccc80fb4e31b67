"""Checkpoints: written whole or not at all, read back, and taken as first weights."""

import hashlib
import re
from pathlib import Path

import pytest
import torch
from small_runs import metrics, small

from lbq_hw import datasets
from lbq_hw.train import checkpoint, fitting, loop
from lbq_hw.train.checkpoint import CheckpointError, load_run
from lbq_hw.train.data import DeviceLoader
from lbq_hw.train.settings.config import Config


@pytest.mark.parametrize("changes", [(), ("train.weight_bits=4",), ("train.ema=0.5",)])
def test_a_run_that_is_loaded_classifies_as_its_metrics_say(tmp_path, changes):
    loop.train(small("train.epochs=2", *changes), tmp_path)
    for loaded, which in (
        (load_run(tmp_path), "last"),
        (load_run(tmp_path, "best"), "best"),
    ):
        model, chosen, spec = loaded
        index = checkpoint.index(tmp_path, which)
        assert chosen == small("train.epochs=2", *changes)
        assert which == "best" or index["epoch"] == 2
        assert not model.training
        tests = DeviceLoader(datasets.load("digits", split="test"), spec, batch=500)
        assert fitting.evaluate(model, tests) == index["accuracy"]


def test_fine_tuning_starts_from_the_weights_of_another_run(tmp_path):
    loop.train(small("train.epochs=2"), tmp_path / "float")
    source = checkpoint.load(tmp_path / "float", "last")["model"]
    spec = load_run(tmp_path / "float")[2]
    init = str(tmp_path / "float")
    tuned = checkpoint.build(small("train.weight_bits=4"), spec, 10, init=init)
    steps = [name for name in tuned.state_dict() if name not in source]
    assert steps
    assert all(name.endswith(".step") for name in steps)
    assert all(torch.equal(tuned.state_dict()[name], source[name]) for name in source)
    fresh = checkpoint.build(small("train.weight_bits=4"), spec, 10)
    assert not torch.equal(tuned.state_dict()[steps[0]], fresh.state_dict()[steps[0]])
    result = loop.train(small("train.weight_bits=4", f"train.init={init}"), tmp_path / "tuned")
    assert result["loss"] < metrics(tmp_path / "float")[-1]["loss"]


def test_steps_of_the_same_width_are_taken_over_too_and_another_network_is_refused(tmp_path):
    loop.train(small("train.epochs=1", "train.weight_bits=4"), tmp_path)
    source = checkpoint.load(tmp_path, "last")["model"]
    spec = load_run(tmp_path)[2]
    tuned = checkpoint.build(small("train.weight_bits=4"), spec, 10, init=str(tmp_path))
    assert all(torch.equal(tuned.state_dict()[name], source[name]) for name in source)
    message = f"train.init = '{tmp_path}' holds another network than this configuration's"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.build(small("model.channels=[4, 6]"), spec, 10, init=str(tmp_path))


@pytest.mark.parametrize("bits", [0, 4])
def test_a_run_of_other_classes_gives_all_weights_but_those_of_its_readout(tmp_path, bits, capsys):
    loop.train(small("train.epochs=1", f"train.weight_bits={bits}"), tmp_path)
    source = checkpoint.load(tmp_path, "last")["model"]
    spec = load_run(tmp_path)[2]
    capsys.readouterr()
    tuned = checkpoint.build(small("train.weight_bits=4"), spec, 7, init=str(tmp_path))
    found = tuned.state_dict()
    assert found["fc.weight"].shape[0] == 7
    assert bool(found["fc.weight"].count_nonzero())
    others = [name for name in source if not name.startswith("fc.")]
    assert all(torch.equal(found[name], source[name]) for name in others)
    told = f"train.init = '{tmp_path}' has other classes: its layer fc is not loaded"
    assert told in " ".join("".join(capsys.readouterr()).split())
    message = f"train.init = '{tmp_path}' holds another network than this configuration's"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.build(small("model.channels=[4, 6]"), spec, 7, init=str(tmp_path))


def state(epoch: int) -> dict:
    torch.manual_seed(epoch)
    weights = {"a": torch.rand(600_000), "b": torch.arange(3)}
    shown = {"epoch": epoch, "accuracy": 0.5, "split": "test", "revision": "r", "config": {}}
    return shown | {"model": weights}


def test_a_checkpoint_in_parts_reads_as_written_and_keeps_no_older_part(tmp_path):
    for epoch in (1, 2):
        checkpoint.save(tmp_path, "last", state(epoch), shard_mib=1)
    *parts, index = sorted(path.name for path in tmp_path.iterdir())
    assert [re.sub("-[0-9a-f]{8}", "", name) for name in parts] == [
        f"last-0002.00{k}.part" for k in range(3)
    ]
    assert index == "last.json"
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.part"))]
    assert sizes[:2] == [2**20] * 2
    loaded, written = checkpoint.load(tmp_path, "last"), state(2)
    assert loaded.keys() == written.keys()
    assert torch.equal(loaded["model"]["a"], written["model"]["a"])
    checkpoint.save(tmp_path, "last", state(3))
    archive, index = sorted(tmp_path.iterdir())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert archive.name == f"last-0003-{digest[:8]}.pt"
    assert torch.load(archive, weights_only=True)["epoch"] == 3


def test_a_checkpoint_whose_parts_have_other_names_is_read(tmp_path):
    checkpoint.save(tmp_path, "last", state(1))
    archive, index = sorted(tmp_path.iterdir())
    text = index.read_text(encoding="utf-8").replace(archive.name, "last-0001.pt")
    index.write_text(text, encoding="utf-8")
    archive.rename(tmp_path / "last-0001.pt")
    assert checkpoint.load(tmp_path, "last")["epoch"] == 1


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_save_that_fails_midway_leaves_the_previous_checkpoint(tmp_path, monkeypatch, epoch):
    checkpoint.save(tmp_path, "last", state(1), shard_mib=1)
    other = state(epoch)
    other["model"]["a"] += 1
    replace_, moves = Path.replace, []

    def failing(self, target):
        moves.append(target)
        if len(moves) == 2:
            raise KeyboardInterrupt
        return replace_(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, "last", other, shard_mib=1)
    loaded = checkpoint.load(tmp_path, "last")
    assert loaded["epoch"] == 1
    assert torch.equal(loaded["model"]["a"], state(1)["model"]["a"])
    assert not list(tmp_path.glob("*.tmp"))


def test_a_damaged_or_missing_checkpoint_is_an_error(tmp_path):
    message = f"{tmp_path} holds no checkpoint 'last': {tmp_path / 'last.json'} is missing"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.load(tmp_path, "last")
    checkpoint.save(tmp_path, "last", state(1), shard_mib=1)
    (part,) = tmp_path.glob("last-0001-*.001.part")
    data = bytearray(part.read_bytes())
    data[7] ^= 1
    part.write_bytes(data)
    index = tmp_path / "last.json"
    message = f"{part} is damaged: its digest differs from the one in {index}"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.load(tmp_path, "last")
    part.unlink()
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{part}, a part of checkpoint ')}'last', is missing$"
    ):
        checkpoint.load(tmp_path, "last")
    index.write_text('{"format": 9, "parts": []}', encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{index} has format 9, and this code reads 1')}$"
    ):
        checkpoint.load(tmp_path, "last")
    index.write_text("[]", encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{index} is not the index of a checkpoint')}$"
    ):
        checkpoint.load(tmp_path, "last")


def test_a_checkpoint_names_its_configuration_and_the_revision_of_the_code(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path)
    index = checkpoint.index(tmp_path, "last")
    assert Config.from_dict(index["config"]) == small("train.epochs=1")
    assert index["revision"] == checkpoint.revision()
    assert re.fullmatch(r"unknown|[0-9a-f]{40}(-dirty)?", index["revision"])
