"""When the words of an SDRAM can be taken from its pins, and which edge of the clock takes them.

Times are in ps after the edge of the core's clock that makes the chip launch a word. Between pads
and wires of the slowest and of the fastest board a word is there from ``access + delay`` to
``period + hold + delay``: its *eye*. The core takes words at both edges of its clock, so at whole
numbers of half periods. Calibration finds out which of them lie in the eye: one, or two side by
side. Where there are two it cannot see which of them has the larger margin, but the times of chip
and board tell: the one nearest to the middle of the eye that is expected, the *nominal* point.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbq_hw.chips import Chip

DRIFT = 1_500
"""What the eye may move after calibration, in ps, earlier or later, at a board's usual clock."""


@dataclass(frozen=True, kw_only=True)
class Eye:
    """A word is right from `begin` to `end`."""

    begin: int
    end: int

    def moved(self, time: int) -> Eye:
        """The same eye `time` later."""
        return Eye(begin=self.begin + time, end=self.end + time)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Where a chip's words are taken at a clock.

    Of `count` half periods after the launch, `nominal_count` is nearest to the nominal point.
    """

    chip: Chip
    clock_hz: int

    @property
    def period(self) -> int:
        return 10**12 // self.clock_hz

    def eye(self, delay: int) -> Eye:
        """With pads and wires of this delay."""
        chip = self.chip
        return Eye(begin=chip.access, end=self.period + chip.hold).moved(delay)

    def time(self, count: int) -> float:
        """Of the edge that is `count` half periods after the launch."""
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
        """Whether it is a falling edge of the core's clock: that is where the chip's clock rises.

        This is all that calibration need know. Captures at the same edge are a period apart, and so
        never two of them are in the eye; how many periods pads and pins add need not be known.
        """
        return self.nominal_count % 2 == 0

    def passing(self, eye: Eye) -> list[int]:
        """The half periods after the launch at which a word is right."""
        most = 2 * eye.end // self.period
        return [n for n in range(1, most + 1) if eye.begin <= self.time(n) <= eye.end]

    def chosen(self, eye: Eye) -> int | None:
        """What calibration takes of those: the nominal edge, or else the first."""
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
