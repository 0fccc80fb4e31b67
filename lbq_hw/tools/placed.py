"""The results of place and route: a design's resources, its clocks and their critical paths."""

from __future__ import annotations

from dataclasses import dataclass

# Kinds of resources, in the order of the report. An iCE40 logic cell is a LUT and a flip-flop.
KINDS = {
    "LC": "logic cells",
    "LUT": "LUTs",
    "FF": "flip-flops",
    "LUTRAM": "distributed RAM",
    "EBR": "block RAM",
    "SPRAM": "single-port RAM",
    "DSP": "multipliers",
    "PLL": "PLLs",
    "IO": "pins",
}


def check_kinds(kinds: object) -> None:
    """Refuse a kind, or the keys of a dictionary, that are not among `KINDS`."""
    for kind in kinds if isinstance(kinds, dict) else (kinds,):
        if kind not in KINDS:
            raise ValueError(f"a resource kind must be one of {', '.join(KINDS)}, not {kind!r}")


@dataclass(frozen=True, kw_only=True)
class Resource:
    kind: str
    used: int
    available: int

    def __post_init__(self) -> None:
        check_kinds(self.kind)

    @property
    def taken(self) -> float:
        """The share of the available cells that the design uses."""
        return self.used / self.available


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One stretch of a path: a cell's delay or the wire to the next cell."""

    kind: str
    delay_ns: float
    source: str
    sink: str
    net: str = ""


@dataclass(frozen=True, kw_only=True)
class CriticalPath:
    source: str
    sink: str
    segments: tuple[Segment, ...]

    @property
    def delay_ns(self) -> float:
        return sum(segment.delay_ns for segment in self.segments)


@dataclass(frozen=True, kw_only=True)
class Clock:
    name: str
    fmax_hz: float
    target_hz: float


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The timing after routing. `seeds` are all seeds tried, with the Fmax in Hz of each."""

    clocks: tuple[Clock, ...]
    paths: tuple[CriticalPath, ...] = ()
    seed: int | None = None
    seeds: dict[str, float] | None = None

    @property
    def met(self) -> bool:
        return all(clock.fmax_hz >= clock.target_hz for clock in self.clocks)

    @property
    def slowest(self) -> Clock | None:
        """The clock with the smallest margin."""
        return min(self.clocks, key=lambda clock: clock.fmax_hz / clock.target_hz, default=None)
