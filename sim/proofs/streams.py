"""The parts that streams are made of, against a list of the items that wait."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_BITS: Any = 2  # of an item: the parts treat all bits of it alike


def _in_order(block: Any, *, depth: int, latency: int) -> Contract:
    """Items leave in the order in which they came, none is lost, and each is offered in time.

    The list has the age of every item: the first item is offered once it is `latency` cycles old.
    While an item is offered, there is room for `depth` items.
    """
    c = Contract()
    c.add(block)
    c.offered(block.i)
    c.obeys(block.o)
    m, count = c.m, Signal(range(depth + 2))
    items = [Signal(_BITS, name=f"item_{place}") for place in range(depth + 1)]
    ages = [Signal(range(latency + 1), name=f"age_{place}") for place in range(depth + 1)]
    put, get = block.i.valid & block.i.ready, block.o.valid & block.o.ready
    left = count - get
    m.d.sync += count.eq(left + put)
    for place in range(depth):
        older = [Mux(age == latency, latency, age + 1) for age in ages[place : place + 2]]
        m.d.sync += [
            items[place].eq(Mux(get, items[place + 1], items[place])),
            ages[place].eq(Mux(get, older[1], older[0])),
        ]
        with m.If(put & (left == place)):
            m.d.sync += [items[place].eq(block.i.payload), ages[place].eq(1)]
    c.must(~block.o.valid | ((count != 0) & (Value.cast(block.o.payload) == items[0])))
    c.must(block.o.valid | (count == 0) | (ages[0] < latency))
    c.must(~block.o.valid | (ages[0] >= latency))
    c.must(count <= depth)
    c.must(block.i.ready | ~block.o.valid | (count == depth))
    return c


def _credit(code: ModuleType, room: int, returns: int) -> Contract:
    c = Contract()
    block = c.add(code.Credit(room=room, returns=returns))
    owed, back = Signal(range(room + 2)), sum(block.returned)
    c.assume(~block.sent | (owed < room))
    c.assume(back <= owed + block.sent)
    c.m.d.sync += owed.eq(owed + block.sent - back)
    c.must(block.available == (owed < room))
    return c


def _staged(code: ModuleType) -> Contract:
    """Two pipeline stages behind the first, as a stream, which waits if both are full."""

    class Staged(wiring.Component):
        def __init__(self) -> None:
            super().__init__({name: flow(stream.Signature(_BITS)) for name, flow in _STREAMS})

        def elaborate(self, _platform: Any) -> Module:
            m: Any = Module()
            port: Any = self
            first = code.Stage("first", _BITS)
            last = first.later(m, "second").later(m, "third")
            m.d.comb += [
                first.valid.eq(port.i.valid),
                first.payload.eq(port.i.payload),
                port.i.ready.eq(first.free),
                port.o.valid.eq(last.valid),
                port.o.payload.eq(last.payload),
                last.free.eq(port.o.ready),
            ]
            return m

    return _in_order(Staged(), depth=2, latency=2)


_STREAMS = (("i", In), ("o", Out))


def _queue(depth: int) -> Proof:
    return Proof(
        name=f"queue-{depth}",
        says=f"a Queue of {depth}: order, room, latency of 2, and no read of a word being written",
        module="lbq_hw.core.stream.queue",
        contract=lambda code: _in_order(code.Queue(_BITS, depth=depth), depth=depth, latency=2),
        bug=Bug(old="(stored != 0) & (~self.o.valid", new="(stored != 0) & (self.i.valid"),
        cycles=8 + depth,
        fast=depth == 3,
    )


def _short_queue(depth: int) -> Proof:
    return Proof(
        name=f"short-queue-{depth}",
        says=f"a ShortQueue of {depth}: order, room, latency of 1",
        module="lbq_hw.core.stream.queue",
        contract=lambda code: _in_order(
            code.ShortQueue(_BITS, depth=depth), depth=depth, latency=1
        ),
        bug=Bug(old="items.r_en.eq(self.o.ready)", new="items.r_en.eq(self.i.valid)"),
        cycles=8 + depth,
    )


PROOFS = (
    *(_queue(depth) for depth in (3, 4, 5)),
    *(_short_queue(depth) for depth in (2, 3)),
    Proof(
        name="register-slice",
        says="a RegisterSlice: order, room for 2, latency of 1",
        module="lbq_hw.core.stream.register_slice",
        contract=lambda code: _in_order(code.RegisterSlice(_BITS), depth=2, latency=1),
        bug=Bug(
            old="free_next[i].eq((free[i] | leaves) & ~comes)",
            new="free_next[i].eq(free[i] | leaves)",
        ),
        cycles=12,
        fast=True,
    ),
    Proof(
        name="credit",
        says="Credit for 3 items, returned on 2 ports: room exactly while fewer are in flight",
        module="lbq_hw.core.stream.credit",
        contract=lambda code: _credit(code, 3, 2),
        bug=Bug(old="left = left - back", new="left = left - self.returned[0]"),
        cycles=12,
        fast=True,
    ),
    Proof(
        name="stages",
        says="stages of a pipeline: order, and nothing is lost in a stall",
        module="lbq_hw.core.stream.stage",
        contract=_staged,
        bug=Bug(old="~following.valid | following.free", new="following.free"),
        cycles=12,
    ),
)
