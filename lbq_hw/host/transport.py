"""Whatever carries words to a core, and what can go wrong there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class DeviceError(RuntimeError):
    """What a core refused or could not do; one sentence."""


class Transport(Protocol):
    """Whatever carries 32-bit words to a core's port."""

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses."""
        ...

    def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        ...

    def wait(self, limit: int) -> bool:
        """Wait until the core is idle, for `limit` cycles at most; whether it is."""
        ...
