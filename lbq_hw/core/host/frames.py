"""Frames of the link, see `lbq_hw.isa.link`: bytes to checked requests, replies to bytes."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from lbq_hw.core.host.uart import Received
from lbq_hw.core.memory.hints import APART
from lbq_hw.isa.link import CRC_BYTES, ESCAPE, ESCAPED, FLAG

__all__ = ["FrameReceiver", "FrameTransmitter", "ReplyByte"]

_FIRST = 2  # so that data words begin at a multiple of 4, and end before 256
_LEAST = _FIRST + 6 + CRC_BYTES


class SerialCrc(wiring.Component):
    """CRC-32 of bytes, one bit per cycle: the smallest form, and faster than bytes on the line.

    Members
    -------
    clear : in
        Begin a frame.
    byte : in
        Stays as it is while ``run``.
    run : in
        Work on it.
    drain : in
        With ``run``: shift the CRC's next byte to its lowest bits, instead.
    last : out
        The eighth cycle of ``run``.
    crc : out
    match : out
        The bytes so far end in their own CRC.
    """

    clear: In(1)
    byte: In(8)
    run: In(1)
    drain: In(1)
    last: Out(1)
    crc: Out(32)
    match: Out(1)

    def elaborate(self, _platform):
        m = Module()
        unit = catalog.CRC32_ISO_HDLC(data_width=1).create()
        m.submodules.unit = ResetInserter(self.clear)(unit)  # smaller than its own `start`
        place = Signal(3)
        m.d.comb += [
            # While draining, the data bit equals the bit that leaves, so that nothing is fed back.
            unit.data.eq(Mux(self.drain, ~unit.crc[0], self.byte.bit_select(place, 1))),
            unit.valid.eq(self.run),
            self.last.eq(self.run & (place == 7)),
            self.crc.eq(unit.crc),
            self.match.eq(unit.match_detected),
        ]
        with m.If(self.run):
            m.d.sync += place.eq(place + 1)
        return m


class FrameReceiver(wiring.Component):
    """Keeps one frame with a right CRC for the reader, while the next comes in.

    Frames that are broken, too short, too long, or of a length that no request has are dropped;
    so is one that is complete while ``full``. Nothing of a dropped frame is ever seen.

    Timing. Takes a byte in 8 cycles, a flag or an escape in one. ``full`` rises in the cycle after
    the flag that ends a frame. ``byte`` is the frame's at ``index`` of the cycle before.

    Members
    -------
    i : stream of `Received`
    lost : in
        A byte after the one on ``i`` is lost: the frame is broken.
    full : out
        A frame is there.
    free : in
        The reader is done with it; ``full`` falls.
    words : out
        Data words of the frame.
    index : in
        Of the byte to be read: 0 to 7 are the head, where 0 and 1 hold nothing.
    byte : out
    """

    i: In(stream.Signature(Received()))
    lost: In(1)
    full: Out(1)
    free: In(1)
    words: Out(6)
    index: In(8)
    byte: Out(8)

    def elaborate(self, _platform):
        m = Module()
        m.submodules.check = check = SerialCrc()
        # The frame that comes in has one half, the frame that is there has the other.
        m.submodules.store = store = memory.Memory(shape=8, depth=512, init=[], attrs=APART)
        write, read = store.write_port(), store.read_port()
        half = Signal()
        place = Signal(9, init=_FIRST)  # 256: too long
        escaped, spoiled, good = Signal(), Signal(), Signal()
        flag, escape, plain = Signal(), Signal(), Signal()
        arrived = self.i.payload

        m.d.comb += [
            flag.eq((arrived.data == FLAG) & ~arrived.broken),
            escape.eq((arrived.data == ESCAPE) & ~arrived.broken),
            plain.eq(~(flag | escape | arrived.broken)),
            check.byte.eq(arrived.data ^ Mux(escaped, ESCAPED, 0)),
            check.run.eq(self.i.valid & plain),
            check.clear.eq(self.i.valid & flag),
            self.i.ready.eq(check.last | ~plain),
            good.eq(
                check.match
                & ~(spoiled | escaped | place[8])
                & (place[:8] >= _LEAST)
                & (place[:2] == _LEAST % 4)
            ),
            write.addr.eq(Cat(place[:8], half)),
            write.data.eq(check.byte),
            write.en.eq(check.last & ~place[8]),
            read.addr.eq(Cat(self.index, ~half)),
            self.byte.eq(read.data),
        ]
        with m.If(self.free):
            m.d.sync += self.full.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += escaped.eq(escape)
            with m.If(arrived.broken):
                m.d.sync += spoiled.eq(1)
            with m.If(flag):
                m.d.sync += [place.eq(_FIRST), spoiled.eq(0)]
                with m.If(good & ~self.full):
                    m.d.sync += [
                        self.full.eq(1),
                        half.eq(~half),
                        self.words.eq(place[2:8] - _LEAST // 4),
                    ]
            with m.If(plain & ~place[8]):
                m.d.sync += place.eq(place + 1)
        with m.If(self.lost):
            m.d.sync += spoiled.eq(1)
        return m


class ReplyByte(data.StructLayout):
    """A byte of a reply.

    Members
    -------
    data : 8 bits
    last : bit
        The frame ends after it.
    """

    def __init__(self):
        super().__init__({"data": 8, "last": 1})


class FrameTransmitter(wiring.Component):
    """Sends frames: escapes bytes, and adds the CRC and the flag.

    Timing. A byte is offered 9 cycles after it was taken, behind an escape one cycle later. The
    next byte is taken, or the CRC's begun, in the cycle after it has left.

    Members
    -------
    i : stream of `ReplyByte`
    o : stream of bytes
    busy : out
        A frame has begun and its flag has not left.
    """

    i: In(stream.Signature(ReplyByte()))
    o: Out(stream.Signature(8))
    busy: Out(1)

    def elaborate(self, _platform):
        m = Module()
        m.submodules.check = check = SerialCrc()
        plain = Signal(8)
        begun, ended, escaped, special = Signal(), Signal(), Signal(), Signal()
        tail = Signal(range(CRC_BYTES + 2))  # after the last byte: which of the CRC, or the flag
        closing = tail == CRC_BYTES + 1
        m.d.comb += [
            check.clear.eq(~begun),
            check.byte.eq(plain),
            check.drain.eq(tail != 0),
            special.eq(((plain == FLAG) | (plain == ESCAPE)) & ~escaped & ~closing),
            self.o.payload.eq(plain ^ Mux(escaped, ESCAPED, 0)),
            self.busy.eq(begun),
        ]
        with m.If(special):
            m.d.comb += self.o.payload.eq(ESCAPE)
        with m.FSM():
            with m.State("NEXT"):
                m.d.comb += self.i.ready.eq(~ended)
                with m.If(ended):
                    m.d.sync += [plain.eq(check.crc[:8]), tail.eq(tail + 1)]
                    with m.If(tail == CRC_BYTES):
                        m.d.sync += plain.eq(FLAG)
                    m.next = "CHECK"
                with m.Else():
                    m.d.sync += plain.eq(self.i.payload.data)
                    with m.If(self.i.valid):
                        m.d.sync += [begun.eq(1), ended.eq(self.i.payload.last)]
                        m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += check.run.eq(1)
                with m.If(check.last):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += escaped.eq(special)
                    with m.If(~special):
                        m.next = "NEXT"
                    with m.If(closing):
                        m.d.sync += [begun.eq(0), ended.eq(0), tail.eq(0)]
        return m
