"""A core on a board, as an exploration sees it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Point:
    """A core on a board: `core` is the contents of a build's core.json, the rest is estimated from
    it.

    `luts` are four-input LUTs, or logic cells where the family has those, door included. `seconds`
    is the time from image to image as a host sees it at `baud`; `core_seconds` is the core's part.
    """

    model: str
    board: str
    clock_hz: int
    baud: int
    luts: int
    block_rams: int
    seconds: float
    core_seconds: float
    core: dict[str, Any]

    @property
    def id(self) -> str:
        """An id of everything that a build of this point depends on; its start is readable."""
        parts = {name: self.core[name] for name in ("config", "clock_hz", "opening")}
        text = json.dumps([self.model, self.board, parts], sort_keys=True)
        return f"{self.board}-{self.model}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def sizes(self) -> dict[str, Any]:
        """The explored sizes: lanes, word, units, bits, door and memory."""
        config, opening = self.core["config"], self.core["opening"]
        return {
            "lanes": config["lanes"],
            "word": config["word"],
            "summary": config["summary"],
            "units": config["units"],
            "bits": config["weight_bits"],
            "door": "no" if opening is None else "queue" if opening["queue"] else "yes",
            "memory": "external" if config["external"] else "internal",
        }

    def facts(self) -> dict[str, Any]:
        """One object for JSON, without `core`."""
        found = {name: value for name, value in asdict(self).items() if name != "core"}
        return found | self.sizes


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The result of place and route of a point with one seed; `error` if it failed.

    `cycles` are those of an image as the core's cycle model counts them, None without images.
    `row` is the build as `lbq_hw.resources` keeps measured builds.
    """

    id: str
    seed: int
    luts: int = 0
    block_rams: int = 0
    fmax_hz: float = 0.0
    cycles: float | None = None
    row: dict[str, Any] | None = None
    error: str | None = None


def best(placed: list[Placed]) -> Placed | None:
    """The seed with the fastest clock, if any seed was placed."""
    return max((one for one in placed if one.error is None), key=lambda p: p.fmax_hz, default=None)
