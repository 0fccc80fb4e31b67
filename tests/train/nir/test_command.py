"""``python -m train.nir``: a graph in, a network out, and back."""

from __future__ import annotations

import json
from pathlib import Path

import nir
import numpy as np
import pytest
from PIL import Image

from lbq_hw import file
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.nir.__main__ import main
from lbq_hw.train.nir.read import load, module


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
    assert facts["reading"] == {"dt": 1.0, "reset": "zero", "strict": True, "clamp": None}
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


def test_a_clamp_that_nir_does_not_say_is_given_and_keeps_the_network_out_of_nir(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = graph()
    for node in given.nodes.values():
        if isinstance(node, nir.IF):
            node.r = 2 * node.r
    nir.write(tmp_path / "net.nir", given)
    words = [str(tmp_path / "net.nir"), "--dataset", "digits", "--timesteps", "20", "--test", "0"]
    assert main([*words, "--dt", "1", "--clamp", "-0.75", "--calibrate", "0"]) == 0
    assert "its threshold, a clamp of -0.75 (--dt, --reset, --fires, --clamp)" in (
        capsys.readouterr().out
    )
    network = file.load(tmp_path / "net.lbq")
    for layer in network.layers[:-1]:
        assert layer.neuron is not None
        assert layer.neuron.floor is not None
        # A clamp of -0.75 is half a threshold of 1.5 below rest, whatever r is.
        np.testing.assert_allclose(layer.neuron.floor, -layer.neuron.theta / 2, atol=1.0)
    assert main([str(tmp_path / "net.lbq"), "--to-nir", str(tmp_path / "back.nir")]) == 2
    why = "NIR has no neurons whose membranes have a floor; keep the network as an .lbq file"
    assert f"  if_: {why}\n  if_1: {why}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--clamp", "0.5"], "its membrane rests below the clamp of 0.5; give a lower --clamp"),
        (
            ["--clamp", "-1", "--reset", "late"],
            "it subtracts after the next leak, so its membrane cannot be clamped before; "
            "give --reset zero or subtract, or no --clamp",
        ),
    ],
)
def test_a_clamp_without_an_exact_form_is_refused_at_every_neuron(
    options: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(read(tmp_path, *options)) == 2
    assert f"  if: {reason}\n  if_1: {reason}" in capsys.readouterr().err


def read(folder: Path, *options: str) -> list[str]:
    nir.write(folder / "net.nir", graph())
    words = [str(folder / "net.nir"), "--dataset", "digits", "--timesteps", "20", "--test", "0"]
    return [*words, "--weight-bits", "4", *options]


def test_calibration_is_told_by_layer_beside_what_differed_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(read(tmp_path, "--json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["calibrated"] == 204  # of 20 timesteps each
    after, before = facts["agreement"], facts["uncalibrated"]
    assert after["samples"] == before["samples"] == 32
    assert after["layers"]["if_"] < before["layers"]["if_"]
    assert main(read(tmp_path)) == 0
    rows = {"if_": "spikes", "if_1": "spikes", "logits": "classes"}
    shares = [(name, after["layers"][name], before["layers"][name]) for name in rows]
    shares.append(("from the input on", after["classes"], before["classes"]))
    assert capsys.readouterr().out.splitlines()[3:] == [
        "calibrated on 204 inputs; what differs on 32 inputs, now and before calibration:",
        *(
            f"  {name:17}  {100 * new:6.2f} %  {100 * old:6.2f} %  of {rows.get(name, 'classes')}"
            for name, new, old in shares
        ),
    ]


def test_without_calibration_weights_are_rounded_whatever_the_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(read(tmp_path, "--calibrate", "0", "--json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert not {"calibrated", "uncalibrated"} & facts.keys()
    made = file.load(tmp_path / "net.lbq")
    loaded, reading = load(tmp_path / "net.nir")
    model = module(loaded, reading, timesteps=20, static=True, flat=True)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)
    names = tuple("0123456789")
    alone = integer_network(
        model, spec, name="net", weight_bits=4, meta=made.meta, class_names=names
    )
    file.save(alone, tmp_path / "alone.lbq")
    assert (tmp_path / "net.lbq").read_bytes() == (tmp_path / "alone.lbq").read_bytes()


def test_a_negative_number_of_inputs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(read(tmp_path, "--calibrate", "-1"))
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.endswith("error: argument --calibrate: must be at least 0, not -1")


def test_pictures_are_resized_to_the_input_of_a_graph_that_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (2, 20, 12, 12), np.uint8)
    for label, of_class in enumerate(pictures):
        (tmp_path / "pictures" / str(label)).mkdir(parents=True)
        for number, picture in enumerate(of_class):
            Image.fromarray(picture).save(tmp_path / "pictures" / str(label) / f"{number}.png")
    flatten = nir.Flatten({"input": np.array([1, 8, 8])}, 0, -1)
    _, *others, last = graph().nodes.values()
    whole = nir.NIRGraph.from_list(
        nir.Input(input_type={"input": np.array([1, 8, 8])}), flatten, *others, last
    )
    nir.write(tmp_path / "net.nir", whole)
    words = ["--dataset", "images", "--data", str(tmp_path / "pictures"), "--timesteps", "5"]
    assert main([str(tmp_path / "net.nir"), *words, "--json", "--board-images", "0"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["calibrated"], facts["tested"]) == (8, 40)
    assert file.load(tmp_path / "net.lbq").input.shape == (1, 8, 8)
    nir.write(tmp_path / "net.nir", graph())
    assert main([str(tmp_path / "net.nir"), *words]) == 2
    assert capsys.readouterr().err == (
        "error: the graph's input has the shape (64,), to which no picture can be resized: "
        "give --dataset npz, with images of the right size\n"
    )


@pytest.mark.parametrize("missing", ["timesteps", "dataset"])
def test_what_a_graph_does_not_say_must_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    words = {"timesteps": "5", "dataset": "digits"}
    given = [word for key in words if key != missing for word in (f"--{key}", words[key])]
    assert main([str(tmp_path / "net.nir"), *given]) == 2
    assert capsys.readouterr().err == (
        f"error: give --{missing}, which a NIR graph does not contain\n"
    )
