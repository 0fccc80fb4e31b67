"""Layer figures: the numbers by hand, and a whole run from checkpoint to pictures."""

import json
import math

import numpy as np
import pytest
import torch

from lbq_hw import datasets
from lbq_hw.train import analyze, figures
from lbq_hw.train.__main__ import main as train_main
from lbq_hw.train.checkpoint import load_run
from lbq_hw.train.data import DeviceLoader


def test_facts_follow_from_the_counts():
    facts = analyze.layer_facts(np.array([[6, 1, 1, 0], [2, 1, 1, 0]]))
    assert facts["active_ratio"] == 4 / 12
    assert facts["distribution"] == [0.5, 0.5, 0.0]
    assert facts["entropy"] == pytest.approx(math.log(2) / math.log(3), rel=1e-12)


def test_uniform_levels_have_entropy_one_and_a_silent_layer_zero():
    assert analyze.layer_facts(np.array([[5, 2, 2, 2]]))["entropy"] == pytest.approx(1.0)
    silent = analyze.layer_facts(np.array([[9, 0, 0, 0]]))
    assert (silent["active_ratio"], silent["entropy"]) == (0.0, 0.0)


def test_a_binary_layer_has_no_entropy_to_speak_of():
    assert analyze.layer_facts(np.array([[1, 1]]))["entropy"] == 0.0


def test_the_summary_is_the_mean_over_layers():
    rows = [
        {"gamma": 1.0, "active_ratio": 0.1, "entropy": 0.5, "distribution": [1.0, 0.0]},
        {"gamma": 3.0, "active_ratio": 0.3, "entropy": 0.7, "distribution": [0.5, 0.5]},
    ]
    summary = analyze.summarize(rows)
    assert summary == pytest.approx(
        {
            "gamma_min": 1.0,
            "gamma_max": 3.0,
            "gamma_cv": 0.5,
            "active_ratio": 0.2,
            "entropy": 0.6,
            "p_first_level": 0.75,
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    options = ["--config", "digits", "--set", "train.epochs=1", "--out", str(folder)]
    assert train_main(options) == 0
    return folder


def test_a_run_becomes_json_and_three_pictures(run, capsys):
    capsys.readouterr()
    assert analyze.main([str(run), "--limit", "64", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((run / "analysis" / "analysis.json").read_text())
    assert printed["images"] == 64
    assert [layer["name"] for layer in printed["layers"]][-1] == "residual.neuron"
    for layer in printed["layers"]:
        counts = np.array(layer["histogram"])
        assert counts.shape == (2, 6)
        assert counts.sum() % (2 * 64) == 0
    last = printed["layers"][-1]  # read by the linear layer, 16 x 4 x 4 to 10
    mean, bits = (
        np.array(last["histogram"]).sum(0) @ weights / np.array(last["histogram"]).sum()
        for weights in ([0, 1, 2, 3, 4, 5], [0, 1, 1, 2, 1, 2])
    )
    assert last["acs_unary"] == pytest.approx(2 * 2560 * mean, rel=1e-12)
    assert last["acs_bit_sparse"] == pytest.approx(2 * 2560 * bits, rel=1e-12)
    assert printed["acs_unary"] == sum(layer["acs_unary"] for layer in printed["layers"])
    for name in figures.FIGURES:
        assert (run / "analysis" / name).read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A folder for commands to run in, with the packed recordings in data/nmnist."""
    folder = tmp_path_factory.mktemp("recordings")
    kinds = [("x", "u1"), ("y", "u1"), ("p", "u1"), ("t", "u4")]
    random = np.random.default_rng(0)
    arrays = {}
    for split, count in (("train", 8), ("test", 6)):
        events = np.zeros(count * 500, kinds)
        events["x"], events["y"] = random.integers(0, 34, (2, len(events)))
        events["p"] = random.integers(0, 2, len(events))
        events["t"] = np.tile(np.arange(500), count)
        arrays |= {f"{split}_events": events, f"{split}_offsets": 500 * np.arange(count + 1)}
        arrays[f"{split}_labels"] = np.arange(count)
    (folder / "data" / "nmnist").mkdir(parents=True)
    np.savez(folder / "data" / "nmnist" / "events.npz", **arrays)
    return folder


def test_recordings_are_read_as_the_run_read_them(recordings, monkeypatch, capsys):
    monkeypatch.chdir(recordings)
    changes = ["data.size=17", "neuron.timesteps=2", "train.epochs=1", "train.batch=4"]
    options = [word for change in changes for word in ("--set", change)]
    assert train_main(["--config", "nmnist", "--out", "run", *options]) == 0
    capsys.readouterr()
    assert analyze.main(["run", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["images"] == 6
    assert np.array(printed["layers"][0]["histogram"]).sum() == 6 * 2 * 8 * 9 * 9  # stride 2


def test_the_model_is_measured_in_full_float32(run):
    model, _, spec = load_run(run)
    seen = []
    model.register_forward_hook(lambda *_: seen.append(torch.backends.cudnn.allow_tf32))
    loader = DeviceLoader(datasets.load("digits", split="test"), spec, batch=400)
    before = torch.backends.cudnn.allow_tf32
    analyze.measure(model, loader, quiet=True)
    assert seen == [False]
    assert torch.backends.cudnn.allow_tf32 == before


@pytest.mark.parametrize("count", ["0", "-350"])
def test_a_limit_below_one_is_refused(run, count, capsys):
    with pytest.raises(SystemExit, match="2"):
        analyze.main([str(run), "--limit", count])
    assert f"argument --limit: must be at least 1, not {count}" in capsys.readouterr().err


def test_a_folder_without_a_run_is_one_sentence(tmp_path, capsys):
    assert analyze.main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    index = tmp_path / "last.json"
    reason = f"{tmp_path} holds no checkpoint 'last': {index} is missing"
    assert error == f"error: {reason}\n"
