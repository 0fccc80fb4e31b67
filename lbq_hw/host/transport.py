"""The interface of a transport, which carries words to a core, and its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class DeviceError(RuntimeError):
    """A core refused a request or failed; one sentence."""


class Transport(Protocol):
    """Carries 32-bit words to a core's port, by any means."""

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses."""
        ...

    def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        ...

    def wait(self, limit: int) -> bool:
        """Wait until the core is idle, for `limit` cycles at most; returns whether it is idle."""
        ...
