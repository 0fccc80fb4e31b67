"""The contents of a core's memories while a tape is executed, and the records of each pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE, Record
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeError, TapeItem

Values = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class LayerRecords:
    """The decoded records of one layer or pass; `runs` has those of each of its `paths`."""

    layer: Values
    paths: tuple[Values, ...]
    segments: tuple[Values, ...]
    runs: tuple[tuple[Values, ...], ...]


class Contents:
    """Tables, weight rows and parameters: noise, or 0, until the tape writes them."""

    def __init__(self, config: CoreConfig, random: np.random.Generator | None = None) -> None:
        self.config = config
        sizes, entries = regions.slices(config), regions.entries(config)
        self._slices: dict[Region, NDArray[np.uint32]] = {}
        for region in tape.WRITTEN:
            shape = entries[region], sizes[region]
            noise = None if random is None else random.integers(0, 1 << 32, shape, dtype=np.uint32)
            self._slices[region] = np.zeros(shape, np.uint32) if noise is None else noise
        self._weights: NDArray[np.int64] | None = None
        self._params: list[Values] | None = None
        self.used = dict.fromkeys(tape.WRITTEN, 0)
        """Entries of each region up to the last one that was written."""

    def write(self, item: TapeItem) -> None:
        """Execute an item from `tape.decode`."""
        region, first, part = tape.entry(self.config, item)
        payload = np.array(item.payload, np.uint32)
        bits = tape.row_bits(self.config).get(item.address >> regions.SHIFT)
        if bits is not None and bits < self.config.weight_bits:
            payload = _widened(self.config, payload, bits)
        flat = self._slices[region].reshape(-1)
        start = first * self._slices[region].shape[1] + part
        flat[start : start + len(payload)] = payload
        end = -(-(start + len(payload)) // self._slices[region].shape[1])
        self.used[region] = max(self.used[region], end)
        if region == Region.WEIGHTS:
            self._weights = None
        elif region == Region.PARAMS:
            self._params = None

    def slices(self) -> dict[Region, NDArray[np.uint32]]:
        """Entries of each region up to the last one that was written, ``(entries, slices)``."""
        return {region: self._slices[region][:end] for region, end in self.used.items()}

    def weights(self) -> NDArray[np.int64]:
        """All weight rows, ``(rows, P)``."""
        if self._weights is None:
            lanes, bits = regions.weight_slice_lanes(self.config), self.config.weight_bits
            shifts = np.arange(lanes, dtype=np.uint32) * np.uint32(bits)
            codes = self._slices[Region.WEIGHTS][..., None] >> shifts & np.uint32((1 << bits) - 1)
            values = codes.astype(np.int64).reshape(self.config.weight_rows, -1)
            self._weights = values - (values >> (bits - 1) << bits)
        return self._weights

    def params(self) -> list[Values]:
        """Parameters of all channels."""
        if self._params is None:
            every = range(self.config.channels)
            self._params = [self._decode(isa.PARAM, Region.PARAMS, i) for i in every]
        return self._params

    def records(self, number: int) -> LayerRecords:
        """The records of pass `number`; TapeError if one is illegal."""
        entry = number % self.config.layers
        (layer,) = self._table(Region.LAYERS, range(entry, entry + 1))
        paths = self._table(Region.PATHS, _range(layer, "path"))
        segments = self._table(Region.SEGMENTS, _range(layer, "segment"))
        runs = tuple(self._table(Region.RUNS, _range(path, "run")) for path in paths)
        if len(paths) > self.config.layer_paths:
            raise TapeError(
                f"a pass must have at most {self.config.layer_paths} paths, not {len(paths)}"
            )
        for segment in segments:
            if segment["path"] >= len(paths):
                raise TapeError(f"segment.path must be below {len(paths)}, not {segment['path']}")
        return LayerRecords(layer=layer, paths=paths, segments=segments, runs=runs)

    def _table(self, region: Region, numbers: range) -> tuple[Values, ...]:
        record = isa.TABLES[regions.TABLES[region]]
        found = []
        for number in numbers:
            values = self._decode(record, region, number)
            if violations := record.violations(self.config, values):
                raise TapeError(violations[0])
            found.append(values)
        return tuple(found)

    def _decode(self, record: Record, region: Region, number: int) -> Values:
        slices = self._slices[region][number].tolist()
        word = sum(value << 32 * part for part, value in enumerate(slices))
        return record.decode(self.config, word & ((1 << record.width(self.config)) - 1))


def _widened(config: CoreConfig, payload: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """Slices of rows with `bits` per weight, widened to the weight bits of the core."""
    used, lanes = regions.weight_slice_bits(config), config.lanes
    ones = np.unpackbits(payload.astype("<u4").view(np.uint8), bitorder="little")
    ones = ones.reshape(-1, regions.row_slices(config, bits), SLICE)[..., :used]
    codes = ones.reshape(len(ones), -1)[:, : lanes * bits].reshape(-1, lanes, bits)
    sign = np.repeat(codes[..., -1:], config.weight_bits - bits, axis=2)
    rows = np.concatenate([codes, sign], axis=2).reshape(-1, used)
    wide = np.pad(rows, ((0, 0), (0, SLICE - used)))
    return np.packbits(wide, bitorder="little").view("<u4").astype(np.uint32)


def written(config: CoreConfig, data: bytes) -> Contents:
    """The memories after all writes of a tape, whatever its passes read in between; 0 elsewhere."""
    contents = Contents(config)
    for item in tape.decode(config, data):
        if item.address != tape.PASS:
            contents.write(item)
    return contents


def check(config: CoreConfig, data: bytes) -> None:
    """TapeError for a tape that the core would refuse, whatever its input."""
    tape.check_ends(config, data)
    for _ in replay(data, Contents(config)):
        pass


def _range(values: Values, kind: str) -> range:
    return range(values[f"{kind}_first"], values[f"{kind}_last"] + 1)


def replay(data: bytes, contents: Contents) -> Iterator[LayerRecords]:
    """Execute a tape: the records of every pass, each when the pass may begin.

    A pass is done when the caller asks for the next one. An item is written as early as its `after`
    and the items before it allow, so that a pass reads wrong contents if `after` is too small.
    TapeError if the core would refuse the tape.
    """
    done = allowed = 0
    last = False

    def begin() -> LayerRecords:
        nonlocal done, last
        if last:
            raise TapeError(f"pass {done} comes after the one marked last")
        records = contents.records(done)
        last, done = bool(records.layer["last"]), done + 1
        return records

    for item in tape.decode(contents.config, data):
        if item.address == tape.PASS:
            allowed += 1
            continue
        while done < item.after:
            yield begin()
        contents.write(item)
    while done < allowed:
        yield begin()
    if not last:
        raise TapeError("the tape ends before a pass that is marked last")
