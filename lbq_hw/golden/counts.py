"""The cost of an execution, counted from golden's levels: accumulations, formation ops, shifts.

A level S_j that F_j synapses read costs, per read timestep::

    unary ACs      = sum F_j * S_j              one accumulation per unit of the level
    bit-sparse ACs = sum F_j * popcount(S_j)    one per set bit: what the core executes
    shifts         = sum F_j * popcount(S_j >> 1)
    formation ops  = sum popcount(S_j)          each level is formed once, whoever reads it

Fan-out is counted twice: exactly, by the windows that really cover a position, and with padding
taps, as the mean ``taps * outputs / positions`` that papers use. An identity shortcut costs one
accumulation per set bit. Formation is counted on the tensors that travel (after max-pooling), not
on input pixels, which arrive as bits. A static input whose current is reused executes once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.golden import Trace
from lbq_hw.network import INPUT, Layer, Network, Path, Shape
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True)
class Work:
    """Synaptic operations per image; `nonzero` counts reads of levels that are not 0."""

    unary: float = 0.0
    bit_sparse: float = 0.0
    shifts: float = 0.0
    nonzero: float = 0.0

    @classmethod
    def of(cls, plane_bits: list[int], nonzero: int, scale: Fraction) -> Work:
        """Operations from the reads of set bits by plane, all times `scale`."""
        return cls(
            unary=float(scale * sum(bits << k for k, bits in enumerate(plane_bits))),
            bit_sparse=float(scale * sum(plane_bits)),
            shifts=float(scale * sum(plane_bits[1:])),
            nonzero=float(scale * nonzero),
        )

    def __add__(self, other: Work) -> Work:
        return Work(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def saved_percent(self) -> float:
        return saved_percent(self.unary, self.bit_sparse)


@dataclass(frozen=True, kw_only=True)
class PathCounts:
    """One path: `work` by exact fan-out, `padded` with padding taps, dense `macs` per execution.

    `executions` is how often an image runs through the path: T, or 1 where the current is reused.
    """

    source: str
    identity: bool
    executions: int
    macs: int
    work: Work
    padded: Work


@dataclass(frozen=True, kw_only=True)
class LayerCounts:
    """One layer: the paths it sums and the levels it emits, per image over all timesteps.

    Members: `active`, the share of neurons and timesteps with a level above 0; `mean_level`;
    `plane_bits`, set bits of each bit plane of the tensor that travels, lowest plane first. The
    readout, which emits nothing, has None, None and ().
    """

    name: str
    shape: Shape
    paths: tuple[PathCounts, ...]
    active: float | None
    mean_level: float | None
    plane_bits: tuple[float, ...]

    @property
    def work(self) -> Work:
        return sum((path.work for path in self.paths), Work())

    @property
    def padded(self) -> Work:
        return sum((path.padded for path in self.paths), Work())

    @property
    def macs(self) -> int:
        return sum(path.macs for path in self.paths)

    @property
    def formation_ops(self) -> float:
        return sum(self.plane_bits)

    def summary(self) -> dict[str, Any]:
        """The layer as a JSON-able object."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "sources": [path.source for path in self.paths],
            "macs": self.macs,
            "active": self.active,
            "mean_level": self.mean_level,
            "plane_bits": list(self.plane_bits),
            "formation_ops": self.formation_ops,
            **work_summary(self.work, self.padded),
        }


@dataclass(frozen=True, kw_only=True)
class Counts:
    """A whole network, per image: `input_plane_bits` and `layers` in execution order."""

    images: int
    timesteps: int
    input_plane_bits: tuple[float, ...]
    layers: tuple[LayerCounts, ...]

    @property
    def work(self) -> Work:
        """Everything the core executes, input pixels and identity shortcuts included."""
        return sum((layer.work for layer in self.layers), Work())

    @property
    def padded(self) -> Work:
        return sum((layer.padded for layer in self.layers), Work())

    @property
    def macs(self) -> int:
        """Dense multiply-accumulates of one timestep."""
        return sum(layer.macs for layer in self.layers)

    @property
    def formation_ops(self) -> float:
        return sum(layer.formation_ops for layer in self.layers)

    @property
    def input_macs(self) -> int:
        """Dense multiply-accumulates on pixels, over all executions: the paper's FP MACs."""
        return sum(path.macs * path.executions for path in self.paths if path.source == INPUT)

    def paper_work(self, *, padded: bool = False) -> Work:
        """By the paper's convention: no pixels (priced as FP MACs) and no identity shortcuts."""
        paths = (path for path in self.paths if path.source != INPUT and not path.identity)
        return sum((path.padded if padded else path.work for path in paths), Work())

    @property
    def paths(self) -> list[PathCounts]:
        return [path for layer in self.layers for path in layer.paths]


def work_summary(work: Work, padded: Work) -> dict[str, float]:
    """Both fan-out conventions under the names that reports use."""
    return {
        "acs_unary": work.unary,
        "acs_bit_sparse": work.bit_sparse,
        "acs_unary_with_padding": padded.unary,
        "acs_bit_sparse_with_padding": padded.bit_sparse,
        "shifts": work.shifts,
        "shifts_with_padding": padded.shifts,
    }


def saved_percent(unary: float, bit_sparse: float) -> float:
    """Share of the unary accumulations that bit planes save; 0 where there are none."""
    return 100.0 * (1.0 - bit_sparse / unary) if unary else 0.0


def path_macs(layer: Layer, path: Path) -> int:
    """Dense multiply-accumulates of one execution, padding taps included; 0 for an identity."""
    return 0 if path.is_identity else path.weight.size * layer.shape[1] * layer.shape[2]


def macs(network: Network) -> int:
    """Dense multiply-accumulates of one timestep."""
    return sum(path_macs(layer, path) for layer in network.layers for path in layer.paths)


def fan_out(source: Shape, path: Path) -> Integers:
    """Synapses ``(H, W)`` that read each position of the source, padding taps not counted."""
    rows, columns = (_axis_fan_out(source, path, axis) for axis in (0, 1))
    outputs = 1 if path.is_identity else len(path.weight)
    return outputs * np.outer(rows, columns)


def fan_out_with_padding(source: Shape, path: Path) -> Fraction:
    """Mean synapses that read a position of the source, padding taps counted."""
    _, height, width = path.output_shape(source)
    taps = path.kernel[0] * path.kernel[1] * (path.pool.taps if path.pool else 1)
    outputs = 1 if path.is_identity else len(path.weight)
    return Fraction(outputs * taps * height * width, source[1] * source[2])


def _axis_fan_out(source: Shape, path: Path, axis: int) -> Integers:
    """How many windows cover each index of one axis, through the pool where there is one."""
    pooled = path.pooled_shape(source)[1 + axis]
    window = path.kernel[axis], path.stride[axis], path.padding[axis]
    covered = _cover(pooled, *window, np.ones(path.output_shape(source)[1 + axis], np.int64))
    if path.pool is None:
        return covered
    pool = path.pool.kernel[axis], path.pool.stride[axis], path.pool.padding[axis]
    return _cover(source[1 + axis], *pool, covered)


def _cover(size: int, kernel: int, stride: int, padding: int, outputs: Integers) -> Integers:
    """Add each output's weight to the indices that its window covers."""
    covered = np.zeros(size + 2 * padding, np.int64)
    for index, weight in enumerate(outputs):
        covered[index * stride : index * stride + kernel] += weight
    return covered[padding : padding + size]


@dataclass(frozen=True, kw_only=True, eq=False)
class Activity:
    """One tensor's set bits by plane ``(K, H, W)`` and nonzero levels ``(H, W)``, summed up.

    `active` and `level_sum` are of the neurons themselves, before max-pooling.
    """

    planes: Integers
    nonzero: Integers
    active: int
    level_sum: int

    @classmethod
    def of(cls, trace: Trace, plane_count: int) -> Activity:
        levels, output = trace.levels, trace.output
        assert levels is not None
        assert output is not None
        planes = np.stack([_by_position((output >> k) & 1) for k in range(plane_count)])
        return cls(
            planes=planes,
            nonzero=_by_position(output > 0),
            active=int(np.count_nonzero(levels)),
            level_sum=int(levels.sum(dtype=np.int64)),
        )

    def __add__(self, other: Activity) -> Activity:
        return Activity(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def work(self, fan: Integers, repeats: int, images: int) -> Work:
        """Work per image of a path that reads this tensor, by the fan-out of each position."""
        bits = [repeats * int((plane * fan).sum()) for plane in self.planes]
        return Work.of(bits, repeats * int((self.nonzero * fan).sum()), Fraction(1, images))

    def mean_work(self, fan: Fraction, repeats: int, images: int) -> Work:
        """The same with one fan-out for all positions."""
        bits = [int(plane.sum()) for plane in self.planes]
        return Work.of(bits, int(self.nonzero.sum()), fan * repeats / images)


def _by_position(marks: NDArray[Any]) -> Integers:
    """Sum ``(T', n, C, H, W)`` over all but the position."""
    return marks.sum(axis=2, dtype=np.uint32).sum(axis=(0, 1), dtype=np.int64)


class Counter:
    """Counts while golden runs: ``golden.run(network, raw, observe=counter)``.

    If the network runs elsewhere, pass the activity of its tensors to :meth:`add`.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._images = 0
        self._tensors: dict[str, Activity] = {}

    def __call__(self, trace: Trace) -> None:
        if trace.output is None:  # the readout
            return
        if trace.name == INPUT:
            planes = self._network.input.bits
        else:
            planes = numeric.plane_count(self._network.by_name[trace.name].capacity)
        self.add(trace.name, Activity.of(trace, planes), images=trace.output.shape[1])

    def add(self, name: str, activity: Activity, *, images: int) -> None:
        """Add the activity of a tensor over `images` images, the same for every tensor."""
        if name == INPUT:
            self._images += images
        before = self._tensors.get(name)
        self._tensors[name] = before + activity if before else activity

    def counts(self) -> Counts:
        """Mean counts per image, over all images so far."""
        if not self._images:
            raise ValueError("counts need at least one image")
        return Counts(
            images=self._images,
            timesteps=self._network.timesteps,
            input_plane_bits=self._plane_bits(INPUT),
            layers=tuple(self._layer(layer) for layer in self._network.layers),
        )

    def _layer(self, layer: Layer) -> LayerCounts:
        spikes = layer.neuron is not None
        slots = self._images * self._network.timesteps * int(np.prod(layer.shape))
        return LayerCounts(
            name=layer.name,
            shape=layer.shape,
            paths=tuple(self._path(layer, path) for path in layer.paths),
            active=self._tensors[layer.name].active / slots if spikes else None,
            mean_level=self._tensors[layer.name].level_sum / slots if spikes else None,
            plane_bits=self._plane_bits(layer.name) if spikes else (),
        )

    def _path(self, layer: Layer, path: Path) -> PathCounts:
        network, tensor = self._network, self._tensors[path.source]
        executions = 1 if network.is_static(layer) else network.timesteps
        # golden shows a static input once, however often it is read
        repeats = executions if network.input.static and path.source == INPUT else 1
        source = network.source_shape(path)
        return PathCounts(
            source=path.source,
            identity=path.is_identity,
            executions=executions,
            macs=path_macs(layer, path),
            work=tensor.work(fan_out(source, path), repeats, self._images),
            padded=tensor.mean_work(fan_out_with_padding(source, path), repeats, self._images),
        )

    def _plane_bits(self, name: str) -> tuple[float, ...]:
        bits = self._tensors[name].planes.sum(axis=(1, 2))
        return tuple(int(count) / self._images for count in bits)
