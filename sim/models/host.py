"""A model of HostPort, with registers and lists of forwarded messages, and random requests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa import Error, regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

START, CLEAR = 1, 2
MOST_ENTRIES = 1 << 10
"""Entries of a memory among which requests are drawn, few enough that some repeat."""
TABLES = {Region.LAYERS: Table.LAYERS, Region.PATHS: Table.PATHS,
          Region.SEGMENTS: Table.SEGMENTS, Region.RUNS: Table.RUNS}  # fmt: skip
STEADY = ("id", "digest", "control", "status", "error", "error_at", "layer")
"""Registers that are not counters."""
PASSES = 321
"""The number of passes that a core with external memory reports as done."""


@dataclass(frozen=True, kw_only=True)
class Write:
    address: int
    data: int


@dataclass(frozen=True, kw_only=True)
class Read:
    address: int


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The program ends, with an error of the walker or none."""

    error: Error
    at: int


Step = Write | Read | Finish


@dataclass(kw_only=True)
class HostModel:
    """The answers of the port and the messages that it forwards, step by step.

    `passed` has the messages for each memory, without values that are not enabled. `planes` and
    `logits` are contents of the memories, `layer` is reported by the walker, and `memory` has the
    slices of an external memory, which is calibrated.
    """

    config: CoreConfig
    planes: Sequence[int]
    logits: Sequence[int]
    layer: int
    busy: bool = False
    done: bool = False
    error: Error = Error.NONE
    error_at: int = 0
    staged: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)
    passed: dict[str, list[dict]] = field(
        default_factory=lambda: {"records": [], "weights": [], "params": [], "plane_write": []}
    )

    def take(self, step: Step) -> None:
        """One request, or the end of a run."""
        match step:
            case Finish(error=error, at=at):
                self._fail(error, at)
                self.busy, self.done = False, True
            case Read(address=address):
                self.answers.append(self._read(address))
            case Write(address=address, data=data):
                self._write(address, data)

    def _fail(self, error: Error, at: int) -> None:
        if self.error == Error.NONE and error != Error.NONE:
            self.error, self.error_at = error, at

    def _place(self, address: int, *, write: bool) -> tuple[Region, int, int] | None:
        """Region, entry and slice of an address; None if the access is refused."""
        number, rest = divmod(address, 1 << regions.SHIFT)
        error = Error.ADDRESS
        if number in regions.reached(self.config):
            region = Region(number)
            slices = regions.slices(self.config)[region]
            entry, part = divmod(rest, 1 << (slices - 1).bit_length())
            if entry < regions.entries(self.config)[region] and part < slices:
                if not self.busy or (region == Region.REGISTERS and not write):
                    return region, entry, part
                error = Error.BUSY
        self._fail(error, self.layer)
        return None

    def _read(self, address: int) -> int:
        place = self._place(address, write=False)
        match place:
            case None:
                return 0
            case Region.REGISTERS, entry, _:
                return self._register(entry)
            case Region.PLANES, entry, part:
                return self.planes[entry] >> SLICE * part & 0xFFFFFFFF
            case Region.LOGITS, entry, part:
                return self.logits[entry] >> SLICE * part & 0xFFFFFFFF
            case Region.MEMORY, entry, _:
                return self.memory.get(entry, 0)
        self._fail(Error.ADDRESS, self.layer)
        return 0

    def _register(self, address: int) -> int:
        status = self.busy | self.done << 1 | (self.error != Error.NONE) << 2
        values = {"id": regions.MAGIC, "digest": int(self.config.digest[:8], 16), "control": 0}
        values |= {"status": status, "error": self.error.value, "error_at": self.error_at}
        values |= {"layer": self.layer, "memory": 1, "passes": PASSES}
        return values[list(regions.registers(self.config))[address]]

    def _write(self, address: int, data: int) -> None:
        place = self._place(address, write=True)
        if place is None:
            return
        region, entry, part = place
        if region == Region.REGISTERS:
            self._write_register(list(regions.registers(self.config))[entry], data)
        elif region == Region.MEMORY:
            self.memory[entry] = data
        elif region == Region.LOGITS or (self.config.external and region in tape.WRITTEN):
            self._fail(Error.ADDRESS, self.layer)
        elif region == Region.WEIGHTS:
            self._pass_weights(entry, part, data)
        elif region in TABLES:
            bits = max(table.bits(self.config) for table in Table)
            message = {"table": TABLES[region], "address": address % (1 << bits), "data": data}
            self.passed["records"].append(message)
        elif region == Region.PLANES:
            self._pass_plane_slice(entry, part, data)
        else:
            self.staged = [*self.staged[:part], data]
            self._store(entry, part)

    def _write_register(self, name: str, data: int) -> None:
        if name == "control" and data & CLEAR:
            self.done, self.error, self.error_at = False, Error.NONE, 0
        elif name == "control" and data & START:
            self.busy, self.done = True, False
        else:
            self._fail(Error.ADDRESS, self.layer)

    def _pass_weights(self, row: int, part: int, data: int) -> None:
        each, bits = regions.weight_slice_lanes(self.config), self.config.weight_bits
        values = {part * each + i: _signed(data >> i * bits, bits) for i in range(each)}
        self.passed["weights"].append({"addr": row, "data": values})

    def _pass_plane_slice(self, entry: int, part: int, data: int) -> None:
        """The data repeated in every slice of the word; only one slice is enabled."""
        config = self.config
        slices = regions.slices(config)[Region.PLANES]
        granules = config.word // config.granule // slices
        copies = sum(data << SLICE * i for i in range(-(-config.word // SLICE)))
        message = {"addr": entry, "data": copies % (1 << config.word)}
        enable = ((1 << granules) - 1) << granules * part
        self.passed["plane_write"].append(message | {"enable": enable, "first": int(part == 0)})

    def _store(self, entry: int, part: int) -> None:
        """The values of a parameter that are complete with this slice."""
        config = self.config
        address, unit = divmod(entry, config.units)
        word = sum(slice_ << SLICE * i for i, slice_ in enumerate(self.staged))
        found, values = isa.PARAM.decode(config, word), {}
        names = isa.parameters(config)
        for i, name in enumerate(names):
            if isa.PARAM.slots(config)[name].last_slice == part:
                values[len(names) * unit + i] = _signed(found[name], config.membrane_bits)
        if values:
            self.passed["params"].append({"addr": address, "data": values})


def _signed(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half) % (2 * half) - half


def random_steps(source: random.Random, config: CoreConfig, count: int) -> list[Step]:
    """Whole entries, reads, unused addresses, and runs, during which most accesses are refused."""
    steps: list[Step] = []
    busy = False
    while len(steps) < count:
        if source.random() < 0.15:
            if busy:
                error = source.choice((Error.NONE, Error.RUN))
                steps.append(Finish(error=error, at=source.randrange(9) if error else 0))
            else:
                steps.append(Write(address=regions.REGISTERS["control"].address, data=START))
            busy = not busy
        elif source.random() < 0.2:
            steps.append(Write(address=regions.REGISTERS["control"].address, data=CLEAR))
        else:
            steps += _random_request(source, config)
    if busy:
        steps.append(Finish(error=Error.NONE, at=0))
    return steps


def _random_request(source: random.Random, config: CoreConfig) -> Iterator[Step]:
    slices, entries = regions.slices(config), regions.entries(config)
    region = source.choice(regions.reached(config))
    entry = source.randrange(min(entries[region], MOST_ENTRIES))
    kind = source.random()
    if kind < 0.1:  # the entry after the last one, or a region that does not exist
        absent = region << regions.SHIFT | entries[region] << (slices[region] - 1).bit_length()
        address = source.choice((absent, source.randrange(9, 16) << regions.SHIFT))
        yield source.choice((Read(address=address), Write(address=address, data=1)))
    elif region == Region.REGISTERS:
        steady = (*STEADY, "memory", "passes") if config.external else STEADY
        yield Read(address=regions.registers(config)[source.choice(steady)].address)
        yield Write(address=regions.REGISTERS["layer"].address, data=source.getrandbits(32))
    elif region in (Region.LOGITS, Region.PLANES, Region.MEMORY) and kind < 0.6:
        for part in range(slices[region]):
            yield Read(address=regions.address(config, region, entry, part))
    else:
        for part in range(slices[region]):
            address = regions.address(config, region, entry, part)
            yield Write(address=address, data=source.getrandbits(32))
