"""The time in which the words of an SDRAM are valid at the pins, and the clock edge that samples
them.

Times are in ps after the edge of the core's clock that makes the chip launch a word. A word is
valid at the pins from ``access + delay`` to ``period + hold + delay``: its *eye*. `delay` differs
between boards. The core can sample at both edges of its clock, so at multiples of half a period.
Calibration finds the edges inside the eye: one, or two neighbouring ones. It cannot measure which
of two has the larger margin. But chip and board tell which is nearer to the middle of the expected
eye, the *nominal* point.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbq_hw.chips import Chip

DRIFT = 1_500
"""Drift of the eye after calibration, in ps, earlier or later, that a board must tolerate at its
usual clock."""


@dataclass(frozen=True, kw_only=True)
class Eye:
    """A word is valid from `begin` to `end`."""

    begin: int
    end: int

    def moved(self, time: int) -> Eye:
        """The same eye `time` later."""
        return Eye(begin=self.begin + time, end=self.end + time)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The sampling of a chip's words at a clock.

    Of `count` half periods after the launch, `nominal_count` is nearest to the nominal point.
    """

    chip: Chip
    clock_hz: int

    @property
    def period(self) -> int:
        return 10**12 // self.clock_hz

    def eye(self, delay: int) -> Eye:
        """The eye, if pads and wires have this delay."""
        chip = self.chip
        return Eye(begin=chip.access, end=self.period + chip.hold).moved(delay)

    def time(self, count: int) -> float:
        """Time of the clock edge `count` half periods after the launch."""
        return count * self.period / 2

    @property
    def nominal(self) -> float:
        """The middle of the eye, with the mean of the board's delays."""
        eye = self.eye((self.chip.delay_least + self.chip.delay_most) // 2)
        return (eye.begin + eye.end) / 2

    @property
    def nominal_count(self) -> int:
        return round(2 * self.nominal / self.period)

    @property
    def falling(self) -> bool:
        """Whether the nominal edge is a falling edge of the core's clock, where the chip's clock
        rises.

        Calibration needs only this bit. Captures at the same edge are a whole period apart, so no
        two of them can be in the eye, and the number of periods in pads and pins does not matter.
        """
        return self.nominal_count % 2 == 0

    def passing(self, eye: Eye) -> list[int]:
        """The half periods after the launch at which a word is right."""
        most = 2 * eye.end // self.period
        return [n for n in range(1, most + 1) if eye.begin <= self.time(n) <= eye.end]

    def chosen(self, eye: Eye) -> int | None:
        """The edge that calibration chooses: the nominal edge if it passes, otherwise the first."""
        found = self.passing(eye)
        nominal = [count for count in found if (count % 2 == 0) == self.falling]
        return next(iter(nominal or found), None)

    @property
    def early(self) -> float:
        """How much later the eye of the slowest board may become."""
        return self.time(self.nominal_count) - self.eye(self.chip.delay_most).begin

    @property
    def late(self) -> float:
        """How much earlier the eye of the fastest board may become."""
        return self.eye(self.chip.delay_least).end - self.time(self.nominal_count)

    @property
    def survives(self) -> bool:
        """Whether the eye of any of these boards may move by `DRIFT` after calibration."""
        return min(self.early, self.late) >= DRIFT


def fastest(chip: Chip) -> int:
    """The highest clock, in whole MHz, up to which the eye may move by `DRIFT`."""
    most = 10**6 // chip.period
    good = [Sampling(chip=chip, clock_hz=mhz * 10**6).survives for mhz in range(1, most + 1)]
    return good.index(False) if False in good else most
