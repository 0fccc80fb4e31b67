"""The benchmark compares like with like, and reports what it measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lbq_hw import golden
from lbq_hw.network import INPUT, Network, Window
from tools import bench


def tiny() -> Network:
    """A residual network with every kind of path that ResNet-20 has."""
    make = bench._Maker(name="tiny", timesteps=2, capacity=5, shape=(3, 8, 8), seed=0)
    stem = make.layer("stem", (8, 8, 8), [make.conv(INPUT, 3, 8, 3, 1)])
    first = make.layer("first", (8, 8, 8), [make.conv(stem, 8, 8, 3, 1), make.identity(stem, 8)])
    paths = [make.conv(first, 8, 16, 3, 2), make.conv(first, 8, 16, 1, 2)]
    second = make.layer("second", (16, 4, 4), paths)
    pool = Window(kernel=(4, 4), stride=(4, 4))
    return make.network(make.linear(second, (16, 1, 1), 10, pool=pool))


@pytest.mark.parametrize("network", [tiny(), bench.mnist()], ids=lambda network: network.name)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_torch_computes_the_same_network(
    network: Network, memory_format: torch.memory_format
) -> None:
    """Up to float32's rounding, which now and then tips a membrane that lies on a step."""
    raw = np.random.default_rng(1).integers(0, 256, (200, *network.input.shape), dtype=np.uint8)
    classes = bench.TorchForward(network, memory_format)(raw)
    assert np.mean(classes == golden.predict(network, raw)) >= 0.98
    assert len(np.unique(classes)) > 1


@pytest.mark.parametrize("network", [tiny(), bench.mnist()], ids=lambda network: network.name)
def test_the_random_networks_are_neither_silent_nor_saturated(network: Network) -> None:
    raw = np.random.default_rng(1).integers(0, 256, (20, *network.input.shape), dtype=np.uint8)
    for name, trace in golden.run(network, raw, keep="levels").traces.items():
        if name != INPUT and trace.levels is not None:
            assert 0.05 < np.mean(trace.levels > 0) < 0.7
            assert np.mean(trace.levels == 5) < 0.2


def test_a_reset_of_another_size_is_refused() -> None:
    network = tiny()
    stem = network.layers[0]
    assert stem.neuron is not None
    other = replace(stem, neuron=replace(stem.neuron, reset=stem.neuron.reset + 1))
    message = "the torch forward only has resets by one step"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bench.TorchForward(
            replace(network, layers=(other, *network.layers[1:])), torch.channels_last
        )


def test_the_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "resnet20", tiny)
    monkeypatch.setattr(bench, "TARGET_RATIO", 1e9)
    target = tmp_path / "bench.json"
    assert bench.main(["--json", str(target), "--threads", "1", "--repeats", "1"]) == 0
    report = json.loads(target.read_text(encoding="utf-8"))
    assert [result["network"] for result in report["results"]] == ["tiny", "mnist"]
    for result in report["results"]:
        seconds = result["seconds"]
        fastest = min(seconds["torch"], seconds["torch_channels_last"])
        assert result["ratio"] == seconds["golden"] / fastest
        assert result["threads"] == 1
    assert "mnist" in capsys.readouterr().out


def test_a_ratio_over_the_target_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "resnet20", tiny)
    monkeypatch.setattr(bench, "TARGET_RATIO", 1e-9)
    assert bench.main(["--threads", "1", "--repeats", "1"]) == 1
    assert "golden is over 1e-09 times torch on tiny, mnist" in capsys.readouterr().out
