"""The host's access to external memory: slices, digests, the self-test, calibration."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.digest import COUNT_BITS, Digest
from lbq_hw.core.external.host_memory_port import (
    SLICE_ADDRESS_BITS,
    Captures,
    HostMemoryPort,
    SliceRequest,
)
from lbq_hw.core.fabric.contracts import must
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE

__all__ = ["MemoryAccess"]

_REGISTER_BITS = max(one.address for one in regions.MEMORY_REGISTERS.values()).bit_length()


class MemoryAccess(wiring.Component):
    """Passes requests of the host, or of a `Digest`, on to the external memory.

    Operations must not overlap: a slice, a digest, a self-test or a calibration may begin only
    while ``pending`` and ``in_use`` are 0, and all but a calibration only while ``calibrated``.

    Timing. A request is offered to the memory in the cycle after ``read`` or ``write``. If the
    memory answers in cycle c, the slice is in ``answer`` in cycle c + 1. A self-test starts in the
    cycle after a write of ``test_last``, a calibration in the cycle after a write of ``captures``.
    ``in_use`` is 1 from the cycle after the write that starts a digest or a self-test.

    Members
    -------
    read, write : in
        Read, or write, one slice.
    set : in
        Write a register; ``digest_first``, ``digest_slices``, ``test_last`` and ``captures`` belong
        to this block.
    addr, data : in
        Address of the slice or register, and the data of a write.
    calibrated : in
    pending : out
        A write has not been taken, or a read has not been answered, before this cycle.
    answered, answer : out
        One cycle per read.
    in_use : out
        A digest or a self-test is in progress.
    values : out
        The registers ``memory``, ``digest_crc``, ``test_differing`` and ``captures``.
    memory : `HostMemoryPort`
    """

    read: In(1)
    write: In(1)
    set: In(1)
    addr: In(SLICE_ADDRESS_BITS)
    data: In(SLICE)
    calibrated: In(1)
    pending: Out(1)
    answered: Out(1)
    answer: Out(SLICE)
    in_use: Out(1)
    values: Out(
        data.StructLayout(
            {"memory": 4, "digest_crc": SLICE, "test_differing": SLICE, "captures": Captures()}
        )
    )
    memory: Out(HostMemoryPort())

    def elaborate(self, platform):
        m = Module()
        m.submodules.digest = digest = Digest()
        memory, first = self.memory, Signal(SLICE_ADDRESS_BITS)
        own, offered, awaited, answer_valid = Signal(SliceRequest()), Signal(), Signal(), Signal()
        testing = Signal()
        sets_first, begins_digest, begins_test, calibrates = (
            self.set & (self.addr[:_REGISTER_BITS] == regions.MEMORY_REGISTERS[name].address)
            for name in ("digest_first", "digest_slices", "test_last", "captures")
        )
        m.d.comb += [
            memory.request.valid.eq(offered | digest.request.valid),
            memory.request.payload.write.eq(own.write & ~digest.busy),
            memory.request.payload.address.eq(
                Mux(digest.busy, digest.request.payload, own.address)
            ),
            memory.request.payload.data.eq(own.data),
            digest.request.ready.eq(memory.request.ready),
            digest.start.eq(begins_digest),
            digest.first.eq(first),
            digest.slices.eq(self.data[:COUNT_BITS]),
            digest.answer.valid.eq(answer_valid),
            digest.answer.payload.eq(self.answer),
            self.answered.eq(answer_valid & awaited),
            self.pending.eq(offered | awaited),
            testing.eq(memory.test_start | memory.test_busy),
            self.in_use.eq(digest.busy | testing),
            self.values.memory.eq(Cat(self.calibrated, digest.busy, memory.failed, testing)),
            self.values.digest_crc.eq(digest.crc),
            self.values.test_differing.eq(memory.test_differing),
            self.values.captures.eq(memory.captures),
        ]
        m.d.sync += [
            answer_valid.eq(memory.answer.valid),
            self.answer.eq(memory.answer.payload),
            memory.test_start.eq(begins_test),
            memory.calibrate.eq(calibrates),
        ]
        with m.If(memory.request.ready):
            m.d.sync += offered.eq(0)
        with m.If(self.answered):
            m.d.sync += awaited.eq(0)
        with m.If(self.read | self.write):
            m.d.sync += [
                offered.eq(1),
                awaited.eq(self.read),
                own.write.eq(self.write),
                own.address.eq(self.addr),
                own.data.eq(self.data),
            ]
        with m.If(sets_first):
            m.d.sync += first.eq(self.data)
        with m.If(begins_test):
            m.d.sync += memory.test_last.eq(self.data)
        asks = Cat(self.read, self.write, begins_digest, begins_test)
        alone = ~self.pending & ~self.in_use
        must(m, platform, ~(asks.any() | calibrates) | alone, "operations overlap")
        must(m, platform, ~asks.any() | self.calibrated, "the memory is used before calibration")
        return m
