"""The link: executes the frames of `lbq_hw.isa.link` on the core's port."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.core.host.frames import HEAD_INDEX, FrameEscapes, FrameReceiver, SerialCrc
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.host.states import States
from lbq_hw.core.host.uart import Received
from lbq_hw.isa import regions
from lbq_hw.isa.link import BAKED, DIVISOR_BITS, LEAST_DIVISOR, Command, Status
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["Link"]

_BYTES = SLICE // 8
_HEAD = data.StructLayout({"sequence": 8, "words": 6, "command": 2})


class Link(wiring.Component):
    """Takes requests from a line of bytes, reads and writes through ``port``, and replies.

    A request is executed only after its CRC was right, once, and in the order of the sequence
    numbers; `lbq_hw.isa.link` has the rules. While a request is executed and answered the next one
    may come in. One that is complete before the answer is, but for its CRC, is dropped; so is one
    whose own CRC has not been looked at when the next is complete. The host repeats it.

    No state waits for the host: a request ends after as many cycles as its words take at ``port``
    and its reply at ``o``, and a flag begins a new frame whatever came before it.

    Timing. The CRC of a frame is looked at once the frame is complete, in 8 cycles per byte. At a
    `HostPort`, a word then takes 7 cycles to write. A word takes 3 cycles to read, and each of its
    4 bytes 8 cycles, in which the one before it leaves at ``o``.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit after a reset or a break.
    tag : int
        `regions.tag` of what the memories hold after configuration; 0: of nothing.
    address_bits : int
        Bits of an address, below its region's, that the core can tell apart. If any other bit
        below the region's is 1, all of them are at ``port``.
    far : bool
        The core fills the chip, and a register is halfway to the bytes of a reply.

    Members
    -------
    i : stream of `Received`
    o : stream of bytes
    idle : in
        The line has sent what ``o`` gave.
    divisor : out
        Clock cycles per bit.
    port : `PortSignature`
    """

    def __init__(
        self,
        *,
        divisor: int,
        tag: int = 0,
        address_bits: int = regions.SHIFT,
        far: bool = False,
    ):
        if not isinstance(divisor, int) or isinstance(divisor, bool):
            raise TypeError(f"divisor must be an integer, not {divisor!r}")
        if not LEAST_DIVISOR <= divisor < 1 << DIVISOR_BITS:
            most = (1 << DIVISOR_BITS) - 1
            raise ValueError(f"divisor must be {LEAST_DIVISOR}..{most}, not {divisor!r}")
        self._tag = tag
        self._far = far
        self._low_bits = max(address_bits, DIVISOR_BITS)
        super().__init__(
            {
                "i": In(stream.Signature(Received(), always_ready=True)),
                "o": Out(stream.Signature(8)),
                "idle": In(1),
                "divisor": Out(DIVISOR_BITS, init=divisor),
                "port": Out(PortSignature()),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.check = check = SerialCrc()
        m.submodules.escapes = escapes = FrameEscapes()
        word, index = Signal(SLICE, reset_less=True), Signal(8, init=HEAD_INDEX)
        # Of the address: its low bits, whether any is set between them and the region, the region.
        low, beyond = Signal(self._low_bits, reset_less=True), Signal(reset_less=True)
        region = Signal(SLICE - regions.SHIFT, reset_less=True)
        command, words = Signal(2, reset_less=True), Signal(6, reset_less=True)
        # The last executed request's number, inverted, as a carry chain wants what it subtracts.
        last, synced = Signal(8, reset_less=True), Signal()
        accepted, fresh = Signal(reset_less=True), Signal(reset_less=True)
        kept, wrong = Signal(), Signal()
        first, second, tail, closing = (Signal() for _ in range(4))  # which byte of a reply
        fill, stepped, run, rewind, recount = (Signal() for _ in range(5))
        answer, baked, judged = Signal(), Signal(), Signal()
        # The first four bytes of a request, while they are in `word`.
        head = data.View(_HEAD, word[: _HEAD.size])
        untouched = Signal(init=1, reset_less=True)  # a reset does not bring memories back
        writes, reads, moves = (
            command == kind for kind in (Command.WRITE, Command.READ, Command.DIVISOR)
        )
        own = region == BAKED >> regions.SHIFT
        filled = index[:2] == (HEAD_INDEX + _BYTES - 1) % _BYTES
        ended, at_end = index[:2] == _BYTES - 1, index[2:] == words
        alters = writes & (region != Region.REGISTERS) & (region != Region.PLANES)

        connect(m, wiring.flipped(self.i), receiver.i)
        connect(m, escapes.o, wiring.flipped(self.o))
        m.d.comb += [
            receiver.index.eq(index),
            receiver.kept.eq(kept),
            self.port.addr.eq(Cat(low, beyond.replicate(regions.SHIFT - len(low)), region)),
            self.port.w_data.eq(word),
            self.port.write.eq(writes),
        ]
        # The byte at `index` is there one cycle later, and then goes into `word`.
        m.d.sync += stepped.eq(fill)
        m.d.comb += check.run.eq(run & ~stepped)
        with m.If(rewind):
            m.d.sync += index.eq(HEAD_INDEX)
        with m.Elif(fill | check.last):
            following = index + 1
            m.d.sync += index.eq(Mux(recount, following[:2], following))
        with m.If(stepped | check.last | answer | baked):
            m.d.sync += word.eq(Mux(answer, self.port.r_data, Cat(word[8:], receiver.byte)))
            with m.If(baked):
                m.d.sync += word.eq(self._tag)
        with m.If(self.port.valid & self.port.ready):
            m.d.sync += low[:8].eq(low[:8] + 1)
        with m.If(receiver.comes | judged):
            m.d.sync += words.eq(Mux(judged, head.words, receiver.words))
        with m.If(self.port.valid & alters):
            m.d.sync += untouched.eq(0)
        with m.If(self.i.valid & self.i.payload.broken & (self.i.payload.data == 0)):
            m.d.sync += self.divisor.eq(self.divisor.init)

        # What to do with the request in `head`.
        distance, begins, follows, legal = Signal(8), Signal(), Signal(), Signal()
        m.d.comb += [
            distance.eq(head.sequence - ~last),
            begins.eq(head.command == Command.SYNC),
            follows.eq(synced & (distance == 1)),
            legal.eq(Mux(head.command == Command.WRITE, words == head.words, words == 0)),
        ]

        # A byte of a reply: the sequence number, the status, data, the CRC.
        byte = escapes.i.payload
        blank, gone, status = Signal(), Signal(), Mux(accepted, Status.OK, Status.SEQUENCE)
        m.d.comb += [
            blank.eq(second | gone),
            byte.data.eq(Mux(tail, check.crc[:8], word[:8] & ~blank.replicate(8))),
            byte.flag.eq(closing),
            check.byte.eq(byte.data),
        ]
        with m.If(second & ~tail):
            m.d.comb += byte.data[0].eq(status)
        continues = reads & accepted & ~at_end & ~tail
        if self._far:
            # That of the cycle before: where it differs, no byte that could be the last is there.
            before = Signal()
            m.d.sync += before.eq(continues)
            continues = before

        states = States(m, "REQUEST")
        with states.state("REQUEST"):
            m.d.comb += [rewind.eq(1), check.clear.eq(1)]
            m.d.sync += [wrong.eq(0), gone.eq(0)]
            with m.If(receiver.full):
                states.go("FIRST")
        with states.state("FIRST"):
            m.d.comb += fill.eq(1)
            with m.If(receiver.comes):
                states.go("REQUEST")
            with m.Elif(filled):
                states.go("CHECK")
        with states.state("CHECK"):
            # `word` has the four bytes before the one at `index`; at the end, the frame's CRC.
            m.d.comb += [run.eq(1), check.drain.eq(at_end)]
            with m.If(at_end & check.run & check.differs):
                m.d.sync += wrong.eq(1)
            with m.If(receiver.comes):
                states.go("REQUEST")
            with m.Elif(at_end & ended & check.last):
                states.go("VERDICT")
        with states.state("VERDICT"):
            m.d.comb += [rewind.eq(1), receiver.take.eq(1)]
            with m.If(wrong | receiver.comes):
                states.go("REQUEST")
            with m.Else():
                m.d.sync += kept.eq(1)
                states.go("HEAD")
        with states.state("HEAD"):
            m.d.comb += fill.eq(1)
            with m.If(filled):
                states.go("JUDGE")
        with states.state("JUDGE"):
            m.d.sync += [
                command.eq(head.command),
                fresh.eq(begins | follows),
                accepted.eq(begins | (synced & (distance[1:] == 0))),
            ]
            with m.If(~stepped):
                m.d.comb += judged.eq(1)
                with m.If(legal):
                    states.go("ADDRESS")
                    with m.If(begins | follows):
                        m.d.sync += [last.eq(~head.sequence), synced.eq(1)]
                with m.Else():
                    m.d.sync += kept.eq(0)
                    states.go("REQUEST")
        with states.state("ADDRESS"):
            m.d.comb += fill.eq(1)
            with m.If(ended):
                states.go("LOAD")
        with states.state("LOAD"):
            m.d.sync += [
                low.eq(word),
                beyond.eq(word[len(low) : regions.SHIFT].any()),
                region.eq(word[regions.SHIFT :]),
            ]
            with m.If(~stepped):
                with m.If(writes & fresh):
                    states.go("GATHER")
                with m.Else():
                    states.go("REPLY")
        with states.state("GATHER"):
            m.d.comb += fill.eq(1)
            with m.If(ended):
                states.go("WRITE")
        with states.state("WRITE"):
            # Behind the last data word, it is the CRC that is in `word`.
            m.d.comb += self.port.valid.eq(~stepped & ~at_end)
            with m.If(at_end):
                states.go("REPLY")
            with m.Elif(self.port.valid & self.port.ready):
                states.go("GATHER")
        with states.state("REPLY"):
            m.d.comb += [rewind.eq(1), check.clear.eq(1)]
            m.d.sync += first.eq(1)
            states.go("SEQUENCE")
        with states.state("SEQUENCE"):
            # From here on `index` counts the reply's bytes, from 2, so that data begin at 4.
            m.d.comb += [fill.eq(1), recount.eq(1)]
            with m.If(filled):
                states.go("SEND")
        with states.state("SEND"):
            m.d.comb += escapes.i.valid.eq(~stepped)
            with m.If(escapes.i.valid & escapes.i.ready):
                with m.If(closing):
                    m.d.sync += [tail.eq(0), closing.eq(0)]
                    states.go("DONE")
                with m.Else():
                    states.go("RUN")
        with states.state("RUN"):
            m.d.comb += [run.eq(1), check.drain.eq(tail)]
            with m.If(check.last):
                m.d.sync += [first.eq(0), second.eq(first)]
                with m.If(ended & continues):
                    states.go("READ")
                with m.Else():
                    states.go("SEND")
                with m.If(ended & ~continues):
                    m.d.sync += [tail.eq(1), closing.eq(tail), kept.eq(0)]
        with states.state("READ"):
            m.d.comb += self.port.valid.eq(~own)
            m.d.sync += gone.eq(own & ~untouched)
            with m.If(own):
                m.d.comb += baked.eq(1)
                states.go("SEND")
            with m.Elif(self.port.ready):
                states.go("ANSWER")
        with states.state("ANSWER"):
            m.d.comb += answer.eq(1)
            with m.If(self.port.r_valid):
                states.go("SEND")
        with states.state("DONE"):
            with m.If(~(moves & accepted)):
                states.go("REQUEST")
            with m.Elif(self.idle):
                m.d.sync += self.divisor.eq(low)
                states.go("REQUEST")
        return m
