"""Reads the tape through a memory controller of the user's design."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.tape_port import TapePort
from lbq_hw.core.stream.queue import Queue

__all__ = ["TapeFetch"]


class TapeFetch(wiring.Component):
    """Requests the words of the tape in order from a memory, from a start to a stop.

    The memory may take any time, and returns the words in the order of the requests. No more words
    are requested than there is room for. After a stop no more words are requested, and the core
    takes the words that are still in flight. The host cannot reach the memory through the core: its
    requests on `HostMemoryPort` are answered with 0 at once.

    Timing. A word is requested in every cycle in which there is room, from the cycle after the
    start on.

    Parameters
    ----------
    word_bits : int
        Bits of a word, as in `TapePort`.
    depth : int
        Words that can be in flight or wait.

    Members
    -------
    tape : `TapePort`, flipped
    host : `HostMemoryPort`, flipped
    works : in
        The memory can be read.
    address : stream of addresses of words, out
    words : stream of words, in; always ready
    """

    ADDRESS_BITS = 25
    """Bits of a word address: 64 MB in words of 16 bits."""

    def __init__(self, *, word_bits: int, depth: int = 64):
        self._word_bits = word_bits
        self._depth = depth
        super().__init__(
            {
                "tape": In(TapePort(word_bits)),
                "host": In(HostMemoryPort()),
                "works": In(1),
                "address": Out(stream.Signature(self.ADDRESS_BITS)),
                "words": In(stream.Signature(word_bits, always_ready=True)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        tape, host, address = self.tape, self.host, self.address
        m.submodules.queue = queue = Queue(self._word_bits, depth=self._depth)
        running, asked, taken = Signal(), Signal(), Signal()
        waiting = Signal(range(self._depth + 1))  # words requested and not yet taken by the core
        connect(m, queue.o, flipped(tape.words))
        m.d.comb += [
            asked.eq(address.valid & address.ready),
            taken.eq(queue.o.valid & queue.o.ready),
            queue.i.valid.eq(self.words.valid),
            queue.i.payload.eq(self.words.payload),
            tape.calibrated.eq(self.works),
            tape.aligned.eq(~running & (waiting == 0) & ~address.valid),
            host.request.ready.eq(1),
        ]
        m.d.sync += [
            waiting.eq(waiting + asked - taken),
            host.answer.valid.eq(host.request.valid & ~host.request.payload.write),
        ]
        with m.If(asked):
            m.d.sync += [address.valid.eq(0), address.payload.eq(address.payload + 1)]
        with m.If(running & (~address.valid | asked) & (waiting + asked < self._depth - 1)):
            m.d.sync += address.valid.eq(1)
        with m.If(tape.start):
            m.d.sync += [running.eq(1), address.payload.eq(0)]
        with m.Elif(tape.stop):
            m.d.sync += running.eq(0)
        return m
