"""The compiled program: everything that is loaded into a core, and how to speak to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler import weights
from lbq_hw.compiler.passes.planner import LayerPlan
from lbq_hw.compiler.patches import Patches
from lbq_hw.compiler.tensors import Tensor, pack_slices
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions, tape
from lbq_hw.isa.contents import LayerRecords
from lbq_hw.isa.regions import Region, weight_slice_lanes
from lbq_hw.network import INPUT, Input, Shape
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True)
class LayerInfo:
    """What reports say of a layer: its place in the memories and what was proven about it."""

    name: str
    shape: Shape
    output_shape: Shape
    sources: tuple[str, ...]
    weight_first: int
    weight_rows: int
    acc_bits: int
    membrane_bits: int


@dataclass(frozen=True, kw_only=True)
class PassInfo:
    """One pass of a tape: number of its `layer`, its tile, output rows `first` to before `end`."""

    layer: int
    tile: int
    first: int
    end: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A network for one core.

    Tables (`layers`, `paths`, `segments`, `runs`): encoded records of `lbq_hw.isa`. `weights`:
    rows ``(rows, P)``. `params`: encoded PARAM records, P per tile. The rest is for the host:
    `input` says how to quantize, `patches` how to gather what the first layer reads, `tensors`
    where everything lies, `info` what the layers are.

    For a core with external memory, `tape` has all that the core reads, and tables, weights and
    parameters are empty: `passes` says what the passes are, `budget` what each layer was planned
    to cost; both are empty where the tape was made before.
    """

    name: str
    config: CoreConfig
    timesteps: int
    layers: tuple[int, ...]
    paths: tuple[int, ...]
    segments: tuple[int, ...]
    runs: tuple[int, ...]
    weights: Integers
    params: tuple[int, ...]
    input: Input
    patches: Patches | None
    tensors: dict[str, Tensor]
    info: tuple[LayerInfo, ...]
    tape: bytes = b""
    passes: tuple[PassInfo, ...] = ()
    budget: tuple[LayerPlan, ...] = ()

    def table(self, name: str) -> list[dict[str, int]]:
        """Decoded records of one table: layers, paths, segments or runs."""
        record = isa.TABLES[name]
        return [record.decode(self.config, word) for word in getattr(self, name)]

    def records(self, number: int) -> LayerRecords:
        """Decoded records of one layer, of a program without a tape."""
        layer, paths, segments, runs = (self.table(name) for name in isa.TABLES)
        return LayerRecords.of(layer[number], paths, segments, runs)

    def input_bits(self, raw: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """One raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``, as plane words of bits."""
        levels = self.input.quantize(np.asarray(raw)[np.newaxis])[:, 0]
        if not self.input.static and len(levels) != self.timesteps:
            raise ValueError(f"raw input must have {self.timesteps} frames, not {len(levels)}")
        if self.patches is not None:
            levels = self.patches.gather(levels)
        return self.tensors[INPUT].pack(levels)

    def load_image(self, raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """One raw image as 32-bit slices ``(words, slices)``, lowest bits first.

        They are written to the plane memory from ``tensors["input"].base`` on, before every run:
        layers reuse the place.
        """
        return pack_slices(self.input_bits(raw))

    def weight_slices(self) -> NDArray[np.uint32]:
        """Weight rows as the 32-bit slices ``(rows, slices)`` of the host port."""
        return weights.slices(self.weights, self.config)

    def image(self) -> dict[Region, list[int]]:
        """The memory image: what `load` would write, for a core that has it from the start."""
        part = weight_slice_lanes(self.config) * self.config.weight_bits
        rows = [
            sum(word << part * i for i, word in enumerate(row))
            for row in self.weight_slices().tolist()
        ]
        return {
            **{region: list(getattr(self, name)) for region, name in regions.TABLES.items()},
            Region.WEIGHTS: rows,
            Region.PARAMS: list(self.params),
        }

    def logits(self, memory: NDArray[Any]) -> Integers:
        """The classes' logits, in the network's order, from the logits memory."""
        channels, height, width = self.info[-1].shape
        pixels = height * width
        tiles = -(-channels // self.config.lanes)
        values = np.asarray(memory, np.int64)[: pixels * tiles * self.config.lanes]
        if self.tape:  # tile by tile, since a pass has one
            values = values.reshape(tiles, pixels, -1).transpose(0, 2, 1).reshape(-1, pixels)
            return values[:channels].reshape(-1)
        return values.reshape(pixels, -1)[:, :channels].T.reshape(-1)

    @property
    def logit_words(self) -> int:
        """Entries of the logits memory that a run writes."""
        channels, height, width = self.info[-1].shape
        return height * width * -(-channels // self.config.lanes) * self.config.lanes

    @property
    def usage(self) -> dict[str, int]:
        """Entries used of each memory, by the CoreConfig field that sizes it."""
        used = {
            "plane_words": max(tensor.end for tensor in self.tensors.values()),
            "weight_rows": len(self.weights),
            "channels": len(self.params),
            "logits": self.logit_words,
            **{name: len(getattr(self, name)) for name in isa.TABLES},
        }
        fields = {Region.WEIGHTS: "weight_rows", Region.PARAMS: "channels", **regions.TABLES}
        for item in tape.decode(self.config, self.tape) if self.tape else ():
            if item.address != tape.PASS:
                region, first, _ = tape.entry(self.config, item)
                end = first + len(item.payload) // regions.slices(self.config)[region]
                used[fields[region]] = max(end, used[fields[region]])
        return used
