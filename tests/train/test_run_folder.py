"""What lies in a run's folder is neither lost nor resumed with other settings by accident."""

import re

import pytest
import torch
from small_runs import SMALL, interrupted_at, metrics, small

from lbq_hw.train import checkpoint, command, loop
from lbq_hw.train.run_folder import RunError


def test_a_run_is_not_overwritten_nor_resumed_otherwise_unless_asked(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path)
    message = f"{tmp_path} holds a run: add --resume, --overwrite or another --out"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.epochs=1"), tmp_path)
    message = f"{tmp_path} was trained with train.seed = 0, not 1: to resume it, keep these"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.epochs=1", "train.seed=1"), tmp_path, resume=True)
    loop.train(small("train.epochs=1", "train.seed=1"), tmp_path, overwrite=True)
    assert checkpoint.index(tmp_path, "last")["config"]["train"]["seed"] == 1
    assert len(metrics(tmp_path)) == 1


def test_what_is_left_of_a_run_without_a_checkpoint_is_not_lost_either(
    tmp_path, monkeypatch, capsys
):
    seldom = small("train.save_every=9")
    with interrupted_at(8, monkeypatch), pytest.raises(KeyboardInterrupt):
        loop.train(seldom, tmp_path)
    assert not (tmp_path / "last.json").exists()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert len(metrics(tmp_path)) == 1
    words = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", *words, "--out", str(tmp_path)]
    assert command.main(arguments) == 2
    message = f"{tmp_path} holds a run: add --overwrite or another --out"
    assert capsys.readouterr() == ("", f"error: {message}\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert command.main([*arguments, "--resume"]) == 0  # nothing to go on from: begun again
    assert capsys.readouterr().out.startswith(f"{tmp_path} holds no checkpoint yet: a new run")
    assert [line["epoch"] for line in metrics(tmp_path)] == [1, 2, 3]


def test_a_run_interrupted_in_its_first_epoch_leaves_nothing_to_lose(tmp_path, monkeypatch):
    with interrupted_at(2, monkeypatch), pytest.raises(KeyboardInterrupt):
        loop.train(small(), tmp_path)
    assert loop.train(small("train.epochs=1"), tmp_path)["finished"]


def test_a_run_that_is_resumed_under_another_torch_says_that_it_may_not_repeat(tmp_path, capsys):
    loop.train(small("train.epochs=1"), tmp_path)
    state = checkpoint.load(tmp_path, "last")
    capsys.readouterr()
    loop.train(small("train.epochs=1"), tmp_path, resume=True)
    assert "may differ" not in "".join(capsys.readouterr())
    checkpoint.save(tmp_path, "last", state | {"torch": "2.0.0"})
    loop.train(small("train.epochs=1"), tmp_path, resume=True)
    shown = " ".join("".join(capsys.readouterr()).split())
    assert shown == (
        f"warning: {tmp_path} was trained with torch 2.0.0, and this is {torch.__version__}: its "
        "next epochs may differ in their last bits"
    )
