"""The link: executes the frames of `lbq_hw.isa.link` on the core's port."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.fabric.states import States
from lbq_hw.core.host.frames import HEAD_INDEX, FrameEscapes, FrameReceiver, SerialCrc
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.host.uart import Received
from lbq_hw.isa import regions
from lbq_hw.isa.door import DOOR
from lbq_hw.isa.link import BAKED, DIVISOR_BITS, LEAST_DIVISOR, Command, Status
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["Link"]

_BYTES = SLICE // 8
_HEAD = data.StructLayout({"sequence": 8, "words": 6, "command": 2})


class Link(wiring.Component):
    """Takes requests from a stream of bytes, reads and writes through ``port``, and replies.

    A request is executed only if its CRC is right, exactly once, and in the order of the sequence
    numbers; `lbq_hw.isa.link` has the rules. The next request may arrive while a reply is being
    sent. It is dropped if it completes before the reply has reached its CRC, or if another frame
    completes before its own CRC is checked. The host retries.

    A complete request never waits for the host: it takes as many cycles as its words need at
    ``port`` and its reply at ``o``. A flag byte begins a new frame whatever came before it.

    Timing. The CRC of a frame is checked when the frame is complete, in 8 cycles per byte. At a
    `HostPort`, writing a word then takes 7 cycles. Reading a word takes 3 cycles, and each of its
    4 bytes 8 cycles, in which the previous byte leaves at ``o``.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit after a reset or a break.
    tag : int
        `regions.tag` of the memory image after configuration; 0: there is none.
    address_bits : int
        Low bits of an address within a region that the core decodes. If any higher bit within the
        region is 1, all of these higher bits are 1 at ``port``: no such address exists.
    registers : int
        Pipeline registers between the state machine of a reply and its bytes.
    door : bool
        Whether there is a `Door` behind ``port``, which takes pixels.

    Members
    -------
    i : stream of `Received`
    o : stream of bytes
    idle : in
        The line has sent all bytes from ``o``.
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
        registers: int = 0,
        door: bool = False,
    ):
        if not isinstance(divisor, int) or isinstance(divisor, bool):
            raise TypeError(f"divisor must be an integer, not {divisor!r}")
        if not LEAST_DIVISOR <= divisor < 1 << DIVISOR_BITS:
            most = (1 << DIVISOR_BITS) - 1
            raise ValueError(f"divisor must be {LEAST_DIVISOR}..{most}, not {divisor!r}")
        self._tag = tag
        self._registers = registers
        self._door = door
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

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.check = check = SerialCrc()
        m.submodules.escapes = escapes = FrameEscapes()
        connect(m, wiring.flipped(self.i), receiver.i)
        connect(m, escapes.o, wiring.flipped(self.o))
        work = _Work(receiver, check, escapes, low_bits=self._low_bits)
        self._move(m, work)
        continues = self._offer(m, work)
        states = States(m, platform, "REQUEST")
        self._check(m, work, states)
        self._judge(m, work, states)
        self._execute(m, work, states)
        self._reply(m, work, states, continues)
        return m

    def _move(self, m, w):
        """The datapath: shift bytes into `word`, count their index, drive address and port."""
        port = self.port
        alters = w.writes & (w.region != Region.REGISTERS) & (w.region != Region.PLANES)
        if self._door:
            alters &= w.region != DOOR >> regions.SHIFT
        m.d.comb += [
            w.receiver.index.eq(w.index),
            w.receiver.kept.eq(w.kept),
            port.addr.eq(Cat(w.low, w.beyond.replicate(regions.SHIFT - len(w.low)), w.region)),
            port.w_data.eq(w.word),
            port.write.eq(w.writes),
        ]
        # The byte at `index` arrives one cycle later, and then goes into `word`.
        m.d.sync += w.stepped.eq(w.fill)
        m.d.comb += w.check.run.eq(w.run & ~w.stepped)
        with m.If(w.rewind):
            m.d.sync += w.index.eq(HEAD_INDEX)
        with m.Elif(w.fill | w.check.last):
            following = w.index + 1
            m.d.sync += w.index.eq(Mux(w.recount, following[:2], following))
        with m.If(w.stepped | w.check.last | w.answer | w.baked):
            m.d.sync += w.word.eq(Mux(w.answer, port.r_data, Cat(w.word[8:], w.receiver.byte)))
            with m.If(w.baked):
                m.d.sync += w.word.eq(self._tag)
        with m.If(port.valid & port.ready):
            m.d.sync += w.low[:8].eq(w.low[:8] + 1)
        with m.If(w.receiver.frame_arrives | w.judged):
            m.d.sync += w.words.eq(Mux(w.judged, w.head.words, w.receiver.words))
        with m.If(port.valid & alters):
            m.d.sync += w.as_loaded.eq(0)
        with m.If(self.i.valid & self.i.payload.broken & (self.i.payload.data == 0)):
            m.d.sync += self.divisor.eq(self.divisor.init)

    def _offer(self, m, w):
        """Offer the next byte of a reply: the sequence number, the status, data, the CRC.

        Returns whether another data word follows the one in `word`.
        """
        byte = w.escapes.i.payload
        blank, status = Signal(), Mux(w.accepted, Status.OK, Status.SEQUENCE)
        m.d.comb += [
            blank.eq(w.second | w.overwritten),
            byte.data.eq(Mux(w.tail, w.check.crc[:8], w.word[:8] & ~blank.replicate(8))),
            byte.flag.eq(w.closing),
            w.check.byte.eq(byte.data),
        ]
        with m.If(w.second & ~w.tail):
            m.d.comb += byte.data[0].eq(status)
        continues = w.reads & w.accepted & ~w.at_end & ~w.tail
        # The delay is harmless: this changes only between bytes, and is used at the end of a byte.
        return delayed(m, continues, self._registers, name="continues")

    def _check(self, m, w, states):
        """Wait for a frame, and check its CRC."""
        with states.state("REQUEST"):
            m.d.comb += [w.rewind.eq(1), w.check.clear.eq(1)]
            m.d.sync += [w.wrong.eq(0), w.overwritten.eq(0)]
            with m.If(w.receiver.full):
                states.go("FIRST")
        with states.state("FIRST"):
            m.d.comb += w.fill.eq(1)
            with m.If(w.receiver.frame_arrives):
                states.go("REQUEST")
            with m.Elif(w.filled):
                states.go("CHECK")
        with states.state("CHECK"):
            # `word` has the four bytes before the one at `index`; at the end, the frame's CRC.
            m.d.comb += [w.run.eq(1), w.check.drain.eq(w.at_end)]
            with m.If(w.at_end & w.check.run & w.check.differs):
                m.d.sync += w.wrong.eq(1)
            with m.If(w.receiver.frame_arrives):
                states.go("REQUEST")
            with m.Elif(w.at_end & w.ended & w.check.last):
                states.go("VERDICT")
        with states.state("VERDICT"):
            m.d.comb += [w.rewind.eq(1), w.receiver.take.eq(1)]
            with m.If(w.wrong | w.receiver.frame_arrives):
                states.go("REQUEST")
            with m.Else():
                m.d.sync += w.kept.eq(1)
                states.go("HEAD")

    def _judge(self, m, w, states):
        """Decide on a request: drop it, repeat its reply, or execute it."""
        distance, begins, follows, legal = Signal(8), Signal(), Signal(), Signal()
        m.d.comb += [
            distance.eq(w.head.sequence - ~w.last),
            begins.eq(w.head.command == Command.SYNC),
            follows.eq(w.synced & (distance == 1)),
            legal.eq(Mux(w.head.command == Command.WRITE, w.words == w.head.words, w.words == 0)),
        ]
        with states.state("HEAD"):
            m.d.comb += w.fill.eq(1)
            with m.If(w.filled):
                states.go("JUDGE")
        with states.state("JUDGE"):
            m.d.sync += [
                w.command.eq(w.head.command),
                w.fresh.eq(begins | follows),
                w.accepted.eq(begins | (w.synced & (distance[1:] == 0))),
            ]
            with m.If(~w.stepped):
                m.d.comb += w.judged.eq(1)
                with m.If(legal):
                    states.go("ADDRESS")
                    with m.If(begins | follows):
                        m.d.sync += [w.last.eq(~w.head.sequence), w.synced.eq(1)]
                with m.Else():
                    m.d.sync += w.kept.eq(0)
                    states.go("REQUEST")

    def _execute(self, m, w, states):
        """Take the address, and write the data words of a write request."""
        with states.state("ADDRESS"):
            m.d.comb += w.fill.eq(1)
            with m.If(w.ended):
                states.go("LOAD")
        with states.state("LOAD"):
            m.d.sync += [
                w.low.eq(w.word),
                w.beyond.eq(w.word[len(w.low) : regions.SHIFT].any()),
                w.region.eq(w.word[regions.SHIFT :]),
            ]
            with m.If(~w.stepped):
                with m.If(w.writes & w.fresh):
                    states.go("GATHER")
                with m.Else():
                    states.go("REPLY")
        with states.state("GATHER"):
            m.d.comb += w.fill.eq(1)
            with m.If(w.ended):
                states.go("WRITE")
        with states.state("WRITE"):
            # After the last data word, `word` holds the CRC.
            m.d.comb += self.port.valid.eq(~w.stepped & ~w.at_end)
            with m.If(w.at_end):
                states.go("REPLY")
            with m.Elif(self.port.valid & self.port.ready):
                states.go("GATHER")

    def _reply(self, m, w, states, continues):
        """Send the reply, with the data words of a read request."""
        with states.state("REPLY"):
            m.d.comb += [w.rewind.eq(1), w.check.clear.eq(1)]
            m.d.sync += w.first.eq(1)
            states.go("SEQUENCE")
        with states.state("SEQUENCE"):
            # From here on `index` counts the reply's bytes, from 2, so that data begin at 4.
            m.d.comb += [w.fill.eq(1), w.recount.eq(1)]
            with m.If(w.filled):
                states.go("SEND")
        with states.state("SEND"):
            m.d.comb += w.escapes.i.valid.eq(~w.stepped)
            with m.If(w.escapes.i.valid & w.escapes.i.ready):
                with m.If(w.closing):
                    m.d.sync += [w.tail.eq(0), w.closing.eq(0)]
                    states.go("DONE")
                with m.Else():
                    states.go("RUN")
        with states.state("RUN"):
            m.d.comb += [w.run.eq(1), w.check.drain.eq(w.tail)]
            with m.If(w.check.last):
                m.d.sync += [w.first.eq(0), w.second.eq(w.first)]
                with m.If(w.ended & continues):
                    states.go("READ")
                with m.Else():
                    states.go("SEND")
                with m.If(w.ended & ~continues):
                    m.d.sync += [w.tail.eq(1), w.closing.eq(w.tail), w.kept.eq(0)]
        with states.state("READ"):
            m.d.comb += self.port.valid.eq(~w.own)
            m.d.sync += w.overwritten.eq(w.own & ~w.as_loaded)
            with m.If(w.own):
                m.d.comb += w.baked.eq(1)
                states.go("SEND")
            with m.Elif(self.port.ready):
                states.go("ANSWER")
        with states.state("ANSWER"):
            m.d.comb += w.answer.eq(1)
            with m.If(self.port.r_valid):
                states.go("SEND")
        with states.state("DONE"):
            with m.If(~(w.sets_divisor & w.accepted)):
                states.go("REQUEST")
            with m.Elif(self.idle):
                m.d.sync += self.divisor.eq(w.low)
                states.go("REQUEST")


class _Work:
    """Registers and signals that the states of a `Link` share."""

    def __init__(self, receiver, check, escapes, *, low_bits):
        self.receiver, self.check, self.escapes = receiver, check, escapes
        # The last bytes of the frame, and the index of the next byte.
        self.word = Signal(SLICE, reset_less=True)
        self.index = Signal(8, init=HEAD_INDEX)
        # The address: its low bits, whether any bit between them and the region is set, the region.
        self.low = Signal(low_bits, reset_less=True)
        self.beyond = Signal(reset_less=True)
        self.region = Signal(SLICE - regions.SHIFT, reset_less=True)
        self.command = Signal(2, reset_less=True)
        self.words = Signal(6, reset_less=True)
        # The number of the last executed request, inverted, so that an adder can subtract it.
        self.last = Signal(8, reset_less=True)
        self.synced = Signal()
        self.accepted = Signal(reset_less=True)
        self.fresh = Signal(reset_less=True)
        self.kept = Signal()
        self.wrong = Signal()
        self.overwritten = Signal()
        self.as_loaded = Signal(init=1, reset_less=True)  # a reset does not restore memories
        # The byte of the reply that is sent: the first, the second, one of the CRC, the final flag.
        self.first = Signal()
        self.second = Signal()
        self.tail = Signal()
        self.closing = Signal()
        # Commands of the state machine to the datapath.
        self.fill = Signal()
        self.stepped = Signal()
        self.run = Signal()
        self.rewind = Signal()
        self.recount = Signal()
        self.answer = Signal()
        self.baked = Signal()
        self.judged = Signal()
        # The first four bytes of a request, while they are in `word`.
        self.head = data.View(_HEAD, self.word[: _HEAD.size])
        self.writes, self.reads, self.sets_divisor = (
            self.command == kind for kind in (Command.WRITE, Command.READ, Command.DIVISOR)
        )
        self.own = self.region == BAKED >> regions.SHIFT
        self.filled = self.index[:2] == (HEAD_INDEX + _BYTES - 1) % _BYTES
        self.ended, self.at_end = self.index[:2] == _BYTES - 1, self.index[2:] == self.words
