"""How the host reaches the external memory: slice by slice, and as a whole by a self-test."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE

__all__ = ["SLICE_ADDRESS_BITS", "Captures", "HostMemoryPort", "SliceRequest"]

SLICE_ADDRESS_BITS = (regions.MEMORY_SLICES - 1).bit_length()
"""Of the address of a slice."""


class SliceRequest(data.StructLayout):
    """A slice to be read or written.

    Members
    -------
    write : bit
    address : bits of a slice's address
        A memory that is smaller does not look at the upper bits. With words of 16 bits, the lower
        half of slice s is word 2 s, the upper half word 2 s + 1.
    data : 32 bits
        Of a write.
    """

    def __init__(self):
        super().__init__({"write": 1, "address": SLICE_ADDRESS_BITS, "data": SLICE})


class Captures(data.StructLayout):
    """What calibration found, as the register ``captures`` has it.

    Members
    -------
    passed : a bit for each capture
        1 where it has passed.
    used : 4 bits
        Number of the capture in use.
    """

    def __init__(self):
        super().__init__({"passed": regions.CAPTURES, "used": regions.CAPTURES.bit_length() - 1})


class HostMemoryPort(wiring.Signature):
    """What a core has for its host; the memory has it flipped.

    The core offers a request, or starts a test, only while no run is under way, and starts a run
    only when the last one is over. The memory takes none before it is calibrated.

    Members
    -------
    request : stream of `SliceRequest`, out
    answer : stream of 32 bits, in
        Of each read, before the next request is taken.
    failed : in
        Calibration has found no capture that works; stays until the next one.
    captures : `Captures`, in
        Once ``calibrated`` of `TapePort` or ``failed`` is 1.
    calibrate : out
        One cycle: calibrate again, unless a calibration is under way. ``calibrated`` and ``failed``
        are 0 from the next cycle on until its end.
    test_start : out
        One cycle, only while ``calibrated`` of `TapePort` is 1 and ``test_busy`` is 0: begins the
        self-test, which overwrites what it goes over.
    test_last : out
        Last slice of the test, from 0 on; stable while ``test_busy``.
    test_busy : in
        From the cycle after ``test_start`` to the end of the test.
    test_differing : in
        Words that differed; 0 after ``test_start``, stable after the end.
    """

    def __init__(self):
        super().__init__(
            {
                "request": Out(stream.Signature(SliceRequest())),
                "answer": In(stream.Signature(SLICE, always_ready=True)),
                "failed": In(1),
                "captures": In(Captures()),
                "calibrate": Out(1),
                "test_start": Out(1),
                "test_last": Out(SLICE_ADDRESS_BITS),
                "test_busy": In(1),
                "test_differing": In(SLICE),
            }
        )
