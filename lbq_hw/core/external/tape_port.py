"""Between the core and the memory that holds its tape."""

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["TapePort"]


class TapePort(wiring.Signature):
    """What a core with external memory has; the memory has it flipped.

    Parameters
    ----------
    word_bits : int
        Bits of a memory word.

    Members
    -------
    calibrated : in
        The memory works.
    aligned : in
        A run may start in this cycle: nothing is under way, and a refresh is as far off as the
        cycle model has it.
    start : out
        One cycle with ``aligned``: read from the first word on. It is cycle 0 of the run.
    stop : out
        Level, from the cycle after the last word that a run takes to its start: ask for no more.
    words : stream of words, in
        Those that come during ``stop`` are taken at once, and forgotten.
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
