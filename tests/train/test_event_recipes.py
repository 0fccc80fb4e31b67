"""The paper's event recipes from official files to an integer network, scaled down."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recordings import write_cifar10_dvs, write_gestures

from lbq_hw import evaluate, file
from lbq_hw.datasets import events
from lbq_hw.train import command, export
from lbq_hw.train.settings import config

SCALE = (
    "train.epochs=1",
    "train.warmup_epochs=0.5",
    "train.batch=6",
    "train.amp=off",
    "train.device=cpu",
    "data.size=16",
    "model.widths=[2, 2, 4]",
    "model.stem_stride=2",
)


def gestures(folder: Path) -> None:
    trials = {"train": ["user01_fluorescent", "user02_led"], "test": ["user24_natural"]}
    write_gestures(folder, trials, count=300)


def pictures(folder: Path) -> None:
    write_cifar10_dvs(folder, per_class=3, count=300)


@pytest.mark.parametrize(
    ("name", "write", "count", "frames"),
    [
        pytest.param("dvs128-gesture-resnet19", gestures, 11, 16, marks=pytest.mark.slow),
        ("cifar10-dvs-resnet20", pictures, 10, 10),
    ],
)
def test_a_recipe_goes_from_official_files_to_integers(
    tmp_path, monkeypatch, capsys, name, write, count, frames
):
    """Of the recipe stay frames, neurons, optimizer, mixup, smoothed labels and depth; one epoch of
    a narrow network on small frames is trained, exported and tested as integers."""
    monkeypatch.setattr(events, "_CIFAR10_DVS_PER_CLASS", 3)
    monkeypatch.setattr(events, "_CIFAR10_DVS_TRAIN", 2)
    data, run, net = tmp_path / "data", tmp_path / "run", tmp_path / "net.lbq"
    data.mkdir()
    write(data)
    changes = [*SCALE, "model.head=4"] if "resnet19" in name else [*SCALE]
    options = [word for change in changes for word in ("--set", change)]
    assert command.main(["--config", name, "--data", str(data), "--out", str(run), *options]) == 0
    chosen = config.load(name, changes)
    assert (chosen.neuron.timesteps, chosen.augment.mixup) == (frames, 0.5)
    assert (chosen.train.optimizer, chosen.train.label_smoothing) == ("adamw", 0.1)
    line = json.loads((run / "metrics.jsonl").read_text())
    assert np.isfinite(line["loss"])
    assert export.main([str(run), "--data", str(data), "--out", str(net)]) == 0
    network = file.load(net)
    assert (network.timesteps, network.input.shape) == (frames, (2, 16, 16))
    capsys.readouterr()
    assert evaluate.main(["--model", str(net), "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == count
