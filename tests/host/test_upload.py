"""A tape over a line: its bytes and seconds, what is said of them, and a line that is lost."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from host.memory_model import CoreMemory
from host.test_line import Wire
from tapes import drawn

from lbq_hw.compiler import Program, compile_network
from lbq_hw.host import Device, DeviceError, LinkError, SerialTransport
from lbq_hw.host.memory import PIECE, pieces
from lbq_hw.host.upload import Upload, line_bytes, upload_tape

BAUD = 3_000_000


class MemoryWire(Wire):
    """A port with the link's model at its other end, and a core with external memory behind it.

    Its clock is that of the line: bytes to the core, which answers while the next ones come.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.cells = self.model.memory = CoreMemory(program.config)
        self.lives: int | None = None

    def write(self, data: bytes) -> int:
        if self.lives is not None:
            self.lives -= len(data)
            if self.lives < 0:
                raise OSError(5, "Input/output error")
        return super().write(data)

    def now(self) -> float:
        return 10 * self.sent / BAUD


def prepared(slices: int, wire: MemoryWire | None = None) -> tuple[MemoryWire, Device]:
    """A program with any bytes as its tape, which Device does not look at."""
    program = compile_network(*drawn(3))
    wire = wire or MemoryWire(program)
    device = Device(SerialTransport(wire), program)
    data = random.Random(slices).randbytes(4 * slices)
    device.program = replace(program, tape=data)
    return wire, device


def upload(wire: MemoryWire, device: Device, **options: Any) -> tuple[Upload, list[Any], list[str]]:
    told: list[Any] = []
    said: list[str] = []
    given = {"everything": False, "refuse": False} | options
    made = upload_tape(
        device,
        baud=BAUD,
        now=wire.now,
        progress=lambda *step: told.append(step),
        say=said.append,
        **given,
    )
    return made, told, said


def test_an_upload_tells_its_pieces_its_estimate_and_its_rate() -> None:
    wire, device = prepared(2 * PIECE + 50)
    made, told, said = upload(wire, device)
    tape = device.program.tape
    assert wire.cells.bytes(len(tape)) == tape
    assert (made.pieces, made.written, made.bytes) == (3, 3, len(tape))
    assert told == [
        *(("compare", done, 3) for done in range(4)),
        *(("upload", done, 3) for done in range(4)),
    ]
    assert said == [
        "upload: 3 of 3 pieces, 0.131 MB, about 467 ms at 3,000,000 baud",
        f"upload: {1e3 * made.seconds:.0f} ms, {made.bytes / made.seconds / 1e3:.0f} kB/s",
    ]
    # The model's digests take three looks, of which the estimate counts one.
    assert made.estimate == pytest.approx(made.seconds, rel=0.001)
    assert made.facts() == {
        "pieces": 3,
        "written": 3,
        "bytes": len(tape),
        "estimate": made.estimate,
        "seconds": made.seconds,
        "bytes_per_second": made.bytes / made.seconds,
    }


def test_frames_and_escapes_of_random_data_add_6_6_percent() -> None:
    _, device = prepared(PIECE)
    cut = pieces(device.program.tape)
    assert round(100 * (line_bytes(device, cut) / (4 * PIECE) - 1), 1) == 6.6


def test_what_the_memory_holds_is_not_written() -> None:
    wire, device = prepared(PIECE + 50)
    upload(wire, device)
    before = len(wire.cells.written)
    made, told, said = upload(wire, device)
    assert (made.pieces, made.written, made.bytes, made.estimate) == (2, 0, 0, 0)
    assert made.rate is None
    assert told[-1] == ("upload", 0, 0)
    assert said == []
    assert len(wire.cells.written) == before


def test_everything_is_written_again_where_that_is_asked_for() -> None:
    wire, device = prepared(PIECE + 50)
    upload(wire, device)
    made, told, _ = upload(wire, device, everything=True)
    assert made.written == 2
    assert [what for what, _, _ in told] == ["upload"] * 3
    assert len(wire.cells.written) == 2 * (PIECE + 50)


def test_a_refused_upload_writes_nothing() -> None:
    wire, device = prepared(50)
    text = r"^the external memory does not hold this model: leave out --no-load to upload it$"
    with pytest.raises(DeviceError, match=text):
        upload(wire, device, refuse=True)
    assert not wire.cells.written
    upload(wire, device)
    assert upload(wire, device, refuse=True)[0].written == 0


def test_a_line_that_is_lost_is_taken_up_where_it_was() -> None:
    wire, device = prepared(3 * PIECE)
    wire.lives = int(1.5 * 4 * PIECE * 1.06) + 3000  # in the second piece
    text = (
        "the upload stopped after 1 of 3 pieces, which are kept: run this again to continue "
        "(the port is gone ([Errno 5] Input/output error))"
    )
    with pytest.raises(LinkError, match=f"^{re.escape(text)}$"):
        upload(wire, device)
    wire.lives = None
    wire.cells.written.clear()
    _, again = prepared(3 * PIECE, wire)
    made, _, said = upload(wire, again)
    assert made.written == 2
    assert said[0] == "upload: 2 of 3 pieces, 0.131 MB, about 466 ms at 3,000,000 baud"
    assert min(wire.cells.written) == PIECE
    assert wire.cells.bytes(12 * PIECE) == again.program.tape
