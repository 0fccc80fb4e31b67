"""The host's access to the external memory: slice by slice, and a self-test of the whole."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE

__all__ = ["SLICE_ADDRESS_BITS", "Captures", "HostMemoryPort", "SliceRequest"]

SLICE_ADDRESS_BITS = (regions.MEMORY_SLICES - 1).bit_length()
"""Bits of a slice's address."""


class SliceRequest(data.StructLayout):
    """A slice to be read or written.

    Members
    -------
    write : bit
    address : bits of a slice's address
        A smaller memory ignores the upper bits. With words of 16 bits, the lower half of slice s is
        word 2 s, the upper half word 2 s + 1.
    data : 32 bits
        Data of a write.
    """

    def __init__(self):
        super().__init__({"write": 1, "address": SLICE_ADDRESS_BITS, "data": SLICE})


class Captures(data.StructLayout):
    """The result of calibration, in the layout of the register ``captures``.

    Members
    -------
    passed : a bit for each capture
        1 if the capture passed.
    used : 4 bits
        Number of the capture in use.
    """

    def __init__(self):
        super().__init__({"passed": regions.CAPTURES, "used": regions.CAPTURES.bit_length() - 1})


class HostMemoryPort(wiring.Signature):
    """The core's port for the host's accesses to the memory; the memory has it flipped.

    The core offers a request, or starts a test, only while no run is in progress, and starts a run
    only when all requests and tests are finished. The memory takes no request before it is
    calibrated.

    Members
    -------
    request : stream of `SliceRequest`, out
    answer : stream of 32 bits, in
        The data of each read; arrives before the next request is taken.
    failed : in
        Calibration has found no capture that works; stays until the next one.
    captures : `Captures`, in
        Valid once ``calibrated`` of `TapePort` or ``failed`` is 1.
    calibrate : out
        Strobe: calibrate again, unless a calibration is in progress. ``calibrated`` and ``failed``
        are 0 from the next cycle until its end.
    test_start : out
        Strobe, only while ``calibrated`` of `TapePort` is 1 and ``test_busy`` is 0: begins the
        self-test, which overwrites all words that it tests.
    test_last : out
        The test covers slices 0 to this one; stable while ``test_busy``.
    test_busy : in
        1 from the cycle after ``test_start`` to the end of the test.
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
