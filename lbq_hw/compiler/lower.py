"""Lowers layers to paths, segments and weight rows, and proves the ranges of their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbq_hw.compiler import weights, windows
from lbq_hw.compiler.errors import CompileError
from lbq_hw.compiler.layout import LaidOut
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.windows import ONE_PIXEL, Axis, Run, Taps
from lbq_hw.config import CoreConfig, largest
from lbq_hw.network import Bounds, Layer, Network, Window
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True)
class LoweredPath:
    """A PATH record before encoding: path `number` of the layer with some `taps` of its sum-pool;
    `rows` and `columns` still count in pixels.
    """

    number: int
    taps: Taps
    source: Tensor
    identity: bool
    rows: Axis
    columns: Axis
    tile_rows: int
    lanes: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, kw_only=True)
class LoweredSegment:
    """A SEGMENT record before encoding: `weight` counts from the layer's first weight row, `limb`
    is the number of an identity's limb.
    """

    path: int
    limb: int
    exponent: int
    plane: int
    source: Tensor
    weight: int


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredLayer:
    """A layer as paths, segments in descending exponent, and weight rows ``(rows, P)``.

    `sources` of the network's paths, and `weight_first`, the first weight row of each.
    """

    layer: Layer
    sources: tuple[Tensor, ...]
    weight_first: tuple[int, ...]
    static: bool
    tiles: int
    paths: tuple[LoweredPath, ...]
    segments: tuple[LoweredSegment, ...]
    weights: Integers

    @property
    def window(self) -> Window:
        """The max-pool; one pixel if there is none."""
        return self.layer.pool or ONE_PIXEL


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered(LaidOut):
    """A network as `layers` with their proven `bounds`; None for a layer named in `failures`."""

    layers: tuple[LoweredLayer, ...]
    bounds: tuple[Bounds | None, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Block:
    """One path of the network: its path records and its limbs' weight rows by exponent."""

    paths: list[LoweredPath]
    limbs: list[tuple[int, Integers]]


def lower(laid: LaidOut, config: CoreConfig) -> Lowered:
    """Lower and prove every layer; CompileError for tables that no core holds."""
    network = laid.network
    if not config.external:
        _refuse_hopeless(network, config)
    layers = tuple(
        _layer(layer, network.is_static(layer), laid.tensors, config) for layer in network.layers
    )
    bounds: list[Bounds | None] = []
    failures = []
    for layer in laid.source.layers:  # gathering adds zeros, which change no bound
        try:
            bounds.append(laid.source.bounds(layer))
        except OverflowError as error:
            bounds.append(None)
            failures.append(str(error))
    return Lowered(**vars(laid), layers=layers, bounds=tuple(bounds), failures=tuple(failures))


def _refuse_hopeless(network: Network, config: CoreConfig) -> None:
    """CompileError for tables that no core can hold, raised before building them would fill the
    memory.
    """
    rows = runs = 0
    for layer in network.layers:
        tiles, most = weights.tile_count(layer.shape[0], config.lanes), 0
        for path in layer.paths:
            height, width = path.kernel
            inputs = 1 if path.is_identity else path.weight.shape[1]
            rows += tiles * inputs * height * width
            most = max(most, height * width * path.pool.taps if path.pool else height)
        runs += most  # paths of one layer may share them
    for what, unit, amount, field in (
        ("the weight memory", "rows", rows, "weight_rows"),
        ("the run table", "entries", runs, "runs"),
    ):
        if amount > largest(field):
            text = f"{what} needs at least {amount} {unit}; no core has more than {largest(field)}"
            raise CompileError(network.name, config, (text,), {})


def _layer(
    layer: Layer, static: bool, tensors: dict[str, Tensor], config: CoreConfig
) -> LoweredLayer:
    """Turn a layer into runs and weight rows; needs of `config` P, W and weight bits."""
    paths: list[LoweredPath] = []
    segments: list[LoweredSegment] = []
    rows: list[Integers] = []
    offset = 0
    weight_first: list[int] = []
    for index, path in enumerate(layer.paths):
        source, first = tensors[path.source], len(paths)
        weight_first.append(offset)
        block = (_identity if path.is_identity else _conv)(layer, index, source, config)
        # a tap that only meets its pool's padding adds nothing
        paths += [made for made in block.paths if made.rows.counts and made.columns.counts]
        for count, (exponent, limb) in enumerate(block.limbs):
            segments += [
                LoweredSegment(
                    path=number,
                    limb=count,
                    exponent=plane + path.exponent + exponent,
                    plane=plane,
                    source=source,
                    weight=offset,
                )
                for plane in range(source.planes)
                for number in range(first, len(paths))
            ]
            rows.append(limb)
            offset += len(limb)
    return LoweredLayer(
        layer=layer,
        sources=tuple(tensors[path.source] for path in layer.paths),
        weight_first=tuple(weight_first),
        static=static,
        tiles=weights.tile_count(layer.shape[0], config.lanes),
        paths=tuple(paths),
        segments=tuple(sorted(segments, key=lambda segment: -segment.exponent)),
        weights=np.concatenate(rows),
    )


def _identity(layer: Layer, number: int, source: Tensor, config: CoreConfig) -> _Block:
    path = layer.paths[number]
    limbs = weights.limbs(path.weight, lanes=config.lanes, weight_bits=config.weight_bits)
    (taps,) = windows.tap_groups(layer, path, source)  # without padding, no tap leaves the source
    lowered = LoweredPath(
        number=number,
        taps=taps,
        source=source,
        identity=True,
        rows=windows.move(layer, path, source, taps, 0),
        columns=windows.move(layer, path, source, taps, 1),
        tile_rows=1 if layer.shape[0] > config.lanes else 0,
        lanes=min(config.lanes, source.pitch),
        runs=windows.tap_runs(path, source, 0, taps),
    )
    return _Block(paths=[lowered], limbs=limbs)


def _conv(layer: Layer, number: int, source: Tensor, config: CoreConfig) -> _Block:
    path = layer.paths[number]
    height, row_rows = path.kernel[0], path.kernel[1] * source.pitch
    paths = [
        LoweredPath(
            number=number,
            taps=taps,
            source=source,
            identity=False,
            rows=windows.move(layer, path, source, taps, 0),
            columns=windows.move(layer, path, source, taps, 1),
            tile_rows=height * row_rows if layer.shape[0] > config.lanes else 0,
            lanes=0,
            runs=windows.window_runs(path, source, row_rows)
            if path.pool is None
            else windows.tap_runs(path, source, row_rows, taps),
        )
        for taps in windows.tap_groups(layer, path, source)
    ]
    rows = weights.conv_rows(path.weight, lanes=config.lanes, pitch=source.pitch, row_rows=row_rows)
    return _Block(paths=paths, limbs=[(0, rows)])
