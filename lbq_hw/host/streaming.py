"""A streaming core that holds a program; the host sends the events of one step at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbq_hw.host.transport import DeviceError, Transport
from lbq_hw.isa.record import SLICE
from lbq_hw.numeric import Integers
from lbq_hw.streaming import records
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import CLEAR, RESET, STEP, StreamError, StreamRegion

LIMIT = 1 << 24
"""Upper bound on the cycles of a step."""


class StreamLostError(DeviceError):
    """The core's membranes do not belong to this host's steps; `reset` clears them."""


class StreamDevice:
    """One streaming core and the program in it; it keeps its membranes from step to step."""

    def __init__(self, transport: Transport, program: StreamProgram) -> None:
        self.transport, self.program = transport, program
        self.config = program.config
        wanted = [records.MAGIC, int(self.config.digest[:8], 16)]
        found = transport.read(self._register("id"), 2)
        if found != wanted:
            raise DeviceError(
                f"the core must be a streaming one with config {wanted[1]:08x}, not {found[0]:08x} "
                f"with {found[1]:08x}: load the bitstream of this program"
            )
        self.steps, self._epoch = self._counts()

    def load(self) -> None:
        """Write the program, and reset."""
        self._command(CLEAR)
        for address, words in self.program.writes():
            self.transport.write(address, words)
        self.reset()

    def reset(self) -> None:
        """Set membranes, maps and the number of steps to 0."""
        self._command(CLEAR)
        self._run(RESET)
        self.steps, self._epoch = self._counts()

    def step(self, frame: NDArray[np.uint8]) -> Integers:
        """Execute one raw frame ``(C, H, W)``; returns the logits so far."""
        self.start(frame)
        return self.logits()

    def start(self, frame: NDArray[np.uint8]) -> None:
        """Execute one raw frame without reading its results."""
        self._command(CLEAR)
        address, most = records.address(self.config, StreamRegion.EVENTS, 0), records.EVENT_ENTRIES
        words = self.program.events(frame)
        for at in range(0, len(words), most):
            self.transport.write(address, words[at : at + most])
        self._run(STEP)
        self.steps += 1
        self._check_lost()

    def logits(self) -> Integers:
        """The logits so far."""
        first, count = self.program.logits, self.program.logit_words
        return self.program.read_logits(self._entries(StreamRegion.MEMBRANES, first, count))

    def levels(self, name: str) -> NDArray[np.uint8]:
        """The levels that a layer emitted in the last step, ``(C, H, W)``."""
        tensor = self.program.tensors[name]
        _, height, width = tensor.shape
        count = height * width * tensor.pixel
        maps = self._entries(StreamRegion.MAPS, tensor.map, height)
        words = self._entries(StreamRegion.LEVELS, tensor.base, count)
        return self.program.read_levels(name, maps, words)

    def cycles(self) -> int:
        """Cycles of the last step."""
        return self.transport.read(self._register("cycles"), 1)[0]

    def _counts(self) -> tuple[int, int]:
        steps, epoch = self.transport.read(self._register("step"), 2)
        return steps, epoch

    def _check_lost(self) -> None:
        steps, epoch = self._counts()
        if epoch != self._epoch:
            raise StreamLostError("the core was reset by another host, or lost its power: reset it")
        if steps != self.steps & ((1 << SLICE) - 1):
            raise StreamLostError(
                f"the core has made {steps} steps since its reset, not {self.steps}: reset it"
            )

    def _command(self, bits: int) -> None:
        self.transport.write(self._register("control"), [bits])

    def _run(self, bits: int) -> None:
        self._command(bits)
        # A serial line reads the cycles where other cores have them, and may give up too soon.
        while not self.transport.wait(LIMIT):
            if self.cycles() >= LIMIT:
                raise DeviceError(f"the core did not finish within {LIMIT} cycles: reset it")
        status, code = self.transport.read(self._register("status"), 2)
        if not status & 4:
            return
        if code == StreamError.MEMBRANE:
            raise StreamLostError(
                f"a membrane overflowed its width in step {self.steps + 1}: reset the core"
            )
        name = StreamError(code).name if code in set(StreamError) else str(code)
        raise DeviceError(f"the core stopped with error {name}")

    def _register(self, name: str) -> int:
        return records.REGISTERS.index(name)

    def _entries(self, region: StreamRegion, first: int, count: int) -> list[int]:
        parts = records.slices(self.config, region)
        step = 1 << (parts - 1).bit_length()
        address = records.address(self.config, region, first)
        words = self.transport.read(address, count * step) if step == parts else []
        if step != parts:
            for entry in range(count):
                words += self.transport.read(address + entry * step, parts)
        return [
            sum(word << (SLICE * i) for i, word in enumerate(words[at : at + parts]))
            for at in range(0, len(words), parts)
        ]
