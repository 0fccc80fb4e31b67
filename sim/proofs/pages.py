"""The queue of pages between an SDRAM and the consumer of its words."""

from __future__ import annotations

from types import ModuleType

from amaranth import Mux, Signal

from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_BITS, _WORDS, _LATENCY = 1, 2, 3
_NUMBER = 4  # bits that count all words of a proof


def _pages(code: ModuleType) -> Contract:
    """The solver chooses one word by its number: it leaves as it came, in its turn.

    Words are shown in their order. The age of the chosen one counts the cycles since it was shown.
    """
    c = Contract()
    block = c.add(code.PageQueue(bits=_BITS, words=_WORDS))
    c.obeys(block.o)
    put, get = block.store.valid, block.o.valid & block.o.ready
    number = c.fixed(_NUMBER, "number")
    stored, shown, taken = (Signal(_NUMBER, name=name) for name in ("stored", "shown", "taken"))
    word, last, age = Signal(_BITS), Signal(), Signal(range(_LATENCY + 1))
    c.assume(~put | (stored - taken != 2 * _WORDS))
    c.assume(~block.show | put | (shown != stored))
    c.m.d.sync += [
        stored.eq(stored + put),
        shown.eq(shown + block.show),
        taken.eq(taken + get),
        age.eq(Mux((age == 0) | (age == _LATENCY), age, age + 1)),
    ]
    with c.m.If(put & (stored == number)):
        c.m.d.sync += [word.eq(block.store.word), last.eq(block.store.last)]
    with c.m.If(block.show & (shown == number)):
        c.m.d.sync += age.eq(1)
    turn = taken == number
    c.must(~turn | (block.o.valid == (age == _LATENCY)))
    c.must(~(turn & block.o.valid) | (block.o.payload == word))
    c.must(~turn | (block.freed == (get & last)))
    return c


PROOFS = (
    Proof(
        name="page-queue",
        says="a PageQueue of 2 pages of 2: order, latency of 3 after a page, room when a read ends",
        module="lbq_hw.core.external.page_queue",
        contract=_pages,
        bug=Bug(
            old="(shown != 0) & (~read_one | move)", new="(shown != 0) & (~read_one | self.o.ready)"
        ),
        cycles=10,
        fast=True,
    ),
)
