"""Frames of the link: their CRC, their escapes, and a receiver that always comes back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Mux, Signal

from lbq_hw.isa.link import ESCAPE, ESCAPED, FLAG
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_MODULE = "lbq_hw.core.host.frames"
POLYNOMIAL = 0xEDB88320
"""Of the CRC-32, lowest bit first."""
SHORTEST = 10
"""Bytes of a frame without data: head, address and CRC."""


def shifted(crc: Any, bit: Any) -> Any:
    """The register of a CRC after one more bit of data."""
    return (crc >> 1) ^ Mux(crc[0] ^ bit, POLYNOMIAL, 0)


def _crc(code: ModuleType) -> Contract:
    """Two bytes with waits in between: the CRC of the textbook, which shows its inverse."""
    c = Contract()
    unit = c.add(code.SerialCrc())
    crc, place = Signal(32, init=0xFFFFFFFF), Signal(3)
    bit = unit.byte.bit_select(place, 1)
    c.assume(~unit.drain)
    with c.m.If(unit.clear):
        c.m.d.sync += [crc.eq(0xFFFFFFFF), place.eq(0)]
    with c.m.Elif(unit.run):
        c.m.d.sync += [crc.eq(shifted(crc, bit)), place.eq(place + 1)]
    c.must(unit.crc == ~crc)
    c.must(unit.last == (unit.run & (place == 7)))
    c.must(unit.differs == (bit ^ unit.crc[0]))
    return c


def _linear(code: ModuleType) -> Contract:
    """Two units on two streams of bytes: how they differ depends on how the bytes differ alone."""
    c = Contract()
    one, other = c.add(code.SerialCrc(), "one"), c.add(code.SerialCrc(), "other")
    for name in ("run", "clear", "drain"):
        c.assume(getattr(one, name) == getattr(other, name))
    c.assume(~(one.clear | one.drain))
    difference, bits = one.crc ^ other.crc, one.differs ^ other.differs ^ one.crc[0] ^ other.crc[0]
    after = Mux(one.run, shifted(difference, bits), difference)
    c.must(difference == c.before(after, 1), after=1)
    return c


def _escapes(code: ModuleType) -> Contract:
    """The output, decoded by a receiver, equals the input, and a flag occurs only at the end."""
    c = Contract()
    block = c.add(code.FrameEscapes())
    c.offered(block.i)
    c.obeys(block.o)
    sent, given, escaped = block.o.payload, block.i.payload, Signal()
    leaves, taken = block.o.valid & block.o.ready, block.i.valid & block.i.ready
    with c.m.If(leaves):
        c.m.d.sync += escaped.eq(~escaped & (sent == ESCAPE))
        with c.m.If(escaped):
            c.must(~leaves | (taken & ~given.flag & ((sent ^ ESCAPED) == given.data)))
    plain = leaves & ~escaped
    meaning = Mux(
        sent == FLAG,
        taken & given.flag,
        Mux(sent == ESCAPE, ~taken & ~given.flag, taken & ~given.flag & (sent == given.data)),
    )
    c.must(~plain | meaning)
    c.must(~(leaves & escaped) | ((sent != FLAG) & (sent != ESCAPE)))
    c.must(~taken | leaves)
    return c


def _bytes(c: Contract, receiver: Any) -> tuple[Any, Any, Any, Any]:
    """Whether a byte comes, and whether it is a flag, an escape or plain."""
    byte, comes = receiver.i.payload, receiver.i.valid
    whole = comes & ~byte.broken
    flag, escape = whole & (byte.data == FLAG), whole & (byte.data == ESCAPE)
    del c
    return comes, flag, escape, whole & ~flag & ~escape


def _accepts(code: ModuleType) -> Contract:
    """A frame is accepted exactly if it is complete, has no broken byte, and has the length of a
    request.
    """
    c = Contract()
    receiver = c.add(code.FrameReceiver())
    comes, flag, escape, plain = _bytes(c, receiver)
    count, spoiled, escaped = Signal(6), Signal(), Signal()
    with c.m.If(comes):
        c.m.d.sync += [escaped.eq(escape), count.eq(count + plain)]
        with c.m.If(receiver.i.payload.broken):
            c.m.d.sync += spoiled.eq(1)
        with c.m.If(flag):
            c.m.d.sync += [count.eq(0), spoiled.eq(0)]
    legal = (count >= SHORTEST) & ((count - SHORTEST)[:2] == 0) & ~spoiled & ~escaped
    c.must(receiver.frame_arrives == (flag & legal & ~receiver.kept))
    c.must(~receiver.frame_arrives | (receiver.words == (count - SHORTEST) >> 2))
    c.must(~c.before(receiver.frame_arrives, 1) | receiver.full, after=1)
    return c


def _returns(code: ModuleType) -> Contract:
    """Whatever came before: after a flag, plain bytes of a request and a flag are a frame."""
    c = Contract()
    receiver = c.add(code.FrameReceiver())
    comes, flag, _, plain = _bytes(c, receiver)
    began = c.before(comes & flag, SHORTEST + 1)
    for cycle in range(1, SHORTEST + 1):
        began &= c.before(comes & plain, cycle)
    c.must(~(began & flag & ~receiver.kept) | receiver.frame_arrives, after=SHORTEST + 1)
    return c


PROOFS = (
    Proof(
        name="crc",
        says="SerialCrc: the CRC-32 of two bytes, with stalls and restarts",
        module=_MODULE,
        contract=_crc,
        bug=Bug(old="ResetInserter(self.clear)(unit)", new="unit"),
        cycles=20,
    ),
    Proof(
        name="crc-linear",
        says="SerialCrc: flipped bits change the CRC by the same bits for all data",
        module=_MODULE,
        contract=_linear,
        bug=Bug(old="Mux(self.drain, ~unit.crc[0], bit)", new="bit & ~unit.crc[0]"),
        cycles=3,
        always=True,
        fast=True,
    ),
    Proof(
        name="escapes",
        says="FrameEscapes: a receiver reads the bytes that were sent; flags only end frames",
        module=_MODULE,
        contract=_escapes,
        bug=Bug(old="escaped.eq(special)", new="escaped.eq(special & self.o.ready & escaped)"),
        cycles=8,
        fast=True,
    ),
    Proof(
        name="receiver-accepts",
        says="FrameReceiver: accepts only complete frames of a request, of up to 2 data words",
        module=_MODULE,
        contract=_accepts,
        bug=Bug(old="~(frame_bad | escaped)", new="~frame_bad"),
        cycles=22,
    ),
    Proof(
        name="receiver-returns",
        says="FrameReceiver: from every state, the frame after a flag is received",
        module=_MODULE,
        contract=_returns,
        bug=Bug(old="[place.eq(HEAD_INDEX), frame_bad.eq(0)]", new="[place.eq(HEAD_INDEX)]"),
        cycles=SHORTEST + 3,
        always=True,
        fast=True,
    ),
)
