"""Decides when the passes of a tape begin, and when the run ends."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.external.tape_reader import PASS_BITS

__all__ = ["PassControl"]


class PassControl(wiring.Component):
    """Begins each pass when the tape allows it, and ends the run after the last pass or an error.

    The run is over when the last pass is done, END has been read, and every allowed pass has begun.
    This block reports ORDER for a tape that waits for a pass which it has not allowed, ends before
    the last pass is allowed, allows a pass after the last one, or allows more than 65,535 passes.
    After an error, ``stop`` ends the current pass.

    Timing. ``begin`` is 1 in the cycle after ``allow``, or, if that is later, in the cycle in which
    the previous pass is done. ``finished`` is 1 in the first cycle in which the run is over; after
    an error the walker is idle in that cycle.

    Members
    -------
    start : in
        A run begins.
    allow, waiting, ended, tape_error : in
        As `TapeReader` has them.
    paused : in
        The current pass is done, and is not the last one.
    over : in
        The current pass is done, and was the last one or had an error.
    idle : in
        Nothing is in flight in walker, lanes, neurons and writer.
    stray : in
        An event has a weight row that does not exist, which is an error, too.
    walk_error : in
        The walker's error, valid with ``over``.
    begin : out
        The next pass begins.
    begun, resting : out
        As `TapeReader` takes them.
    done : out
        Number of passes done, two cycles late; it is frozen by an error.
    waits : out
        In the previous cycle no pass ran, because the next one was not allowed.
    stop : out
        Level, from the cycle after an error until the next start.
    finished : out
    error : out
        An `ErrorCode`, valid with ``finished``; NONE for an error by ``stray``.
    """

    start: In(1)
    allow: In(1)
    waiting: In(1)
    ended: In(1)
    tape_error: In(ErrorCode)
    paused: In(1)
    over: In(1)
    idle: In(1)
    stray: In(1)
    walk_error: In(ErrorCode)
    begin: Out(1)
    begun: Out(PASS_BITS)
    resting: Out(1)
    done: Out(PASS_BITS)
    waits: Out(1)
    stop: Out(1)
    finished: Out(1)
    error: Out(ErrorCode)

    def elaborate(self, _platform):
        m = Module()
        active, running, last = Signal(), Signal(), Signal()
        allowed, permit = Signal(PASS_BITS), Signal()  # permit: allowed != begun
        order, ends, fails = Signal(), Signal(), Signal()
        failure = Signal(ErrorCode)  # the error of the tape
        going = active & ~self.stop
        free = going & Mux(running, self.paused, ~last)  # the next pass can begin
        m.d.comb += [
            ends.eq(running & self.over),
            self.begin.eq(free & permit),
            self.resting.eq(~running | self.paused | self.over),
            fails.eq(going & (order | self.stray | (self.tape_error != 0)
                              | (ends & (self.walk_error != 0)))),
            self.finished.eq(
                active
                & Mux(self.stop, self.idle, ~fails & (last | ends) & self.ended & ~permit)
            ),
            self.error.eq(Mux(failure != 0, failure, self.walk_error)),
        ]  # fmt: skip
        with m.If(self.allow & (allowed + 1 == 1 << PASS_BITS)):
            m.d.comb += order.eq(1)
        with m.Elif(~running):
            m.d.comb += order.eq(
                Mux(last, permit | self.waiting, ~permit & (self.waiting | self.ended))
            )

        m.d.sync += self.waits.eq(self.start | (free & ~permit))
        with m.If(~self.stop):
            m.d.sync += self.done.eq(self.begun - running)
        with m.If(self.allow):
            m.d.sync += [allowed.eq(allowed + 1), permit.eq(1)]
        with m.Elif(self.begin):
            m.d.sync += permit.eq(allowed != (self.begun + 1)[:PASS_BITS])
        with m.If(self.begin):
            m.d.sync += [running.eq(1), self.begun.eq(self.begun + 1)]
        with m.Elif(self.paused | self.over):
            m.d.sync += running.eq(0)
        with m.If(ends):
            m.d.sync += last.eq(1)
        with m.If(fails):
            m.d.sync += [self.stop.eq(1), failure.eq(self.tape_error)]
            with m.If(order):
                m.d.sync += failure.eq(ErrorCode.ORDER)
        with m.If(self.finished):
            m.d.sync += active.eq(0)
        with m.If(self.start):
            m.d.sync += [active.eq(1), running.eq(0), last.eq(0), self.stop.eq(0)]
            m.d.sync += [allowed.eq(0), permit.eq(0), self.begun.eq(0)]
            m.d.sync += failure.eq(0)
        return m
