"""What users bring, at the size that they bring it: networks that are trained for a minute."""

from __future__ import annotations

import json
from pathlib import Path

import nir
import numpy as np
import pytest
import torch
from foreign import SPEC, STANDARDIZED, TIMESTEPS, digits, emitted, per_neuron, trained
from simulators import needs_verilator
from small_runs import metrics
from snntorch.export_nir import export_to_nir

from lbq_hw import golden
from lbq_hw.evaluate import main as evaluate
from lbq_hw.train.command import main as train
from lbq_hw.train.export import integer_network
from lbq_hw.train.export import main as export
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.nir.__main__ import main as read_nir
from tests.digit_pictures import WORDS, whitened, write

pytestmark = pytest.mark.slow
RECIPE = ("train.epochs=12", "train.device=cpu", "model.channels=[8, 8]")
PICTURES = ("data.name=images", "data.size=8", "data.channels=1")


def arrays(path: Path, values: str) -> Path:
    """The digits in the order of their classes: raw, of 0 to 16, or 0 to 255, whole or clipped."""
    found = {}
    for split in ("train", "test"):
        data = digits(split)
        order = np.argsort(data.labels, kind="stable")
        images = data.images[order] if values == "raw" else whitened(data.images[order])
        images = np.minimum(images, 31) if values == "clipped" else images
        found |= {f"{split}_images": images, f"{split}_labels": data.labels[order]}
    np.savez(path, **found)
    return path


def learned(out: Path, data: Path, *changes: str) -> list[dict]:
    sets = [word for change in (*RECIPE, *changes) for word in ("--set", change)]
    assert train(["--config", "digits-t1", *sets, "--data", str(data), "--out", str(out)]) == 0
    return metrics(out)


def test_pictures_of_digits_train_as_their_values_do_and_better_than_clipped_ones(
    tmp_path: Path,
) -> None:
    for split in ("train", "test"):
        write(tmp_path / "png" / split, split=split)
    pictures = learned(tmp_path / "a", tmp_path / "png", *PICTURES)
    raw = arrays(tmp_path / "raw.npz", "raw")
    assert pictures == learned(tmp_path / "b", raw, "data.name=npz")
    clipped = arrays(tmp_path / "clipped.npz", "clipped")
    worse = learned(tmp_path / "c", clipped, "data.name=npz")
    found, least = (run[-1]["test_accuracy"] for run in (pictures, worse))
    assert found > 96
    assert found > least + 3
    print(f"PNGs and raw values: {found:.2f} %, clipped values: {least:.2f} %")


@needs_verilator
def test_folders_with_names_of_their_own_are_trained_exported_and_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for split in ("train", "test"):
        write(tmp_path / "words" / split, WORDS, split=split)
    data = str(tmp_path / "words")
    learned(tmp_path / "run", tmp_path / "words", *PICTURES)
    model = str(tmp_path / "net.lbq")
    capsys.readouterr()
    assert export([str(tmp_path / "run"), "--out", model, "--data", data, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["accuracies"]
    assert table["simulated"]["equal"] is True
    assert table["simulated"]["board"] == table["simulated"]["integer"]
    assert evaluate(["--model", model, "--data", data, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["accuracy"]
    assert found > 94
    print(f"folders zero..nine: {found:.2f} %")


@needs_verilator
@pytest.mark.filterwarnings("ignore:nirtorch.extract_nir_graph:DeprecationWarning")
def test_a_graph_is_imported_with_four_bits_of_pixels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = trained("snntorch subtract", epochs=16)
    one = SPEC.normalize(torch.from_numpy(digits("train").images[:1]))
    graph = export_to_nir(per_neuron(net, "subtract"), one, ignore_dims=[0])
    nir.write(tmp_path / "net.nir", graph)
    data = arrays(tmp_path / "mine.npz", "whole")
    words = [str(tmp_path / "net.nir"), "--dataset", "npz", "--data", str(data), "--reset", "late"]
    words += ["--timesteps", str(TIMESTEPS), "--input-bits", "4", "--test", "359", "--json"]
    assert read_nir(words) == 0
    facts = json.loads(capsys.readouterr().out)["accuracies"]
    assert min(facts["float"], facts["integer"]) > 94
    assert facts["simulated"]["equal"] is True
    print(f"--input-bits 4: graph {facts['float']:.2f} %, network {facts['integer']:.2f} %")


def test_standardized_layers_have_their_accuracy_as_integers() -> None:
    net, test = trained(STANDARDIZED, epochs=7), digits("test")
    with torch.no_grad():
        spikes = emitted(net, SPEC.normalize(torch.from_numpy(test.images))).sum(0)
    theirs = float(np.mean(spikes.argmax(1).numpy() == test.labels))
    model = adopt(net, timesteps=TIMESTEPS, static=True)
    network = integer_network(model, SPEC, samples=digits("train").images[:32])
    ours = float(np.mean(golden.predict(network, test.images) == test.labels))
    assert theirs > 0.92
    assert abs(ours - theirs) < 0.01
    print(f"WSConv2d, WSLinear: {100 * theirs:.2f} % in SpikingJelly, {100 * ours:.2f} % here")
