"""Quant nodes, and the quantized constants of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import UniformReLU

OFFSETS = {"ROUND": 0.5, "FLOOR": 0.0}
_ONE = "use one for all channels of an activation"
Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Codes:
    """Quantized weights: `values` are codes of `bits` bits times `scale`."""

    values: Array
    scale: Array
    bits: int

    def transposed(self) -> Codes:
        return Codes(values=self.values.T, scale=self.scale.T, bits=self.bits)


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in found.items()
    }


@dataclass(frozen=True, kw_only=True)
class Quantizer:
    """``scale * clip(round(x / scale), low, high)``: a Quant node whose zero point is 0."""

    scale: Array
    bits: int
    low: int
    high: int
    rounding: str

    @classmethod
    def of(cls, node: onnx.NodeProto, constants: list[Array | None]) -> Quantizer:
        """The quantizer of a node; RefusalError if it is not uniform around 0."""
        if node.op_type == "BipolarQuant":
            raise RefusalError("it makes activations of one bit and both signs", "use Quant")
        if len(constants) != 4 or any(value is None for value in constants[1:]):
            raise RefusalError(
                "its scale, zero point or bits are computed", "write them as numbers"
            )
        _, scale, zero, bits = (np.asarray(value) for value in constants)
        options = attributes(node)
        if zero.any():
            raise RefusalError("its zero point is not 0", "use a quantizer without a zero point")
        if bits.size != 1 or float(bits.item()) != int(bits.item()) or not 1 <= bits.item() <= 16:
            raise RefusalError(f"its bits are {bits.tolist()!r}", "use one whole number, 1 to 16")
        if not scale.size or not np.isfinite(scale).all() or scale.min() <= 0:
            raise RefusalError("its scale is not above 0", "train it again")
        signed, narrow = bool(options.get("signed", 1)), bool(options.get("narrow", 0))
        count = int(bits.item())
        low = -(1 << count - 1) + narrow if signed else 0
        high = (1 << count - 1) - 1 if signed else (1 << count) - 1 - narrow
        rounding = str(options.get("rounding_mode", "ROUND")).upper()
        return cls(scale=scale, bits=count, low=low, high=high, rounding=rounding)

    def codes(self, values: Array) -> Codes:
        """The codes of weights or of a bias, rounded to nearest."""
        if self.rounding != "ROUND":
            raise RefusalError(f"it rounds weights by {self.rounding}", "use ROUND")
        codes = np.rint(values / self.scale).clip(self.low, self.high)
        return Codes(values=codes * self.scale, scale=self.scale, bits=self.bits)

    def activation(self) -> UniformReLU:
        """A ReLU with this quantizer."""
        if self.low < 0:
            raise RefusalError("it is signed", "put a ReLU before it, and quantize unsigned")
        if self.scale.size != 1:
            raise RefusalError("its scale differs from channel to channel", _ONE)
        if self.rounding not in OFFSETS:
            raise RefusalError(f"it rounds by {self.rounding}", "use ROUND or FLOOR")
        step = float(self.scale.item())
        return UniformReLU(step=step, capacity=self.high, offset=OFFSETS[self.rounding])

    def keeps(self, values: Array) -> bool:
        """Whether the quantizer leaves these values unchanged, up to float32's precision."""
        kept = np.rint(values / self.scale).clip(self.low, self.high) * self.scale
        return bool(np.allclose(kept, values, rtol=1e-5, atol=1e-6 * float(self.scale.max())))


def bipolar(values: Array, scale: Array) -> Codes:
    """Weights of one bit: ``scale`` with the sign of `values`; 0 counts as positive."""
    return Codes(values=np.where(values >= 0, 1.0, -1.0) * scale, scale=scale, bits=2)
