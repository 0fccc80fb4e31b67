"""Networks of Brevitas, with weights and activations of four bits: equal outputs, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from examples import example
from torch import nn

from lbq_hw import datasets, golden, load
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.graph import GraphError
from lbq_hw.train.qonnx import read

qnn = pytest.importorskip(
    "brevitas.nn", reason="needs Brevitas: pip install brevitas", exc_type=ImportError
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of Brevitas
SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)


def four_bits(**options) -> dict:
    return {"weight_bit_width": 4} | options


def trained() -> nn.Module:
    """On the digits, for a moment."""
    torch.manual_seed(0)
    data = datasets.load("digits", split="train")
    x, y = SPEC.normalize(torch.from_numpy(data.images)), torch.from_numpy(data.labels).long()
    net = nn.Sequential(
        *(qnn.QuantConv2d(1, 8, 3, padding=1, bias=False, **four_bits()), nn.BatchNorm2d(8)),
        *(qnn.QuantReLU(bit_width=4), nn.MaxPool2d(2)),
        *(qnn.QuantConv2d(8, 8, 3, groups=4, padding=1, **four_bits()), nn.BatchNorm2d(8)),
        *(qnn.QuantReLU(bit_width=4, return_quant_tensor=True), nn.Flatten()),
        qnn.QuantLinear(128, 10, bias=True, **four_bits()),
    )
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(4):
        for part in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[part]), y[part]).backward()
            optimizer.step()
    return net.eval()


def test_1000_images_have_equal_levels_and_outputs() -> None:
    net, raw = trained(), datasets.load("digits", split="train").images[:1000]
    model = adopt(net, timesteps=1, static=True)
    network = integer_network(model, SPEC, name="brevitas", samples=raw[:64])
    assert network.weight_bits == 4
    x = SPEC.normalize(torch.from_numpy(raw))
    result = golden.run(network, raw, keep="levels")
    ties = 0
    with torch.no_grad():
        logits = net(x).numpy()
        for name in ("2", "6"):
            current = net[: int(name)](x)
            sent = net[int(name)](current)
            sent = sent[0] if isinstance(sent, tuple) else sent
            levels = (sent / net[int(name)].act_quant.scale()).round().numpy()
            ties += model.get_submodule(name).ties(current)
            assert np.array_equal(result.traces[name].levels[0], levels)
    assert ties == 0
    assert np.array_equal(result.classes, logits.argmax(1))
    labels = datasets.load("digits", split="train").labels[:1000]
    assert np.mean(result.classes == labels) > 0.8
    last = network.layers[-1]
    unit = last.scale[0] * 2.0**-last.fraction_bits
    assert np.abs(golden.outputs(network, result.logits)[..., 0, 0] - logits).max() < 0.51 * unit


def test_the_file_that_brevitas_exports_is_the_same_network(tmp_path: Path) -> None:
    pytest.importorskip("onnxoptimizer", reason="Brevitas needs it to write QONNX")
    pytest.importorskip("onnxscript", reason="torch needs it to write ONNX")
    from brevitas.export import export_qonnx

    net, raw = trained(), datasets.load("digits", split="train").images[:1000]
    export_qonnx(net, args=torch.zeros(1, 1, 8, 8), export_path=str(tmp_path / "net.onnx"))
    made = [
        integer_network(module, SPEC, samples=raw[:64])
        for module in (adopt(net, timesteps=1, static=True), read(tmp_path / "net.onnx", SPEC))
    ]
    logits = [golden.run(network, raw).logits for network in made]
    assert np.array_equal(logits[0], logits[1])


def test_the_example_is_trained_and_imported(tmp_path: Path, capsys) -> None:
    assert example("brevitas_digits").main(["--out", str(tmp_path), "--epochs", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("1000 images: 0 levels and 0 classes differ; ")
    assert load(tmp_path / "net.lbq").weight_bits == 4


def test_what_has_no_exact_form_is_refused() -> None:
    net = nn.Sequential(
        *(qnn.QuantIdentity(bit_width=8), qnn.QuantConv2d(1, 4, 3, **four_bits())),
        *(qnn.QuantSigmoid(bit_width=4), nn.Flatten(), qnn.QuantLinear(144, 5, bias=True)),
    )
    with pytest.raises(GraphError) as error:
        adopt(net.eval(), timesteps=2, static=True)
    assert str(error.value) == (
        "the model has no integer form (4 violations):\n"
        "  0: it quantizes again what is quantized, or pixels; leave it out: QuantReLU quantizes "
        "what layers send, InputSpec pixels\n"
        "  1: an ANN has no timesteps; adopt it with timesteps=1\n"
        "  2: Brevitas' QuantSigmoid has no integer form; use QuantConv1d, QuantConv2d, "
        "QuantLinear and QuantReLU\n"
        "  4: an ANN has no timesteps; adopt it with timesteps=1"
    )
