"""Networks in QONNX: equal levels and outputs on 1,000 images, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch.nn import functional

from lbq_hw import datasets, golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError
from lbq_hw.train.qonnx import QonnxError, read

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)
DOMAIN = "qonnx.custom_op.general"
Nodes = list[onnx.NodeProto]


class File:
    """A QONNX graph in the making."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: Any) -> str:
        self.constants.append(
            onnx.numpy_helper.from_array(np.asarray(values, np.float32), name=name)
        )
        return name

    def add(self, kind: str, inputs: Sequence[str], output: str, **options: Any) -> str:
        domain = DOMAIN if kind.endswith("Quant") else ""
        made = helper.make_node(kind, inputs, [output], name=output, domain=domain, **options)
        self.nodes.append(made)
        return output

    def quant(self, source: str, output: str, scale: Any, bits: int, **options: Any) -> str:
        names = [
            self.constant(f"{output}_{what}", value)
            for what, value in (("scale", scale), ("zero", 0), ("bits", bits))
        ]
        given = {"signed": 1, "narrow": 1, "rounding_mode": "ROUND"} | options
        return self.add("Quant", [source, *names], output, **given)

    def save(self, path: Path, output: str, classes: int = 10) -> Path:
        values = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("x", [1, 1, 8, 8]), (output, [1, classes]))
        ]
        graph = helper.make_graph(self.nodes, "net", values[:1], values[1:], self.constants)
        onnx.save(helper.make_model(graph), path)
        return path


def quantized(weight: np.ndarray, scale: Any) -> np.ndarray:
    return np.rint(weight / scale).clip(-7, 7) * scale


def drawn(path: Path, *, last: str = "Gemm", step: float = 0.13) -> Any:
    """A network of 4 bits with random weights, and what it computes: its levels and outputs."""
    random, made = np.random.default_rng(1), File()
    kernels = random.normal(size=(8, 1, 3, 3)), random.normal(size=(12, 8, 3, 3)) / 3
    scales = np.linspace(0.2, 0.4, 8).reshape(8, 1, 1, 1), 0.07
    dense, bias = random.normal(size=(10, 192)) / 8, random.normal(size=10)
    gain, shift, mean, variance = random.uniform(0.5, 1.5, (4, 8))
    gain[3] *= -1
    made.quant("x", "pixels", 1 / 16, 5, signed=0, narrow=0)
    made.quant(made.constant("k0", kernels[0]), "w0", scales[0], 4)
    made.add("Conv", ["pixels", "w0"], "c0", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    norm = [made.constant(f"n{i}", v) for i, v in enumerate((gain, shift, mean, variance))]
    made.add("BatchNormalization", ["c0", *norm], "b0", epsilon=1e-5)
    made.quant(made.add("Relu", ["b0"], "r0"), "q0", step, 4, signed=0, narrow=0)
    made.add("MaxPool", ["q0"], "p0", kernel_shape=[2, 2], strides=[2, 2])
    made.quant(made.constant("k1", kernels[1]), "w1", scales[1], 4)
    made.constant("zero", np.linspace(-0.3, 0.3, 12))
    made.add("Conv", ["p0", "w1", "zero"], "c1", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    made.quant(made.add("Relu", ["c1"], "r1"), "q1", 0.5, 4, signed=0, narrow=0)
    made.add("Flatten", ["q1"], "flat")
    made.constant("bias", bias)
    if last == "Gemm":
        made.quant(made.constant("k2", dense), "w2", 0.05, 4)
        made.add("Gemm", ["flat", "w2", "bias"], "out", transB=1)
    else:
        made.quant(made.constant("k2", dense), "w2", 0.05, 4)
        made.add("Transpose", ["w2"], "t2", perm=[1, 0])
        made.add("Add", [made.add("MatMul", ["flat", "t2"], "m2"), "bias"], "out")
    made.save(path, "out")

    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        tensor = torch.from_numpy
        x = x.double()
        x = functional.conv2d(x, tensor(quantized(kernels[0], scales[0])), padding=1)
        values = (tensor(v) for v in (mean, variance, gain, shift))
        x = functional.batch_norm(x, *values, training=False, eps=1e-5)
        first = (x / step).round().clamp(0, 15)
        x = functional.max_pool2d(first * step, 2)
        kernel = tensor(quantized(kernels[1], scales[1]))
        x = functional.conv2d(x, kernel, tensor(np.linspace(-0.3, 0.3, 12)), padding=1)
        second = (x / 0.5).round().clamp(0, 15)
        flat = (second * 0.5).flatten(1)
        return first, second, functional.linear(flat, tensor(quantized(dense, 0.05)), tensor(bias))

    return run


@pytest.mark.parametrize("last", ["Gemm", "MatMul"])
def test_1000_images_have_equal_levels_and_outputs(tmp_path: Path, last: str) -> None:
    run = drawn(tmp_path / "net.onnx", last=last)
    model = read(tmp_path / "net.onnx", SPEC)
    raw = datasets.load("digits", split="train").images[:1000]
    network = integer_network(model, SPEC, name="qonnx", samples=raw[:64])
    assert network.weight_bits == 4
    assert [layer.name for layer in network.layers[:-1]] == ["q0", "q1"]
    x = SPEC.normalize(torch.from_numpy(raw))
    result = golden.run(network, raw, keep="levels")
    first, second, logits = run(x)
    for name, levels in (("q0", first), ("q1", second)):
        found = result.traces[name].levels
        assert found is not None
        assert np.array_equal(found[0], levels.numpy())
        assert levels.unique().numel() > 1
    assert np.array_equal(result.classes, logits.argmax(1).numpy())
    assert len(np.unique(result.classes)) > 1
    last_layer = network.layers[-1]
    assert last_layer.scale is not None
    unit = last_layer.scale[0] * 2.0**-last_layer.fraction_bits
    outputs = golden.outputs(network, result.logits)[..., 0, 0]
    assert np.abs(outputs - logits.numpy()).max() < 0.51 * unit


def test_ties_are_counted_and_go_up(tmp_path: Path) -> None:
    made = File()
    made.quant(made.constant("k", np.ones((2, 1, 1, 1))), "w", 1, 4)
    made.add("Conv", ["x", "w"], "c", kernel_shape=[1, 1])
    made.quant(made.add("Relu", ["c"], "r"), "q", 0.125, 4, signed=0, narrow=0)
    made.quant(made.constant("k2", np.ones((10, 128))), "w2", 1, 4)
    made.add("Gemm", [made.add("Flatten", ["q"], "f"), "w2"], "out", transB=1)
    model = read(made.save(tmp_path / "net.onnx", "out"), SPEC)
    network = integer_network(model, SPEC, most_different=1)
    raw = np.arange(64, dtype=np.uint8).reshape(1, 1, 8, 8) % 17
    levels = golden.run(network, raw, keep="levels").traces["q"].levels
    assert levels is not None
    exact = raw[0, 0] / 16 / 0.125  # every second pixel lies between two levels
    assert np.array_equal(levels[0, 0, 0], np.floor(exact + 0.5).clip(0, 15))
    even = np.rint(exact).clip(0, 15)
    current = SPEC.normalize(torch.from_numpy(raw)).expand(1, 2, 8, 8)
    neuron: Any = model.get_submodule("q")
    assert neuron.ties(current) == (levels[0] != even).sum() > 0


def refusal(made: File, path: Path, output: str) -> str:
    with pytest.raises(GraphError) as error:
        read(made.save(path, output), SPEC)
    return str(error.value)


def begun() -> File:
    made = File()
    made.quant(made.constant("k", np.ones((2, 1, 3, 3))), "w", 1, 4)
    made.add("Conv", ["x", "w"], "c", kernel_shape=[3, 3])
    return made


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda made: made.quant("c", "out", 0.1, 4),
            "out: it is signed; put a ReLU before it, and quantize unsigned",
        ),
        (
            lambda made: made.quant("c", "out", [[[[0.1]], [[0.2]]]], 4, signed=0),
            "out: its scale differs from channel to channel; use one for all channels of an "
            "activation",
        ),
        (
            lambda made: made.quant("c", "out", 0.1, 4, signed=0, rounding_mode="CEIL"),
            "out: it rounds by CEIL; use ROUND or FLOOR",
        ),
        (
            lambda made: made.add("Flatten", [made.add("Relu", ["c"], "r")], "out"),
            "out: it reads a ReLU without a quantizer; put a Quant after the ReLU",
        ),
        (
            lambda made: made.add("Conv", ["c", "k"], "out", kernel_shape=[3, 3]),
            "out: its weights are not quantized; quantize its weights with Quant or BipolarQuant",
        ),
        (
            lambda made: made.add("Conv", ["c", "w"], "out", pads=[1, 0, 0, 0]),
            "out: its padding differs from side to side; pad both sides of an axis alike",
        ),
        (
            lambda made: made.add("Sigmoid", ["c"], "out"),
            "out: Sigmoid has no integer form here; use Quant, BipolarQuant of weights, Conv, "
            "Gemm, MatMul, Add, BatchNormalization, Relu, MaxPool, AveragePool, "
            "GlobalAveragePool, Flatten",
        ),
        (
            lambda made: made.add("Flatten", ["nothing"], "out"),
            "out: its input does not depend on the network's input; export it again",
        ),
    ],
)
def test_what_has_no_exact_form_is_refused(tmp_path: Path, change: Any, text: str) -> None:
    made = begun()
    change(made)
    told = refusal(made, tmp_path / "net.onnx", "out")
    assert told == f"the model has no integer form (1 violation):\n  {text}"


def test_a_quantizer_of_pixels_that_changes_them_is_refused(tmp_path: Path) -> None:
    made = File()
    made.quant("x", "out", 1 / 8, 4, signed=0, narrow=0)
    assert refusal(made, tmp_path / "net.onnx", "out").endswith(
        "out: it quantizes pixels differently from the InputSpec; give an InputSpec whose "
        "pixels it leaves as they are, or leave it out"
    )


def test_what_is_no_file_of_onnx_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with pytest.raises(QonnxError) as error:
        read(path, SPEC)
    told = f"{path} cannot be read (No such file or directory): give a QONNX file"
    assert str(error.value) == told
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(QonnxError) as error:
        read(path, SPEC)
    assert str(error.value) == f"{path} is not an ONNX file: export it again"
