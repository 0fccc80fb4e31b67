"""Counts on the device equal those of golden; and the command that writes them."""

import json
import math

import numpy as np
import pytest
import torch

from lbq_hw import evaluate, file, golden, zoo
from lbq_hw.datasets.fitting import Samples
from lbq_hw.network import INPUT
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.train import analyze, measure
from lbq_hw.train.__main__ import main as train_main
from lbq_hw.train.export import main as export_main


def samples(raw, labels):
    return Samples(name="random", images=raw, labels=labels)


def expected_report(network, raw, labels):
    evaluation = evaluate.evaluate(network, raw, labels)
    return evaluate.report("net", network, samples(raw, labels), evaluation)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_network_measures_as_golden_counts_it(seed):
    network = random_network(seed)
    raw = random_images(network, 3, seed)
    labels = np.random.default_rng(seed).integers(0, network.classes, 3)
    found = measure.measure(network, raw, labels, batch=2)
    result = measure.report("net", network, samples(raw, labels), found)
    expected = expected_report(network, raw, labels)
    layers = result.pop("layers")
    result.pop("levels", None)
    for layer, wanted in zip(layers, expected.pop("layers"), strict=True):
        assert {key: layer[key] for key in wanted} == wanted
    assert result == expected


def test_the_random_networks_have_every_kind_of_tensor():
    networks = [random_network(seed) for seed in range(40)]
    assert {network.input.static for network in networks} == {True, False}
    layers = [layer for network in networks for layer in network.layers]
    assert {layer.pool is None for layer in layers} == {True, False}
    paths = [path for layer in layers for path in layer.paths]
    assert {path.is_identity for path in paths} == {True, False}
    assert {path.pool is None for path in paths} == {True, False}


@pytest.mark.parametrize("name", zoo.names())
def test_a_network_of_the_zoo_measures_as_golden_counts_it(name):
    network = file.load(zoo.find(name))
    raw, labels = random_images(network, 2), np.array([0, 1])
    found = measure.measure(network, raw, labels)
    assert found.evaluation == evaluate.evaluate(network, raw, labels)
    assert measure.compare_with_golden(network, raw, found) == {"images": 2, "logits_equal": True}


def test_the_use_of_levels_follows_from_golden():
    network = random_network(3, static=False, timesteps=3, capacity=5)
    raw = random_images(network, 4)
    found = measure.measure(network, raw, np.zeros(4, np.int64), batch=3)
    traces = golden.run(network, raw, keep="levels").traces
    result = measure.report("net", network, samples(raw, None), found)
    for layer in result["layers"][:-1]:
        levels = traces[layer["name"]].levels
        for t, row in enumerate(layer["histogram"]):
            assert row == [int((levels[t] == k).sum()) for k in range(6)]
        assert layer["popcount"] == np.bitwise_count(levels).mean()
        assert layer["active_ratio"] == layer["active"]
    assert "histogram" not in result["layers"][-1]


def test_a_logit_that_differs_is_named():
    network = random_network(0)
    raw = random_images(network, 3)
    found = measure.measure(network, raw, np.zeros(3, np.int64))
    found.logits[1, 0] += 1
    with pytest.raises(ValueError, match=r"^logits must equal golden's, and those of image 1 do"):
        measure.compare_with_golden(network, raw, found)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    options = ["--config", "digits", "--set", "train.epochs=1", "--out", str(folder)]
    assert train_main(options) == 0
    assert export_main([str(folder), "--out", str(folder / "net.lbq")]) == 0
    return folder


def test_the_command_writes_what_the_run_and_the_network_say(run, tmp_path, capsys):
    out = tmp_path / "new" / "net.json"
    options = ["--limit", "60", "--compare-golden", "7", "--run", str(run), "--out", str(out)]
    assert measure.main([str(run / "net.lbq"), *options]) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    assert (result["model"], result["images"], result["weight_bits"]) == ("net.lbq", 60, 8)
    assert result["golden"] == {"images": 7, "logits_equal": True}
    assert analyze.main([str(run), "--limit", "60", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["float"] == {key: printed[key] for key in ("images", "accuracy", "summary")}
    by_name = {layer["name"]: layer for layer in printed["layers"]}
    for layer in result["layers"][:-1]:
        assert layer["lambda"] == by_name[layer["name"]]["lambda"]
        assert math.isclose(layer["gamma"], by_name[layer["name"]]["gamma"])
    assert result["layers"][-1]["name"] == "logits"
    assert result["levels"].keys() == printed["summary"].keys()


def test_a_run_of_another_network_is_refused(run, tmp_path, capsys):
    options = ["--limit", "5", "--run", str(run), "--out", str(tmp_path / "x.json")]
    assert measure.main(["digits", *options]) == 2
    assert capsys.readouterr().err == (
        f"error: {run} must be the run that the network was exported from, and the gamma "
        "of its layer 'layers.0.neuron' is not the network's\n"
    )
    assert not (tmp_path / "x.json").exists()


def test_a_missing_network_is_one_sentence(tmp_path, capsys):
    net = tmp_path / "none.lbq"
    assert measure.main([str(net), "--out", str(tmp_path / "x.json")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("option", ["--limit", "--batch", "--compare-golden"])
def test_a_count_of_none_is_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        measure.main(["digits", option, "0", "--out", "x.json"])
    assert f"argument {option}: must be at least 1, not 0" in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_gpu_measures_what_the_cpu_does():
    network = random_network(1)
    raw = random_images(network, 5)
    here, there = (
        measure.measure(network, raw, np.zeros(5, np.int64), device=device)
        for device in ("cpu", "cuda")
    )
    assert here.evaluation == there.evaluation
    np.testing.assert_array_equal(here.logits, there.logits)
    assert INPUT not in here.histograms
    for name, histogram in here.histograms.items():
        np.testing.assert_array_equal(histogram, there.histograms[name])
