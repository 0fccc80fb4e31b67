"""A core with a program: load, run, read levels and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler import Program
from lbq_hw.cycles import most_cycles
from lbq_hw.host.door import FailedError, Stream
from lbq_hw.host.line import SerialTransport
from lbq_hw.host.memory import Captures, ExternalMemory, Tick, nothing, pieces, recalibrated
from lbq_hw.host.transport import DeviceError, Transport
from lbq_hw.isa import Error, regions
from lbq_hw.isa.door import Opening
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import COUNTERS, Counters, Region
from lbq_hw.network import INPUT
from lbq_hw.numeric import Integers

START, CLEAR = 1, 2


_ADVICE = {
    Error.TAPE: "the tape in its memory is not this package's, or is read wrongly: upload it with "
    "--reload --recalibrate",
    Error.CRC: "the tape in its memory was altered, or the board has become warmer or colder since "
    "its memory was calibrated: run with --recalibrate, and if that does not help, test the memory "
    "with --memory-test",
    Error.ORDER: "its tape has a deadlock: build the package again",
    Error.MEMORY: "its external memory does not work: power the board off and on, and check that "
    "the package is for this board",
    Error.PARTIAL: "its tape is for a core with more partial sums: build the package again",
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The result of one input; `wait_cycles` as in `Device.wait_cycles`, None through a door."""

    logits: Integers
    cycles: int
    wait_cycles: int | None = None


class Device:
    """One core and the program in it; `opening` describes the core's door, if it has one.

    `most`: upper bounds on the cycles of every layer, if known; by default computed from the
    program.
    """

    def __init__(
        self,
        transport: Transport,
        program: Program,
        *,
        opening: Opening | None = None,
        most: tuple[int, ...] | None = None,
    ) -> None:
        self.transport = transport
        self.program = program
        fits = opening is not None and opening.pixels == program.pixels
        self.opening = opening if fits else None
        self.config = program.config
        digest = int(self.config.digest[:8], 16)
        found = transport.read(0, 2)
        if found != [regions.MAGIC, digest]:
            raise DeviceError(
                f"the core must be LBQ1 with config {digest:08x}, not {found[0]:08x} with "
                f"{found[1]:08x}: load the bitstream of this program"
            )
        self._most = most_cycles(program) if most is None else most
        limit = sum(self._most)
        if not transport.wait(limit):
            raise DeviceError(
                f"the core is still busy with another host's run, after {limit} cycles: try again "
                "later, or reset it"
            )

    @cached_property
    def tag(self) -> int:
        """`regions.tag` of the program, as in a bitstream that contains the program."""
        return regions.tag(self.program.image())

    def memory(self) -> ExternalMemory:
        """The external memory, once it is calibrated; only for a core that has one."""
        self.transport.write(regions.REGISTERS["control"].address, [CLEAR])
        return ExternalMemory(self.transport)

    def recalibrate(self) -> Captures:
        """Let the core calibrate the timing of its external memory again.

        For a board that has become warmer or colder, and after an error CRC. This overwrites the
        last words of the memory, which no tape uses.
        """
        if not self.config.external:
            raise ValueError("a core without external memory has none to calibrate")
        self.transport.write(regions.REGISTERS["control"].address, [CLEAR])
        memory = recalibrated(self.transport)
        self.check()
        return memory.captures()

    def captures(self) -> Captures | None:
        """The result of the last calibration; None without external memory."""
        if not self.config.external:
            return None
        return ExternalMemory(self.transport).captures()

    def load(self, tick: Tick = nothing) -> None:
        """Execute the writes of the tape, or write the missing pieces to the external memory.

        Raises if the core reports an error. `tick` is called for each piece that was written.
        """
        if self.config.external:
            memory = self.memory()
            memory.upload(memory.differing(pieces(self.program.tape)), tick)
        else:
            self.transport.write(regions.REGISTERS["control"].address, [CLEAR])
            for region, slices in self.program.contents.slices().items():
                self._write_entries(region, slices)
        self.check()

    def write_image(self, raw: NDArray[np.uint8]) -> None:
        """Write one raw image, or the frames of one recording, to the plane memory."""
        base = self.program.tensors[INPUT].base
        self._write_entries(Region.PLANES, self.program.load_image(raw), first=base)

    def start(self) -> None:
        """Run the program to its end; raises if the core reports an error."""
        self._start(sum(self._most))

    def run(self, raw: NDArray[np.uint8]) -> Integers:
        """Logits of one raw image."""
        self.write_image(raw)
        self.start()
        return self.read_logits()

    def stream(self, images: Iterable[NDArray[np.uint8]], *, clock_hz: int) -> Iterator[Ran]:
        """Run raw images; through a door, the next ones come in while one runs."""
        if self.opening is None or not isinstance(self.transport, SerialTransport):
            for raw in images:
                logits = self.run(raw)
                cycles = self.counters().cycles
                yield Ran(logits=logits, cycles=cycles, wait_cycles=self.wait_cycles())
            return
        most = sum(self._most)
        stream = Stream(self.transport, self.opening, clock_hz=clock_hz, most=most)
        control = regions.REGISTERS["control"].address

        def begin() -> None:
            self.transport.wait(most)
            self.transport.write(control, [CLEAR])

        words = (self.program.pixel_words(raw) for raw in images)
        try:
            for result in stream.run(words, begin=begin):
                yield Ran(logits=self._logits(result.slices), cycles=result.cycles)
        except FailedError:
            self.check()
            raise DeviceError(
                "the core stopped with an error, which a later run has cleared: run the images one "
                "by one, with a package that was built with --no-door"
            ) from None

    def predict(self, raw: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Class of each raw image, as `golden.predict`."""
        return np.array([self.run(image).argmax() for image in raw], np.int64)

    def run_layer(self, index: int) -> None:
        """Run one layer alone, on the levels in the plane memory; not a layer of a tape."""
        if self.config.external:
            raise ValueError("a layer of a tape cannot run alone: run the whole program")
        layers = self.program.table("layers")
        try:
            self._write_layer(layers[index] | {"last": 1})
            self._start(self._most[index])
        finally:
            self._write_layer(layers[0])

    def read_logits(self) -> Integers:
        """The logits of the last run."""
        parts = regions.slices(self.config)[Region.LOGITS]
        address = regions.address(self.config, Region.LOGITS, 0)
        return self._logits(self.transport.read(address, parts * self.program.logit_words))

    def _logits(self, slices: Sequence[int]) -> Integers:
        """Logits from the sign-extended slices of the logits memory."""
        parts = regions.slices(self.config)[Region.LOGITS]
        bits, words = SLICE * parts, _joined(slices, parts)
        values = np.zeros(self.program.logit_words, np.int64)
        values[: len(words)] = [
            word - (1 << bits) if word >> (bits - 1) else word for word in words
        ]
        return self.program.logits(values)

    def read_levels(self, name: str) -> NDArray[np.uint8]:
        """A tensor ``(T, C, H, W)`` as it is now in the plane memory."""
        tensor = self.program.tensors[name]
        words = self._read_entries(Region.PLANES, tensor.base, tensor.end - tensor.base)
        octets = b"".join(word.to_bytes(self.config.word // 8, "little") for word in words)
        bits = np.unpackbits(np.frombuffer(octets, np.uint8), bitorder="little")
        return tensor.unpack(bits.reshape(len(words), -1).astype(bool))

    def counters(self) -> Counters:
        """Counters of the last run."""
        first = regions.REGISTERS["cycles"].address
        low, high, *rest = self.transport.read(first, len(COUNTERS) + 1)
        values = dict(zip(COUNTERS, (high << SLICE | low, *rest), strict=True))
        return Counters(**{name: values[name] for name in COUNTERS[: self.config.counters]})

    def wait_cycles(self) -> int | None:
        """Cycles of the last run in which passes waited for the tape; None without a tape."""
        if not self.config.external:
            return None
        return self.transport.read(regions.MEMORY_REGISTERS["wait_cycles"].address, 1)[0]

    def _start(self, limit: int) -> None:
        control = regions.REGISTERS["control"].address
        self.transport.write(control, [CLEAR])
        self.transport.write(control, [START])
        if not self.transport.wait(limit):
            raise DeviceError(
                f"the core did not finish within {limit} cycles, the most that its program can "
                "take: load it again, or reset the core"
            )
        self.check()

    def check(self) -> None:
        """Raise if the core reports an error."""
        status, code, at = self.transport.read(regions.REGISTERS["status"].address, 3)
        if status & 4:
            name = Error(code).name if code in set(Error) else code
            advice = f": {_ADVICE[Error(code)]}" if code in _ADVICE else ""
            raise DeviceError(f"the core stopped with error {name} at {at}{advice}")

    def _write_layer(self, values: dict[str, int]) -> None:
        """Overwrite the first LAYER record."""
        word, count = isa.LAYER.encode(self.config, values), isa.LAYER.slices(self.config)
        parts = [word >> SLICE * part & (1 << SLICE) - 1 for part in range(count)]
        self.transport.write(regions.address(self.config, Region.LAYERS, 0), parts)

    def _write_entries(self, region: Region, slices: NDArray[np.uint32], *, first: int = 0) -> None:
        """Write entries, given as rows of 32-bit slices, from entry `first` on; in one write if
        their addresses adjoin.
        """
        if not len(slices):
            return
        parts = slices.shape[1]
        if parts & (parts - 1) == 0:
            address = regions.address(self.config, region, first)
            self.transport.write(address, slices.ravel().tolist())
            return
        for entry, row in enumerate(slices.tolist(), first):
            self.transport.write(regions.address(self.config, region, entry), row)

    def _read_entries(self, region: Region, first: int, count: int) -> list[int]:
        parts = regions.slices(self.config)[region]  # a power of two where the host reads
        words = self.transport.read(regions.address(self.config, region, first), count * parts)
        return _joined(words, parts)


def _joined(slices: Sequence[int], parts: int) -> list[int]:
    """Joins slices into numbers of `parts` slices each."""
    return [
        sum(word << (SLICE * part) for part, word in enumerate(slices[at : at + parts]))
        for at in range(0, len(slices), parts)
    ]
