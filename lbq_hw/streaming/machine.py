"""Executes a streaming program step by step, as the core does, from the contents of its memories.

For each row of a layer's output, the map rows under its windows are ORed and dilated by the columns
of the window. Every position with a bit in the result is visited, and so is every hot position. A
visit adds the weights of all set bits in its windows, applies the leaks since the position's last
visit, and updates its membranes. A position is hot if a membrane still reaches its threshold: it
may fire at the next step without an event. A visit without work changes no result and only costs
cycles, so the core does not look closer than that.

*Patrol.* A stamp holds the step of a position's last visit, modulo a power of two. To keep stamps
unambiguous, every step visits one more position of each layer that leaks, in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lbq_hw import numeric
from lbq_hw.numeric import Integers
from lbq_hw.streaming import records
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import StreamRegion


class MembraneError(OverflowError):
    """A membrane overflowed its width; the core reports MEMBRANE."""


@dataclass(frozen=True, kw_only=True)
class TileWork:
    """One tile of a visit. `rows`: for each row of its windows, the set bits of every level word
    that is read. `leaks`: cycles of each group in the leak stage.
    """

    rows: list[list[int]]
    leaks: list[int]


@dataclass(frozen=True, kw_only=True)
class RowWork:
    """One output row: for each path, whether its map rows have a bit (None: they are not read), and
    the tiles of all visits.
    """

    joined: list[bool]
    visits: list[list[TileWork]]


@dataclass(frozen=True, kw_only=True)
class LayerWork:
    """The work of one step of a layer; `layer` and `paths` are its records."""

    layer: dict[str, int]
    paths: list[dict[str, int]]
    rows: list[RowWork] = field(default_factory=list)


class Machine:
    """A core with a program in it; `membranes`, `maps` and `levels` are its memories."""

    def __init__(self, program: StreamProgram) -> None:
        self.program = program
        self.config = c = program.config
        image = program.image
        self._layers = layers_of(program)
        self._taps, self._rows = image[StreamRegion.TAPS], image[StreamRegion.ROWS]
        self._weights = _unpacked(image[StreamRegion.WEIGHTS], c.lanes, c.weight_bits)
        kinds = 2 + c.resets + c.floors
        params = _unpacked(image[StreamRegion.PARAMS], c.units * kinds, c.membrane_bits)
        self._params = params.reshape(-1, c.units, kinds)
        self.levels = [0] * c.level_words
        self.reset()

    def reset(self) -> None:
        """Clear all state, as the core's reset does."""
        c = self.config
        self.membranes = np.zeros((c.membrane_words, c.units), np.int64)
        self.maps, self._hot = [0] * c.map_rows, [0] * c.map_rows
        self._stamps = [0] * c.positions
        self.steps = 0

    def step(self, events: Sequence[int]) -> list[LayerWork]:
        """Execute one step on the words for EVENTS; returns the work by layer."""
        self._take(events)
        self.steps += 1
        work = [self._layer(*found) for found in self._layers]
        for row in range(self.program.input.tensor_shape[1]):
            self.maps[row] = 0
        return work

    def logits(self) -> Integers:
        """The logits after the steps so far."""
        first = self.program.logits
        words = self.membranes[first : first + self.program.logit_words]
        bits = self.config.membrane_bits
        packed = [
            sum((int(v) & ((1 << bits) - 1)) << (bits * i) for i, v in enumerate(word))
            for word in words
        ]
        return self.program.read_logits(packed)

    def _take(self, events: Sequence[int]) -> None:
        planes = self.config.input_planes
        for word in events:
            x, y, plane, value = word & 255, word >> 8 & 255, word >> 16 & 15, word >> 20
            self.levels[self._rows[y] + x * planes + plane] = value
            self.maps[y] |= 1 << x

    def _layer(self, layer: dict[str, int], paths: list[dict[str, int]]) -> LayerWork:
        work = LayerWork(layer=layer, paths=paths)
        for y in range(layer["rows_last"] + 1):
            joined, found = self._find(layer, paths, y)
            done, filled, hot = [], 0, 0
            for x in range(layer["columns_last"] + 1):
                if found >> x & 1:
                    tiles, fires, stays = self._visit(layer, paths, y, x)
                    done.append(tiles)
                    filled |= fires << x
                    hot |= stays << x
            work.rows.append(RowWork(joined=joined, visits=done))
            if not layer["readout"]:
                self.maps[layer["map"] + y], self._hot[layer["map"] + y] = filled, hot
        return work

    def _find(
        self, layer: dict[str, int], paths: list[dict[str, int]], y: int
    ) -> tuple[list[bool], int]:
        """Columns to visit in a row, as bits, and which paths have a bit in their map rows."""
        whole = (1 << (layer["columns_last"] + 1)) - 1
        if layer["always"]:
            return [], whole
        found = 0 if layer["readout"] else self._hot[layer["map"] + y]
        patrol = self.steps - 1
        bits = self.config.patrol_bits
        if layer["leaks"] and y == patrol % (1 << bits):
            found |= 1 << (patrol >> bits) % (1 << bits)
        joined = []
        for path in paths:
            bits = 0
            top = y * path["row_step"] + path["row_init"]
            for row in range(top, top + path["rows_last"] + 1):
                if path["row_low"] <= row <= path["row_high"]:
                    bits |= self.maps[path["map"] + row]
            joined.append(bits != 0)
            spread = bits
            for n in range(path["left"] + 1):
                spread |= bits << n
            for n in range(path["right"] + 1):
                spread |= bits >> n
            for x in range(layer["columns_last"] + 1):
                found |= (spread >> x * path["column_step"] & 1) << x
        return joined, found & whole

    def _visit(
        self, layer: dict[str, int], paths: list[dict[str, int]], y: int, x: int
    ) -> tuple[list[TileWork], bool, bool]:
        """Returns the work, whether a level is not 0, and whether the position is hot."""
        columns = layer["columns_last"] + 1
        owed = 0
        if layer["leaks"]:
            place = layer["stamp"] + y * columns + x
            modulus = 1 << self.config.stamp_bits
            owed = (self.steps - self._stamps[place]) % modulus
            self._stamps[place] = self.steps % modulus
        tiles, fires, hot = [], False, False
        for tile in range(layer["tiles_last"] + 1):
            acc, rows = self._gather(layer, paths, y, x, tile)
            leaks, spikes, stays = self._update(layer, y, x, tile, acc, owed)
            tiles.append(TileWork(rows=rows, leaks=leaks))
            fires, hot = fires or spikes, hot or stays
        return tiles, fires, hot

    def _gather(
        self, layer: dict[str, int], paths: list[dict[str, int]], y: int, x: int, tile: int
    ) -> tuple[Integers, list[list[int]]]:
        """Sums of a tile, and by row the set bits of the words that were read."""
        c = self.config
        chosen: list[int] = []
        shifts: list[int] = []
        masked = np.zeros(c.lanes, np.int64)
        rows: list[list[int]] = []
        for path in paths:
            top = y * path["row_step"] + path["row_init"]
            left = x * path["column_step"] + path["column_init"]
            width, planes = path["window_last"] + 1, path["planes_last"] + 1
            for j in range(path["rows_last"] + 1):
                counts: list[int] = []
                rows.append(counts)
                if not path["row_low"] <= top + j <= path["row_high"]:
                    continue
                line = path["map"] + top + j
                bits = self.maps[line] & path["mask"]
                for i in range(max(0, -left), width):
                    if not bits >> (left + i) & 1:
                        continue
                    entry = self._taps[path["tap"] + j * width + i]
                    first = (entry >> 1) + tile * layer["tile_rows"]
                    pixel = self._rows[line] + (left + i) * path["pixel"]
                    words = [tile] if path["identity"] else range(path["words_last"] + 1)
                    for word in words:
                        for plane in range(planes):
                            value = self.levels[pixel + word * planes + plane] * (entry & 1)
                            shift = plane + path["exponent"]
                            if path["identity"]:
                                lanes = value >> np.arange(c.lanes) & 1
                                masked += (self._weights[first] * lanes) << shift
                                counts.append(int(value != 0))
                                continue
                            counts.append(value.bit_count())
                            while value:
                                low = value & -value
                                chosen.append(first + word * c.lanes + low.bit_length() - 1)
                                shifts.append(shift)
                                value ^= low
        sums = (self._weights[chosen] << np.array(shifts, np.int64)[:, None]).sum(axis=0)
        return sums + masked, rows

    def _update(
        self, layer: dict[str, int], y: int, x: int, tile: int, acc: Integers, owed: int
    ) -> tuple[list[int], bool, bool]:
        """Update membranes and levels of a tile; returns its cycles in the leak stage, whether it
        spikes, and whether it is hot.
        """
        c = self.config
        groups = layer["groups_last"] + 1 if tile == layer["tiles_last"] else c.groups
        position = y * layer["membrane_row"] + x * layer["membrane_pixel"] + tile * c.groups
        first = layer["membrane"] + position
        here = slice(first, first + groups)
        params = self._params[layer["param"] + tile * c.groups :][:groups]
        bias, theta = params[..., 0], params[..., 1]
        v = self.membranes[here]
        leaks = [1] * groups
        if layer["leaks"]:
            v, leaks = self._leak(v, layer["decay"], owed)
        sums = acc.reshape(-1, c.units)[:groups] << (layer["fraction"] + c.fraction_low)
        u = v + bias + sums
        self._check(u)
        if layer["readout"]:
            self.membranes[here] = u
            return leaks, False, False
        s = numeric.burst_level(u, theta, layer["capacity"])
        v = np.where(s > 0, u - (params[..., 2] if c.resets else theta), u)
        if layer["to_zero"]:
            v = np.where(s > 0, 0, u)
        if c.floors:
            v = np.maximum(v, params[..., -1])
        self._check(v)
        self.membranes[here] = v
        self._write(layer, y, x, tile, s.ravel().astype(np.int64))
        return leaks, bool(s.any()), bool((v >= theta).any())

    def _leak(self, v: Integers, decay: int, owed: int) -> tuple[Integers, list[int]]:
        """Apply leaks one by one, to each group until all are done or nothing changes any more."""
        cycles, kept = [], v.copy()
        for group in kept:
            count = 0
            while count < owed:
                leaked = numeric.decay(group, decay, self.config.decay_bits)
                count += 1
                same = np.array_equal(leaked, group)
                group[:] = leaked
                if same:
                    break
            cycles.append(max(1, count))
        return kept, cycles

    def _write(self, layer: dict[str, int], y: int, x: int, tile: int, s: Integers) -> None:
        planes = layer["planes_last"] + 1
        first = layer["level"] + y * layer["level_row"] + x * layer["level_pixel"] + tile * planes
        bits = s[None] >> np.arange(planes)[:, None] & 1
        packed = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")
        words = [int.from_bytes(row.tobytes(), "little") for row in packed]
        self.levels[first : first + planes] = words

    def _check(self, values: Integers) -> None:
        half = 1 << (self.config.membrane_bits - 1)
        if values.min() < -half or values.max() >= half:
            raise MembraneError(
                f"a membrane overflowed its width in step {self.steps}: reset the core"
            )


def layers_of(program: StreamProgram) -> list[tuple[dict[str, int], list[dict[str, int]]]]:
    """The decoded records of all layers and their paths."""
    c, words = program.config, list(program.image[StreamRegion.RECORDS])
    layer_fields, path_fields = records.layer_fields(c), records.path_fields(c)
    found = []
    while words:
        count, parts = records.words_of(layer_fields), records.words_of(path_fields)
        layer = records.decode(layer_fields, words[:count])
        del words[:count]
        paths = []
        for _ in range(layer["paths_last"] + 1):
            paths.append(records.decode(path_fields, words[:parts]))
            del words[:parts]
        found.append((layer, paths))
    return found


def _unpacked(entries: Sequence[int], count: int, bits: int) -> Integers:
    """Unpacks words into signed numbers of `bits` each."""
    values = [
        [(entry >> (bits * i) & ((1 << bits) - 1)) for i in range(count)] for entry in entries
    ]
    table = np.array(values, np.int64)
    return table - ((table >> (bits - 1)) << bits)
