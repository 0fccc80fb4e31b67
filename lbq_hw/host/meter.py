"""Counts the bytes of an image on the serial line, without a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbq_hw.config import CoreConfig
from lbq_hw.host.frames import REPLY_BYTES, REQUEST_BYTES, STUFFED, cuts
from lbq_hw.isa import regions
from lbq_hw.isa.link import CRC_BYTES

_ENDS = CRC_BYTES + 1  # of a frame, its flag included


class Meter:
    """A transport that counts the bytes on the line, and the `turns`.

    `count` excludes escapes; `escapes` counts the escapes in the words of writes. A write is
    answered while its next frames are sent, so that only its last answer counts. A turn is an
    answer that the host waits for. The core seems idle, and all reads return 0.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self.count = self.escapes = self.turns = 0

    def write(self, address: int, words: Sequence[int]) -> None:
        for _, size in cuts(address, len(words)):
            self.count += REQUEST_BYTES + 4 * size + _ENDS
        self.count += REPLY_BYTES + _ENDS
        data = np.array(words, np.uint32)
        self.escapes += sum(data.tobytes().count(byte) for byte in STUFFED)
        self.turns += 1

    def read(self, address: int, count: int) -> list[int]:
        for _, size in cuts(address, count):
            self.count += REQUEST_BYTES + _ENDS + REPLY_BYTES + 4 * size + _ENDS
            self.turns += 1
        if (address, count) == (0, 2):
            return [regions.MAGIC, int(self._config.digest[:8], 16)]
        return [0] * count

    def wait(self, limit: int) -> bool:
        """One poll, as in `SerialTransport.wait`."""
        del limit
        first, last = (regions.REGISTERS[name].address for name in ("status", "cycles_high"))
        self.read(first, last - first + 1)
        return True
