"""What a depthwise convolution costs: as a dense one with zeros, and as one identity per tap.

    python docs/examples/depthwise.py

Both are programs for the core as it is; cycles are those of `lbq_hw.cycles`, which equal the RTL's.
A layer of nine identities stands for a depthwise 3x3: an identity adds one row of weights to the
lanes whose bit is set, which is what a tap of a depthwise convolution does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbq_hw import compile_network, golden
from lbq_hw.compiler import smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.cycles import predict
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path

SIDE, TAPS, LANES = 8, 9, 16
KINDS = {"dense": "a dense convolution with zeros", "identities": "an identity per tap"}


def network(channels: int, kind: str) -> Network:
    """A pointwise layer of `channels`, a quarter of its neurons active; the layer; a readout."""
    generator = np.random.default_rng(channels)

    def codes(*shape: int) -> np.ndarray:
        return generator.integers(-7, 8, shape)

    def layer(name: str, *paths: Path, theta: int) -> Layer:
        neuron = Neuron(
            capacity=5,
            theta=np.full(channels, theta),
            reset=np.full(channels, theta),
            decay=0,
            decay_bits=0,
        )
        zeros, shape = np.zeros(channels, np.int64), (channels, SIDE, SIDE)
        return Layer(
            name=name, shape=shape, paths=paths, bias=zeros, fraction_bits=0, neuron=neuron
        )

    dense = codes(channels, channels, 3, 3)
    grouped = dense * np.eye(channels, dtype=np.int64)[..., None, None]
    paths = {
        "dense": (Path(source="first", weight=grouped, padding=(1, 1)),),
        "identities": tuple(Path(source="first", weight=codes(channels)) for _ in range(TAPS)),
    }[kind]
    readout = Layer(
        name="logits",
        shape=(10, 1, 1),
        paths=(Path(source="second", weight=codes(10, channels, SIDE, SIDE)),),
        bias=np.zeros(10, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name=kind,
        input=Input(shape=(8, SIDE, SIDE), static=True, bits=4),
        timesteps=1,
        weight_bits=4,
        layers=(
            layer("first", Path(source=INPUT, weight=codes(channels, 8, 1, 1)), theta=90),
            layer("second", *paths, theta=20),
            readout,
        ),
    )


def rows() -> Iterator[tuple[str, ...]]:
    """Of every number of channels and kind: cycles, weight rows and records of the layer."""
    raw = np.random.default_rng(0).integers(0, 16, (8, SIDE, SIDE), dtype=np.uint8)
    for channels in (16, 32, 64):
        for kind in ("dense", "identities"):
            made = network(channels, kind)
            config = smallest_for(made, lanes=LANES)
            traces = golden.run(made, raw[None], keep="levels").traces.values()
            levels = {t.name: t.levels[:, 0] for t in traces if t.levels is not None}
            cycles = predict(compile_network(made, config), raw, levels)[1].cycles
            layer = draft(made, config).layers[1]
            counts = (cycles, len(layer.weights), len(layer.paths), len(layer.segments))
            yield (str(channels), KINDS[kind], *(f"{count:,}" for count in counts))


if __name__ == "__main__":
    for row in rows():
        print("|", " | ".join(row), "|")
