"""The port between the core and the memory that holds its tape."""

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["TapePort"]


class TapePort(wiring.Signature):
    """The tape port of a core; the memory has it flipped.

    Parameters
    ----------
    word_bits : int
        Bits of a memory word.

    Members
    -------
    calibrated : in
        The memory is calibrated and works.
    aligned : in
        A run may start in this cycle: no access is in progress, and the next refresh is as many
        cycles away as the cycle model assumes.
    start : out
        Strobe, only with ``aligned``: read from the first word on. It is cycle 0 of the run.
    stop : out
        Level, from the cycle after the last word of a run until the next start: request no more.
    words : stream of words, in
        Words that arrive during ``stop`` are taken at once and dropped.
    """

    def __init__(self, word_bits: int):
        super().__init__(
            {
                "calibrated": In(1),
                "aligned": In(1),
                "start": Out(1),
                "stop": Out(1),
                "words": In(stream.Signature(word_bits)),
            }
        )
