"""The link: executes the frames of `lbq_hw.isa.link` on the core's port."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.frames import FrameReceiver, FrameTransmitter
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.host.uart import Received
from lbq_hw.core.walk.records import layout
from lbq_hw.isa import regions
from lbq_hw.isa.link import BAKED, DIVISOR_BITS, LEAST_DIVISOR, REPLY, REQUEST, Command, Status
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["Link"]

_HEAD = layout(REQUEST, CoreConfig(), REQUEST.slots(CoreConfig()))  # of no config
_FIRST, _DATA = 2, 8  # `FrameReceiver`: where the head and the data begin
_BYTES = SLICE // 8
_REPLY_BYTES = REPLY.width(CoreConfig()) // 8


class Link(wiring.Component):
    """Takes requests from a line of bytes, reads and writes through ``port``, and replies.

    A request is executed only after its CRC was right, once, and in the order of the sequence
    numbers; `lbq_hw.isa.link` has the rules. While a request is executed and answered the next one
    may come in. One that is complete before the answer is, is dropped: the host then repeats it.

    No state waits for the host: a request ends after as many cycles as its words take at ``port``
    and its reply at ``o``, and a flag begins a new frame whatever came before it.

    Timing. At a `HostPort`, a word takes 6 cycles to write and 3 to read, and 4 bytes at ``o``.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit after a reset or a break.
    tag : int
        `regions.tag` of what the memories hold after configuration; 0: of nothing.
    far : bool
        The core fills the chip, and a register is halfway to the bytes of a reply.

    Members
    -------
    i : stream of `Received`
    lost : in
        A byte after the one on ``i`` is lost.
    o : stream of bytes
    idle : in
        The line has sent what ``o`` gave.
    divisor : out
        Clock cycles per bit.
    port : `PortSignature`
    """

    def __init__(self, *, divisor: int, tag: int = 0, far: bool = False):
        if not isinstance(divisor, int) or isinstance(divisor, bool):
            raise TypeError(f"divisor must be an integer, not {divisor!r}")
        if not LEAST_DIVISOR <= divisor < 1 << DIVISOR_BITS:
            most = (1 << DIVISOR_BITS) - 1
            raise ValueError(f"divisor must be {LEAST_DIVISOR}..{most}, not {divisor!r}")
        self._tag = tag
        self._far = far
        super().__init__(
            {
                "i": In(stream.Signature(Received())),
                "lost": In(1),
                "o": Out(stream.Signature(8)),
                "idle": In(1),
                "divisor": Out(DIVISOR_BITS, init=divisor),
                "port": Out(PortSignature()),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.transmitter = transmitter = FrameTransmitter()
        head, word = Signal(_HEAD), Signal(SLICE)
        index, ahead = Signal(8, init=_FIRST), Signal(8)
        step = Signal()
        part = Signal(range(_BYTES))
        last, synced = Signal(8), Signal()
        untouched = Signal(init=1, reset_less=True)  # a reset does not bring memories back
        reply = transmitter.i

        connect(m, wiring.flipped(self.i), receiver.i)
        connect(m, transmitter.o, wiring.flipped(self.o))
        # The byte at `index` is there in every cycle.
        m.d.comb += [ahead.eq(index + step), receiver.index.eq(ahead), receiver.lost.eq(self.lost)]
        m.d.sync += index.eq(ahead)

        # What to do with the request in `head`, where `words` are those left.
        writes, begins, reads, moves = (
            head.command == command
            for command in (Command.WRITE, Command.SYNC, Command.READ, Command.DIVISOR)
        )
        distance = Signal(8)
        follows, accepted, legal, more = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            distance.eq(head.sequence - last),
            follows.eq(synced & (distance == 1)),
            accepted.eq(synced & (distance[1:] == 0)),
            legal.eq(receiver.words == Mux(writes, head.words, 0)),
            more.eq(head.words != 0),
            self.port.addr.eq(head.address),
            self.port.w_data.eq(word),
            self.port.write.eq(writes),
            reply.payload.data.eq(word[:8]),
        ]
        continues = reads & accepted & more
        if self._far:
            # That of the cycle before: where it differs, no byte that could be the last is there.
            before = Signal()
            m.d.sync += before.eq(continues)
            continues = before
        m.d.comb += reply.payload.last.eq((part == _BYTES - 1) & ~continues)
        region = head.address[regions.SHIFT :]
        data = (region == Region.REGISTERS) | (region == Region.PLANES)
        with m.If(self.port.valid & writes & ~data):
            m.d.sync += untouched.eq(0)
        own, moved = region == BAKED >> regions.SHIFT, Signal()
        m.d.comb += moved.eq(self.port.valid & self.port.ready)
        with m.If(moved):
            m.d.sync += [
                head.address[:8].eq(head.address[:8] + 1),
                head.words.eq(head.words - 1),
            ]
        with m.If(self.i.valid & self.i.payload.broken & (self.i.payload.data == 0)):
            m.d.sync += self.divisor.eq(self.divisor.init)

        with m.FSM():
            with m.State("REQUEST"), m.If(receiver.full):
                m.next = "HEAD"
            with m.State("HEAD"):
                m.d.comb += step.eq(1)
                m.d.sync += head.eq(Cat(head.as_value()[8:], receiver.byte))
                with m.If(index == _DATA - 1):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.next = "REPLY"
                with m.If(~legal):
                    m.next = "FREE"
                with m.Elif(begins | follows):
                    m.d.sync += [last.eq(head.sequence), synced.eq(1)]
                    with m.If(writes & more):
                        m.next = "GATHER"
            with m.State("GATHER"):
                m.d.comb += step.eq(1)
                m.d.sync += word.eq(Cat(word[8:], receiver.byte))
                with m.If(index[:2] == (_DATA - 1) % _BYTES):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.port.valid.eq(1)
                with m.If(self.port.ready):
                    m.next = "GATHER"
                    with m.If(head.words == 1):
                        m.next = "REPLY"
            with m.State("REPLY"):
                # An executed request is the last one now, so that it stays accepted.
                status = Mux(accepted, Status.OK, Status.SEQUENCE)
                m.d.sync += [word.eq(Cat(head.sequence, status)), part.eq(_BYTES - _REPLY_BYTES)]
                m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += reply.valid.eq(1)
                with m.If(reply.ready):
                    m.d.sync += [word.eq(word >> 8), part.eq(part + 1)]
                    with m.If(reply.payload.last):
                        m.next = "FREE"
                    with m.Elif(part == _BYTES - 1):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.port.valid.eq(~own)
                m.d.sync += word.eq(Mux(untouched, self._tag, 0))
                with m.If(own):
                    m.d.comb += moved.eq(1)
                    m.next = "GIVE"
                with m.Elif(self.port.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"), m.If(self.port.r_valid):
                m.d.sync += word.eq(self.port.r_data)
                m.next = "GIVE"
            with m.State("FREE"):
                m.d.sync += index.eq(_FIRST)
                m.d.comb += receiver.free.eq(~moves | ~accepted | (self.idle & ~transmitter.busy))
                with m.If(receiver.free):
                    m.next = "REQUEST"
                    with m.If(moves & accepted):
                        m.d.sync += self.divisor.eq(head.address)
        return m
