"""A QONNX file as a module of this project's layers: one walk over its nodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from torch import fx, nn

from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import GraphError, RefusalError, Violation
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.qonnx import layers
from lbq_hw.train.qonnx.quantizers import Array, Codes, Quantizer, attributes, bipolar

MOST_BYTES = 1 << 28
"""The largest size of a file in bytes; the largest core holds fewer weights."""
_MEND = (
    "use Quant, BipolarQuant of weights, Conv, Gemm, MatMul, Add, BatchNormalization, Relu, "
    "MaxPool, AveragePool, GlobalAveragePool, Flatten"
)
_WEIGHTS = "quantize its weights with Quant or BipolarQuant"


class QonnxError(ValueError):
    """A file that cannot be read; the message names it."""


def read(path: str | Path, spec: InputSpec) -> fx.GraphModule:
    """The network of a QONNX file at T = 1, for inputs that `spec` normalises.

    Every activation must be a ReLU with a uniform unsigned quantizer, and every weight must be
    quantized. Levels equal the levels of burst neurons at T = 1 except for ties, which QONNX rounds
    to even and the network rounds up: `UniformReLU.ties` counts them. A quantizer of the input must
    not change the output of `spec`. QonnxError if the file is not QONNX, GraphError with the first
    node that has no exact form.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise QonnxError(f"{path} has more than {MOST_BYTES >> 20} MiB: give a smaller network")
        proto = onnx.load_model_from_string(path.read_bytes())
    except OSError as error:
        raise QonnxError(f"{path} cannot be read ({error.strerror}): give a QONNX file") from None
    except DecodeError:
        raise QonnxError(f"{path} is not an ONNX file: export it again") from None
    return _Builder(proto.graph, spec).build()


class _Builder:
    """Values by their names: `_nodes` of the module, `_constants`, and `_codes` of weights."""

    def __init__(self, graph: onnx.GraphProto, spec: InputSpec) -> None:
        self._proto, self._spec = graph, spec
        self._root, self._graph = nn.Module(), fx.Graph()
        self._constants: dict[str, Array] = {
            one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer
        }
        self._codes: dict[str, Codes] = {}
        self._nodes: dict[str, fx.Node] = {}
        self._flat: set[str] = set()
        self._rectified: set[str] = set()
        self._violations: list[Violation] = []

    def build(self) -> fx.GraphModule:
        starts = [one.name for one in self._proto.input if one.name not in self._constants]
        ends = [one.name for one in self._proto.output]
        if len(starts) != 1 or len(ends) != 1:
            self._refuse(
                "graph",
                f"it has {len(starts)} inputs and {len(ends)} outputs",
                "export it with one of each",
            )
            raise GraphError(self._violations)
        self._input = starts[0]
        first = self._graph.placeholder("x")
        self._nodes[starts[0]] = self._call("time_in", Repeat(1), first)
        for number, node in enumerate(self._proto.node):
            name = node.name or f"{node.op_type}_{number}"
            try:
                self._add(name, node)
            except RefusalError as refusal:
                self._refuse(name, refusal.reason, refusal.mend)
                break  # nodes after it would lack their input
        if not self._violations and ends[0] not in self._nodes:
            self._refuse("graph", "its output does not depend on its input", "export it again")
        if self._violations:
            raise GraphError(self._violations)
        self._graph.output(self._call("time_mean", TimeMean(1), self._nodes[ends[0]]))
        return fx.GraphModule(self._root, self._graph).eval()

    def _add(self, name: str, node: onnx.NodeProto) -> None:
        """Add a node: a constant, weights, or a layer."""
        source, [result, *_] = (node.input[0] if node.input else ""), node.output
        if node.op_type == "Constant":
            self._constants[result] = onnx.numpy_helper.to_array(attributes(node)["value"])
        elif node.op_type in ("Quant", "BipolarQuant") and source in self._constants:
            self._codes[result] = self._weights(node)
        elif node.op_type == "Transpose" and source in self._codes:
            self._codes[result] = self._codes[source].transposed()
        elif node.op_type in ("Identity", "Dropout"):
            self._alias(source, result)
        elif node.op_type == "Relu":
            self._alias(source, result)
            self._rectified.add(result)
        elif node.op_type == "Quant" and source == self._input:
            self._check_input(node)
            self._alias(source, result)
        else:
            self._nodes[result] = self._layer(name, node)

    def _layer(self, name: str, node: onnx.NodeProto) -> fx.Node:
        kind, [result, *_], options = node.op_type, node.output, attributes(node)
        if kind == "Add" and all(one in self._nodes for one in node.input):
            left, right = (self._value(one) for one in node.input)
            return self._graph.call_function(operator.add, (left, right))
        data = next((one for one in node.input if one in self._nodes), None)
        if data is None:
            raise RefusalError(
                "its input does not depend on the network's input", "export it again"
            )
        if kind in ("Quant", "BipolarQuant"):
            constants = [self._constants.get(one) for one in node.input]
            made: nn.Module = Quantizer.of(node, constants).activation()
            if data in self._flat:
                self._flat.add(result)
            return self._call(self._attribute(name), made, self._nodes[data])
        value = self._value(data)
        if kind == "Add":
            return self._add_bias(value, self._constant(node, data))
        made, flat = self._made(node, kind, options, flat=data in self._flat)
        if flat:
            self._flat.add(result)
        return self._call(self._attribute(name), made, value)

    def _made(
        self, node: onnx.NodeProto, kind: str, options: dict[str, Any], *, flat: bool
    ) -> tuple[nn.Module, bool]:
        """The layer of a node, and whether its output is a vector."""
        inputs = node.input
        match kind:
            case "Conv":
                return layers.conv(self._code(inputs[1]), self._bias(inputs, 2), options), False
            case "Gemm":
                if options.get("transA", 0) or {
                    options.get("alpha", 1.0),
                    options.get("beta", 1.0),
                } != {1.0}:
                    raise RefusalError("it scales or transposes its input", "use alpha = beta = 1")
                codes = self._code(inputs[1])
                codes = codes if options.get("transB", 0) else codes.transposed()
                return layers.linear(codes, self._bias(inputs, 2)), True
            case "MatMul":
                return layers.linear(self._code(inputs[1]).transposed(), None), True
            case "BatchNormalization":
                values = [self._number(one) for one in inputs[1:5]]
                return layers.norm(values, options, flat=flat), flat
            case "MaxPool" | "AveragePool":
                return layers.pool(kind, options), False
            case "GlobalAveragePool":
                return nn.AdaptiveAvgPool2d(1), False
            case "Flatten" if options.get("axis", 1) == 1:
                return nn.Flatten(), True
            case "Reshape" if self._flattens(inputs[1]):
                return nn.Flatten(), True
        raise RefusalError(f"{kind} has no integer form here", _MEND)

    def _weights(self, node: onnx.NodeProto) -> Codes:
        constants = [self._constants.get(one) for one in node.input]
        values = self._constants[node.input[0]]
        if node.op_type == "BipolarQuant":
            return bipolar(values, self._number(node.input[1]))
        return Quantizer.of(node, constants).codes(values)

    def _check_input(self, node: onnx.NodeProto) -> None:
        """RefusalError if a quantizer of the input changes the output of the InputSpec."""
        quantizer = Quantizer.of(node, [self._constants.get(one) for one in node.input])
        raw = torch.arange(1 << self._spec.bits).to(torch.uint8) << self._spec.shift
        shape = (len(raw), *self._spec.shape)
        values = self._spec.normalize(raw.reshape(-1, 1, 1, 1).expand(shape)[:, :, :1, :1])
        if not quantizer.keeps(values.numpy()):
            raise RefusalError(
                "it quantizes pixels differently from the InputSpec",
                "give an InputSpec whose pixels it leaves as they are, or leave it out",
            )

    def _add_bias(self, value: fx.Node, bias: Array) -> fx.Node:
        """A bias that a separate Add node adds to a linear layer."""
        layer: Any = (
            self._root.get_submodule(str(value.target)) if value.op == "call_module" else None
        )
        if not isinstance(layer, nn.Linear) or layer.bias is not None:
            raise RefusalError("it adds a constant", "add it as the bias of a layer")
        if bias.size != layer.out_features:
            raise RefusalError(f"its bias has {bias.size} numbers", f"use {layer.out_features}")
        layer.bias = nn.Parameter(layers.tensor(bias).reshape(-1))
        return value

    def _alias(self, source: str, result: str) -> None:
        if source not in self._nodes:
            raise RefusalError(
                "its input does not depend on the network's input", "export it again"
            )
        self._nodes[result] = self._nodes[source]
        for names in (self._flat, self._rectified):
            if source in names:
                names.add(result)

    def _value(self, name: str) -> fx.Node:
        """The node of a layer's input; RefusalError for a ReLU without a quantizer."""
        if name in self._rectified:
            raise RefusalError("it reads a ReLU without a quantizer", "put a Quant after the ReLU")
        return self._nodes[name]

    def _code(self, name: str) -> Codes:
        if name not in self._codes:
            raise RefusalError("its weights are not quantized", _WEIGHTS)
        return self._codes[name]

    def _number(self, name: str) -> Array:
        if name in self._codes:
            return self._codes[name].values
        if name not in self._constants:
            raise RefusalError(f"its input {name} is computed", "write it as a constant")
        return self._constants[name]

    def _bias(self, inputs: Sequence[str], place: int) -> Array | None:
        return self._number(inputs[place]) if len(inputs) > place and inputs[place] else None

    def _constant(self, node: onnx.NodeProto, data: str) -> Array:
        return self._number(next(one for one in node.input if one != data))

    def _flattens(self, name: str) -> bool:
        shape = self._constants.get(name, np.zeros(0)).tolist()
        return len(shape) == 2 and (shape[1] == -1 or shape[0] in (-1, 0, 1))

    def _attribute(self, name: str) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name).strip("_") or "node"
        plain = plain if plain[0].isalpha() else f"n{plain}"
        while hasattr(self._root, plain) or plain in ("time_in", "time_mean"):
            plain += "_"
        return plain

    def _call(self, name: str, layer: nn.Module, argument: fx.Node) -> fx.Node:
        self._root.add_module(name, layer)
        return self._graph.call_module(name, (argument,))

    def _refuse(self, path: str, reason: str, mend: str) -> None:
        self._violations.append(Violation(path=path, reason=reason, mend=mend))
