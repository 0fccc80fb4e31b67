"""Uploads a tape into a board's external memory, with an estimate and progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lbq_hw import units
from lbq_hw.host.device import Device
from lbq_hw.host.frames import STUFFED
from lbq_hw.host.line import LinkError
from lbq_hw.host.memory import Piece, pieces
from lbq_hw.host.meter import Meter
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import regions
from lbq_hw.isa.link import BYTE_BITS

Progress = Callable[[str, int, int], object]
"""Progress callback: what is being done, how many pieces are done, and how many there are."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """The result of an upload: of the tape's `pieces`, `written` differed and had so many `bytes`.

    `estimate` and `seconds` are for writing these pieces, without the comparison before.
    """

    pieces: int
    written: int
    bytes: int
    estimate: float
    seconds: float

    @property
    def rate(self) -> float | None:
        """Bytes of the tape per second; None if nothing was written."""
        return self.bytes / self.seconds if self.written and self.seconds > 0 else None

    def facts(self) -> dict[str, Any]:
        """The result as a JSON-able object."""
        return asdict(self) | {"bytes_per_second": self.rate}


def line_bytes(device: Device, wanted: Sequence[Piece]) -> int:
    """The fewest bytes on the line to write pieces and compare each once, escapes included."""
    meter, escapes = Meter(device.config), 0
    number = regions.MEMORY_REGISTERS
    for piece in wanted:
        meter.write(piece.address, range(piece.slices))
        meter.write(number["digest_first"].address, range(2))
        for name in ("memory", "digest_crc"):
            meter.read(number[name].address, 1)
        escapes += sum(piece.data.count(byte) for byte in STUFFED)
    return meter.count + escapes


def upload_tape(
    device: Device,
    *,
    baud: int,
    now: Callable[[], float],
    everything: bool,
    refuse: bool,
    progress: Progress,
    say: Callable[[str], object],
) -> Upload:
    """Write the missing pieces of a tape, or `everything`. With `refuse`, DeviceError if a piece is
    missing.

    `now` returns seconds. `say` gets one line before the upload, with the estimate, and one after
    it. If the line is lost, written pieces stay, and the next upload continues from there.
    """
    tape = pieces(device.program.tape)
    memory = device.memory()
    wanted = tape
    if not everything:
        wanted = memory.differing(tape, _Counter(progress, "compare", len(tape)))
    size = sum(len(piece.data) for piece in wanted)
    if wanted and refuse:
        raise DeviceError(
            "the external memory does not hold this model: leave out --no-load to upload it"
        )
    estimate = line_bytes(device, wanted) * BYTE_BITS / baud
    if wanted:
        say(
            f"upload: {len(wanted)} of {len(tape)} pieces, {size / 1e6:.3g} MB, about "
            f"{units.seconds(estimate)} at {baud:,} baud"
        )
    began, done = now(), _Counter(progress, "upload", len(wanted))
    try:
        memory.upload(wanted, done)
    except LinkError as error:
        raise LinkError(
            f"the upload stopped after {done.count} of {len(wanted)} pieces, which are kept: run "
            f"this again to continue ({error})"
        ) from error
    device.check()
    made = Upload(
        pieces=len(tape),
        written=len(wanted),
        bytes=size,
        estimate=estimate,
        seconds=now() - began,
    )
    if made.rate is not None:
        say(f"upload: {units.seconds(made.seconds)}, {units.si(made.rate)}B/s")
    return made


class _Counter:
    """Counts ticks, and reports each."""

    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self.count = 0
        self._progress, self._what, self._total = progress, what, total
        progress(what, 0, total)

    def __call__(self) -> None:
        self.count += 1
        self._progress(self._what, self.count, self._total)
