"""Tables that the tape fills as ring buffers, and reuse of entries that are still in them."""

from __future__ import annotations

from collections.abc import Hashable


class FullError(ValueError):
    """A table needs `amount` entries and has fewer; the CoreConfig's `field` is its size."""

    def __init__(self, field: str, amount: int) -> None:
        super().__init__(f"{field} must be at least {amount}")
        self.field, self.amount = field, amount


class Ring:
    """A table of `size` entries: its contents by key, and the last pass that reads each."""

    def __init__(self, field: str, size: int) -> None:
        self._field = field
        self._read = [-1] * size
        self._held: dict[Hashable, tuple[int, int]] = {}
        self._next = 0

    def copy(self) -> Ring:
        other = Ring(self._field, 0)
        other._read, other._held = list(self._read), dict(self._held)
        other._next = self._next
        return other

    def put(self, key: Hashable, count: int, reader: int) -> tuple[int, int | None]:
        """Allocate the `count` entries of `key` while pass `reader` reads them.

        Returns their place, and how many passes must be done before they are written; None if they
        are in the table already. FullError if the table is too small.
        """
        size, after = len(self._read), None
        if count > size:
            raise FullError(self._field, count)
        if key in self._held:
            first, _ = self._held[key]
        else:
            first = self._next if self._next + count <= size else 0
            self._next = end = first + count
            after = max(self._read[first:end]) + 1
            self._held = {
                other: (start, length)
                for other, (start, length) in self._held.items()
                if start >= end or start + length <= first
            }
            self._held[key] = first, count
        self._read[first : first + count] = [reader] * count
        return first, after
