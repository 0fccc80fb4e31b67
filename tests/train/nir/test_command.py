"""``python -m train.nir``: a graph in, a network out, and back."""

from __future__ import annotations

import json
from pathlib import Path

import nir
import numpy as np
import pytest

from lbq_hw import file
from train.nir.__main__ import main


def graph() -> nir.NIRGraph:
    rng = np.random.default_rng(0)

    def spiking(size: int) -> nir.IF:
        return nir.IF(r=np.ones(size), v_threshold=np.full(size, 1.5))

    return nir.NIRGraph.from_list(
        nir.Input(input_type={"input": np.array([64])}),
        nir.Affine(weight=rng.normal(0, 0.3, (16, 64)), bias=rng.normal(0, 0.1, 16)),
        spiking(16),
        nir.Linear(weight=rng.normal(0, 0.4, (10, 16))),
        spiking(10),
        type_check=False,
    )


def test_a_graph_becomes_a_network_and_a_graph_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nir.write(tmp_path / "net.nir", graph())
    words = [str(tmp_path / "net.nir"), "--dataset", "digits", "--timesteps", "20", "--json"]
    assert main([*words, "--test", "50"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["reading"] == {"dt": 1.0, "reset": "zero", "strict": True}
    assert facts["layers"] == ["if_", "if_1", "logits"]
    assert facts["tested"] == 50
    network = file.load(tmp_path / "net.lbq")
    assert network.timesteps == 20
    assert all(layer.neuron.to_zero for layer in network.layers[:-1] if layer.neuron)
    assert main([str(tmp_path / "net.lbq"), "--to-nir", str(tmp_path / "back.nir")]) == 0
    assert capsys.readouterr().out == (
        f"wrote {tmp_path / 'back.nir'}\n"
        "note: the graph's input are the integer levels of pixels, not their values\n"
    )
    assert len(nir.read(tmp_path / "back.nir", type_check=False).nodes) == 7


@pytest.mark.parametrize("missing", ["timesteps", "dataset"])
def test_what_a_graph_does_not_say_must_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    words = {"timesteps": "5", "dataset": "digits"}
    given = [word for key in words if key != missing for word in (f"--{key}", words[key])]
    assert main([str(tmp_path / "net.nir"), *given]) == 2
    assert capsys.readouterr().err == (
        f"train.nir: give --{missing}: a NIR graph does not say it\n"
    )
