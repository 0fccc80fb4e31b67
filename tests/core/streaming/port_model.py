"""What the requests of a host do in a streaming core."""

from __future__ import annotations

from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import SHIFT
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import CLEAR, REGISTERS, RESET, STEP, StreamError, StreamRegion

CONTROL = REGISTERS.index("control")
WRITTEN = [StreamRegion[name] for name in ("RECORDS", "TAPS", "ROWS", "WEIGHTS", "PARAMS")]
READ = [StreamRegion[name] for name in ("MEMBRANES", "LEVELS", "MAPS")]


def place(c: StreamConfig, address: int) -> tuple[StreamRegion, int, int] | None:
    """Region, entry and slice, if they exist."""
    if address >> SHIFT not in set(StreamRegion):
        return None
    region, below = StreamRegion(address >> SHIFT), address & ((1 << SHIFT) - 1)
    parts = records.slices(c, region)
    bits = (parts - 1).bit_length()
    entry, part = below >> bits, below & ((1 << bits) - 1)
    exists = entry < records.depths(c)[region] and part < parts
    return (region, entry, part) if exists else None


class Model:
    """What requests do, each in the cycle in which it is taken.

    Known are the words of memories, the cycles in which steps and resets finished and membranes
    overflowed, and the layer of each cycle.
    """

    def __init__(
        self,
        c: StreamConfig,
        memories: dict[StreamRegion, list[int]],
        finished: list[int],
        overflows: list[int],
        layers: list[int],
    ) -> None:
        self.config, self.memories = c, memories
        self.finished, self.overflows, self.layers = finished, list(overflows), layers
        self.error = StreamError.NONE
        self.began = self.ended = -1  # when the last step or reset did
        self.forgotten = True  # that it is done
        self.steps = self.epoch = 0
        self.entry: tuple[StreamRegion, int] | None = None  # whose slices are being written
        self.slices: list[int] = []
        self.answers: dict[int, int] = {}
        self.writes: dict[tuple[int, StreamRegion, int], int | None] = {}
        self.runs: list[tuple[int, int]] = []
        self.events: dict[int, int] = {}
        self.started: dict[str, list[int]] = {"step": [], "reset": []}

    def busy(self, cycle: int) -> bool:
        return self.began < cycle <= self.ended

    def request(self, cycle: int, address: int, data: int | None) -> None:
        self._overflow(cycle)
        found = place(self.config, address)
        region = None if found is None else found[0]
        allowed = region in (StreamRegion.REGISTERS, *READ)
        if data is not None:
            allowed = region in (*WRITTEN, StreamRegion.EVENTS) or address == CONTROL
        refused = StreamError.NONE if allowed else StreamError.ADDRESS
        reads_register = data is None and region is StreamRegion.REGISTERS
        if allowed and self.busy(cycle) and not reads_register:
            refused = StreamError.BUSY
        if data is None:
            self.answers[cycle + 2] = 0 if refused or not found else self._read(cycle, *found)
        elif not refused and found:
            self._write(cycle, *found, data)
        self._overflow(cycle + 1)
        self.error = self.error or refused

    def _overflow(self, end: int) -> None:
        """All that came before a cycle."""
        while self.overflows and self.overflows[0] < end:
            self.overflows.pop(0)
            self.error = self.error or StreamError.MEMBRANE

    def _read(self, cycle: int, region: StreamRegion, entry: int, part: int) -> int:
        if region is not StreamRegion.REGISTERS:
            return self.memories[region][entry] >> SLICE * part & ((1 << SLICE) - 1)
        done = not self.forgotten and cycle > self.ended
        values = {
            "id": records.MAGIC,
            "digest": int(self.config.digest[:8], 16),
            "control": 0,
            "status": self.busy(cycle) | done << 1 | bool(self.error) << 2,
            "error": self.error,
            "layer": self.layers[cycle],
            "cycles": min(cycle, self.ended + 1) - (self.began + 1),
            "step": self.steps,
            "epoch": self.epoch,
        }
        return int(values[REGISTERS[entry]])

    def _write(self, cycle: int, region: StreamRegion, entry: int, part: int, data: int) -> None:
        match region:
            case StreamRegion.REGISTERS:
                self._command(cycle, data)
            case StreamRegion.EVENTS:
                self.events[cycle] = data
            case _:
                self._slice(cycle, region, entry, part, data)

    def _slice(self, cycle: int, region: StreamRegion, entry: int, part: int, data: int) -> None:
        """A word is known if no slice of it was refused."""
        if part == 0:
            self.entry, self.slices = (region, entry), []
        self.slices.append(data)
        if part == records.slices(self.config, region) - 1:
            whole = self.entry == (region, entry) and len(self.slices) == part + 1
            word = sum(one << SLICE * i for i, one in enumerate(self.slices))
            width = records.widths(self.config)[region]
            self.writes[cycle, region, entry] = word & ((1 << width) - 1) if whole else None

    def _command(self, cycle: int, data: int) -> None:
        if data & CLEAR:
            self.error, self.forgotten = StreamError.NONE, True
        if data & (STEP | RESET):
            self.started["step" if data & STEP else "reset"].append(cycle)
            self.steps = self.steps + 1 if data & STEP else 0
            self.epoch += not data & STEP
            self.began, self.forgotten = cycle, False
            self.ended = next(end for end in self.finished if end > cycle)
            self.runs.append((self.began, self.ended))
