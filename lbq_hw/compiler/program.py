"""The compiled program: everything that is loaded into a core, and all that the host needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler.passes.placed import LayerPlan
from lbq_hw.compiler.patches import Patches
from lbq_hw.compiler.tensors import Tensor, pack_slices
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions, tape
from lbq_hw.isa.contents import Contents, written
from lbq_hw.isa.pixels import PixelLayout
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region, weight_slice_bits
from lbq_hw.network import INPUT, Input, Shape
from lbq_hw.numeric import Integers

if TYPE_CHECKING:
    from lbq_hw.compiler.draft import Draft


@dataclass(frozen=True, kw_only=True)
class LayerInfo:
    """Facts about a layer for reports: its place in the memories, and its proven widths."""

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
    """One pass: number of its `layer`, its first tile, output rows `first` to before `end`."""

    layer: int
    tile: int
    first: int
    end: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A network for one core.

    `tape`: all writes to tables, weights and parameters, and the passes that may begin after them,
    in the format of `lbq_hw.isa.tape`. A core with external memory reads it once per inference. For
    other cores the host executes the writes once, and each layer is one pass.

    The other members are for the host: `input` describes the quantization, `patches` the gathering
    of the input, `tensors` the places in memory, `info` the layers, `passes` the passes. With
    external memory, `budget` has the planned cost of each layer; `budget` and `passes` are empty if
    the tape was made before.
    """

    name: str
    config: CoreConfig
    timesteps: int
    tape: bytes
    input: Input
    patches: Patches | None
    tensors: dict[str, Tensor]
    info: tuple[LayerInfo, ...]
    passes: tuple[PassInfo, ...] = ()
    budget: tuple[LayerPlan, ...] = ()

    @cached_property
    def contents(self) -> Contents:
        """The contents of the memories after all writes."""
        return written(self.config, self.tape)

    @classmethod
    def of(
        cls,
        drafted: Draft,
        config: CoreConfig,
        made: bytes,
        *,
        passes: tuple[PassInfo, ...] = (),
        budget: tuple[LayerPlan, ...] = (),
    ) -> Program:
        """The program of a draft whose tape was `made`."""
        info, weight_first = [], 0
        for lowered, bounds in zip(drafted.layers, drafted.bounds, strict=True):
            assert bounds is not None  # a failed proof is a violation
            info.append(
                LayerInfo(
                    name=lowered.layer.name,
                    shape=lowered.layer.shape,
                    output_shape=lowered.layer.output_shape,
                    sources=tuple(path.source for path in lowered.layer.paths),
                    weight_first=weight_first,
                    weight_rows=len(lowered.weights),
                    acc_bits=bounds.acc_bits,
                    membrane_bits=bounds.membrane_bits,
                )
            )
            weight_first += 0 if config.external else len(lowered.weights)
        return cls(
            name=drafted.source.name,
            config=config,
            timesteps=drafted.source.timesteps,
            tape=made,
            input=drafted.source.input,
            patches=drafted.patches,
            tensors=drafted.tensors,
            info=tuple(info),
            passes=passes,
            budget=budget,
        )

    @cached_property
    def pixels(self) -> PixelLayout:
        """The layout of the input's pixels, outside and in the plane memory."""
        raw, tensor, patches = self.input, self.tensors[INPUT], self.patches
        channels, height, width = raw.shape
        return PixelLayout(
            channels=channels,
            height=height,
            width=width,
            bits=raw.bits,
            frames=tensor.frames,
            border=raw.border,
            border_value=tuple(raw.border_value),
            kernel=(1, 1) if patches is None else patches.kernel,
            stride=(1, 1) if patches is None else patches.stride,
            padding=(0, 0) if patches is None else patches.padding,
            base=tensor.base,
            pitch=tensor.pitch,
            row_words=tensor.row_words,
            word=tensor.word,
        )

    def table(self, name: str) -> list[dict[str, int]]:
        """Decoded records of one table: layers, paths, segments or runs."""
        record, words = isa.TABLES[name], self._words(Region[name.upper()])
        return [record.decode(self.config, word) for word in words]

    def levels(self, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """One raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``, as levels of each frame."""
        levels = self.input.quantize(np.asarray(raw)[np.newaxis])[:, 0]
        if not self.input.static and len(levels) != self.timesteps:
            raise ValueError(f"raw input must have {self.timesteps} frames, not {len(levels)}")
        return levels

    def input_bits(self, raw: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """One raw image ``(C, H, W)``, or its frames ``(T, C, H, W)``, as plane words of bits."""
        levels = self.levels(raw)
        if self.patches is not None:
            levels = self.patches.gather(levels)
        return self.tensors[INPUT].pack(levels)

    def pixel_words(self, raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """One raw image, or its frames, as 32-bit words of pixels, see `lbq_hw.isa.door`."""
        levels, border = self.levels(raw), self.input.border
        inside = slice(border, -border if border else None)
        return self.pixels.packed(levels[..., inside, inside])

    def load_image(self, raw: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """One raw image as 32-bit slices ``(words, slices)``, lowest bits first.

        They are written to the plane memory from ``tensors["input"].base`` on, before every run,
        because layers reuse these words.
        """
        return pack_slices(self.input_bits(raw))

    def image(self) -> dict[Region, list[int]]:
        """The memory image, for a core whose bitstream has it: the contents after all writes."""
        return {region: self._words(region) for region in tape.WRITTEN}

    def _words(self, region: Region) -> list[int]:
        """The entries of a region, each as one number."""
        bits = SLICE
        if region == Region.WEIGHTS:
            bits = weight_slice_bits(self.config)
        return [
            sum(word << bits * part for part, word in enumerate(row))
            for row in self.contents.slices()[region].tolist()
        ]

    def logits(self, memory: NDArray[Any]) -> Integers:
        """The classes' logits, in the network's order, from the logits memory."""
        channels, height, width = self.info[-1].shape
        pixels = height * width
        tiles = -(-channels // self.config.lanes)
        values = np.asarray(memory, np.int64)[: pixels * tiles * self.config.lanes]
        if self.config.external:  # tile by tile, because a pass has one tile
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
        used = self.contents.used
        return {
            "plane_words": max(tensor.end for tensor in self.tensors.values()),
            "weight_rows": used[Region.WEIGHTS],
            "channels": used[Region.PARAMS],
            "logits": self.logit_words,
            **{name: used[region] for region, name in regions.TABLES.items()},
        }
