"""The price of a board, with its source and date, to compare boards."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Price"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, kw_only=True)
class Price:
    """An `amount` in a `currency` such as "USD"; `source` asked it on a `date` (2026-01-31)."""

    amount: float
    currency: str
    source: str
    date: str

    def __post_init__(self) -> None:
        if not isinstance(self.amount, int | float) or not self.amount > 0:
            raise ValueError(f"amount of a price must be above 0, not {self.amount!r}")
        if not isinstance(self.currency, str) or not re.fullmatch("[A-Z]{3}", self.currency):
            raise ValueError(f"currency must be three letters such as USD, not {self.currency!r}")
        if not isinstance(self.source, str) or not self.source:
            raise ValueError(f"source of a price must say who asks it, not {self.source!r}")
        if not isinstance(self.date, str) or not _DATE.fullmatch(self.date):
            raise ValueError(f"date of a price must be like 2026-01-31, not {self.date!r}")
