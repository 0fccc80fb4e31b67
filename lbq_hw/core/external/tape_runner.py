"""Runs a tape: reads it, executes its writes, and begins its passes."""

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.external.pass_control import PassControl
from lbq_hw.core.external.tape_reader import TapeReader
from lbq_hw.core.external.tape_writes import MixedWrites, TapeWrites
from lbq_hw.core.host.registers import error_at_bits

__all__ = ["TapeRunner"]

_WALK = ("paused", "over", "idle", "stray", "walk_error")
_TOLD = ("begin", "stop", "done", "waits", "finished", "error")


class TapeRunner(wiring.Component):
    """Reads a tape from its first word to END, executes its writes, and begins its passes.

    Blocks: `TapeReader` -> `TapeWrites`; `PassControl`. `lbq_hw.cycles.schedule` has the cycle of
    each pass and of the end.

    Members
    -------
    i, start : in
        As in `TapeReader`.
    paused, over, idle, stray, walk_error : in
        As in `PassControl`.
    walk_error_at : in
        The place of the walker's error.
    begin, stop, done, waits, finished, error : out
        As in `PassControl`.
    error_at : out
        The walker's place for an error in a record; otherwise the number of passes done.
    reading : out
        Words are read.
    records, weights, params : out
        As in `TapeWrites`.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        self._reader = reader = TapeReader(config)
        self._writes = writes = (MixedWrites if config.narrow else TapeWrites)(config)
        self._control = control = PassControl()
        at_bits = max(address_bits(getattr(config, name)) for name in isa.TABLES)
        given = control.signature.members
        stored = writes.signature.members
        super().__init__(
            {"i": reader.signature.members["i"], "start": In(1)}
            | {name: given[name] for name in _WALK}
            | {"walk_error_at": In(at_bits)}
            | {name: given[name] for name in _TOLD}
            | {"error_at": Out(error_at_bits(config)), "reading": Out(1)}
            | {name: stored[name] for name in ("records", "weights", "params")}
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.reader = reader = self._reader
        m.submodules.writes = writes = self._writes
        m.submodules.control = control = self._control
        connect(m, flipped(self.i), reader.i)
        for name in ("records", "weights", "params"):
            connect(m, getattr(writes, name), flipped(getattr(self, name)))
        for name in ("written", "addr", "data"):
            m.d.comb += getattr(writes, name).eq(getattr(reader, name))
        for name in ("allow", "waiting", "ended"):
            m.d.comb += getattr(control, name).eq(getattr(reader, name))
        for name in _WALK:
            m.d.comb += getattr(control, name).eq(getattr(self, name))
        for name in _TOLD:
            m.d.comb += getattr(self, name).eq(getattr(control, name))
        of_record = control.error < ErrorCode.TAPE
        m.d.comb += [
            reader.start.eq(self.start),
            control.start.eq(self.start),
            reader.stop.eq(control.stop),
            reader.begun.eq(control.begun),
            reader.resting.eq(control.resting),
            control.tape_error.eq(reader.error),
            self.reading.eq(reader.busy),
            self.error_at.eq(Mux(of_record, self.walk_error_at, control.done)),
        ]
        return m
