"""A core's addresses with an external memory among them: what its registers tell and start."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

NUMBER = {
    name: register.address
    for name, register in (regions.REGISTERS | regions.MEMORY_REGISTERS).items()
}
FIRST = Region.MEMORY << regions.SHIFT
CALIBRATED, DIGESTS, FAILED, TESTS = 1, 2, 4, 8
LOOKS = 3
"""Looks at the state during which a digest, a test or a calibration goes on."""
CAPTURES = 1 << 16 | 0b110
"""Of the register: 1 and 2 have passed, 1 is used."""


class CoreMemory(dict[int, int]):
    """What lies at each address; `get` and `update` are all that a transport needs.

    `stuck` has the bits that a slice always has as 1. `digests` and `written` are what was asked
    for, the latter by the first slice of each run of writes.
    """

    def __init__(self, config: CoreConfig, *, state: int = CALIBRATED) -> None:
        super().__init__(
            {
                NUMBER["id"]: regions.MAGIC,
                NUMBER["digest"]: int(config.digest[:8], 16),
                NUMBER["captures"]: CAPTURES,
            }
        )
        self.state = state
        self.stuck: dict[int, int] = {}
        self.digests: list[tuple[int, int]] = []
        self.written: list[int] = []
        self.tests: list[int] = []
        self.calibrations = 0
        self.ends = True
        self._left = 0

    def slices(self, first: int, count: int) -> list[int]:
        return [
            super(CoreMemory, self).get(FIRST | at, 0) | self.stuck.get(at, 0)
            for at in range(first, first + count)
        ]

    def get(self, address: int, default: int = 0) -> int:  # type: ignore[override]
        if address == NUMBER["memory"]:
            self._left -= self.ends and self._left > 0
            if not self._left:
                self.state &= ~(DIGESTS | TESTS)
                self.state |= CALIBRATED if self.calibrations else 0
            return self.state
        return 0 if address < 32 and address not in self else super().get(address, default)

    def update(self, pairs: Iterable[tuple[int, int]]) -> None:  # type: ignore[override]
        for address, word in pairs:
            if address == NUMBER["captures"]:
                self.calibrations += 1
                self.state, self._left = self.state & ~(CALIBRATED | FAILED), LOOKS
                continue
            self[address] = word
            if address >= FIRST:
                self.written.append(address - FIRST)
            if address == NUMBER["digest_slices"]:
                first = self[NUMBER["digest_first"]]
                self.digests.append((first, word))
                data = struct.pack(f"<{word}I", *self.slices(first, word))
                self[NUMBER["digest_crc"]] = zlib.crc32(data)
                self._begin(DIGESTS)
            if address == NUMBER["test_last"]:
                self.tests.append(word)
                self[NUMBER["test_differing"]] = 2 * sum(at <= word for at in self.stuck)
                self._begin(TESTS)

    def _begin(self, busy: int) -> None:
        assert not self.state & (DIGESTS | TESTS)
        self.state, self._left = self.state | busy, LOOKS

    def load(self, tape: bytes, first: int = 0) -> None:
        """Put bytes there, as if they had been written before."""
        words = struct.unpack(f"<{len(tape) // 4}I", tape)
        for at, word in enumerate(words, first):
            self[FIRST | at] = word

    def bytes(self, count: int) -> bytes:
        return struct.pack(f"<{count // 4}I", *self.slices(0, count // 4))


class MemoryTransport:
    """Carries words to a `CoreMemory` at once."""

    def __init__(self, cells: CoreMemory) -> None:
        self.cells = cells

    def write(self, address: int, words: Sequence[int]) -> None:
        self.cells.update((address + at, word) for at, word in enumerate(words))

    def read(self, address: int, count: int) -> list[int]:
        return [self.cells.get(address + at) for at in range(count)]

    def wait(self, limit: int) -> bool:
        return limit > 0
