"""Parts of `Link`: the bytes of frames, see `lbq_hw.isa.link`, in both directions."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.host.uart import Received
from lbq_hw.isa.link import CRC_BYTES, ESCAPE, ESCAPED, FLAG, FRAME_WORDS

__all__ = ["HEAD_INDEX", "FrameByte", "FrameEscapes", "FrameReceiver", "SerialCrc"]

HEAD_INDEX = 256 - 6 - CRC_BYTES
"""Index of a frame's first byte, chosen so that a frame without data words ends at index 256."""
_MOST = 256 + 4 * FRAME_WORDS


class SerialCrc(wiring.Component):
    """CRC-32 of bytes, one bit per cycle: the smallest form, and faster than bytes on the line.

    Members
    -------
    clear : in
        Begin a frame.
    byte : in
        Stable while ``run``.
    run : in
        Process ``byte``.
    drain : in
        With ``run``: do not process ``byte``, but shift the next byte of ``crc`` to its lowest
        bits.
    last : out
        The eighth cycle of ``run``.
    crc : out
    differs : out
        The bit of ``byte`` that is processed in this cycle differs from the lowest bit of ``crc``.
    """

    clear: In(1)
    byte: In(8)
    run: In(1)
    drain: In(1)
    last: Out(1)
    crc: Out(32)
    differs: Out(1)

    def elaborate(self, _platform):
        m = Module()
        unit = catalog.CRC32_ISO_HDLC(data_width=1).create()
        m.submodules.unit = ResetInserter(self.clear)(unit)  # smaller than its own `start`
        place = Signal(3)
        bit = self.byte.bit_select(place, 1)
        m.d.comb += [
            # While draining, the data bit equals the bit shifted out, so that nothing is fed back.
            unit.data.eq(Mux(self.drain, ~unit.crc[0], bit)),
            unit.valid.eq(self.run),
            self.last.eq(self.run & (place == 7)),
            self.crc.eq(unit.crc),
            self.differs.eq(bit ^ unit.crc[0]),
        ]
        with m.If(self.clear):
            m.d.sync += place.eq(0)
        with m.Elif(self.run):
            m.d.sync += place.eq(place + 1)
        return m


class FrameReceiver(wiring.Component):
    """Receives frames into a double buffer: one half fills while the reader reads the other.

    A frame is dropped if it is broken, too short, too long, or of a length that no request has. A
    frame that completes while ``kept`` is dropped, too. The reader checks the CRC. Until ``kept``
    rises, the next complete frame replaces this one.

    Timing. Takes a byte per cycle. ``full`` rises in the cycle after the flag that ends a frame.
    ``byte`` is the frame's byte at the ``index`` of the previous cycle.

    Members
    -------
    i : stream of `Received`
    full : out
        A frame has arrived that the reader has not taken.
    frame_arrives : out
        A frame arrives: it can be read from the next cycle on.
    take : in
        The reader has read the CRC; ``full`` falls, unless ``frame_arrives``.
    kept : in
        The reader still needs the frame that it took.
    words : out
        With ``frame_arrives``: number of data words of that frame.
    index : in
        Index of the byte to be read, modulo 256; the first byte is at `HEAD_INDEX`.
    byte : out
    """

    i: In(stream.Signature(Received(), always_ready=True))
    full: Out(1)
    frame_arrives: Out(1)
    take: In(1)
    kept: In(1)
    words: Out(6)
    index: In(8)
    byte: Out(8)

    def elaborate(self, _platform):
        m = Module()
        # One half receives a frame, the other half holds the frame for the reader.
        m.submodules.store = store = memory.Memory(shape=8, depth=512, init=[], attrs=APART)
        write, read = store.write_port(), store.read_port()
        half = Signal()
        place = Signal(9, init=HEAD_INDEX)
        escaped, frame_bad, good = Signal(), Signal(), Signal()
        flag, escape, plain = Signal(), Signal(), Signal()
        arrived = self.i.payload

        m.d.comb += [
            flag.eq((arrived.data == FLAG) & ~arrived.broken),
            escape.eq((arrived.data == ESCAPE) & ~arrived.broken),
            plain.eq(~(flag | escape | arrived.broken)),
            good.eq(~(frame_bad | escaped) & place[8] & (place[:2] == 0)),
            self.frame_arrives.eq(self.i.valid & flag & good & ~self.kept),
            self.words.eq(place[2:8]),
            write.addr.eq(Cat(place[:8], half)),
            write.data.eq(arrived.data ^ Mux(escaped, ESCAPED, 0)),
            write.en.eq(self.i.valid & plain),
            read.addr.eq(Cat(self.index, ~half)),
            self.byte.eq(read.data),
        ]
        with m.If(self.take):
            m.d.sync += self.full.eq(0)
        with m.If(self.frame_arrives):
            m.d.sync += [self.full.eq(1), half.eq(~half)]
        with m.If(self.i.valid):
            m.d.sync += escaped.eq(escape)
            with m.If(arrived.broken | (plain & (place >= _MOST))):
                m.d.sync += frame_bad.eq(1)
            with m.If(plain):
                m.d.sync += place.eq(place + 1)
            with m.If(flag):
                m.d.sync += [place.eq(HEAD_INDEX), frame_bad.eq(0)]
        return m


class FrameByte(data.StructLayout):
    """A byte of a frame to the host, before escapes are inserted.

    Members
    -------
    data : 8 bits
    flag : bit
        The flag that ends the frame; ``data`` is ignored.
    """

    def __init__(self):
        super().__init__({"data": 8, "flag": 1})


class FrameEscapes(wiring.Component):
    """Inserts an escape before each byte that equals a flag or an escape.

    Timing. ``o`` is combinational. A byte with an escape is offered in the cycle after the escape
    was taken. A byte is taken from ``i`` in the cycle in which it is taken from ``o``.

    Members
    -------
    i : stream of `FrameByte`
    o : stream of bytes
    """

    i: In(stream.Signature(FrameByte()))
    o: Out(stream.Signature(8))

    def elaborate(self, _platform):
        m = Module()
        plain, flag = self.i.payload.data, self.i.payload.flag
        special, escaped = Signal(), Signal()
        m.d.comb += [
            special.eq(((plain == FLAG) | (plain == ESCAPE)) & ~escaped & ~flag),
            self.o.payload.eq(plain ^ Mux(escaped, ESCAPED, 0)),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & ~special),
        ]
        with m.If(special):
            m.d.comb += self.o.payload.eq(ESCAPE)
        with m.If(flag):
            m.d.comb += self.o.payload.eq(FLAG)
        with m.If(self.i.valid & self.o.ready):
            m.d.sync += escaped.eq(special)
        return m
