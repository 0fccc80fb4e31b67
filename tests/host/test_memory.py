"""The host's side of external memory against a model of a core's registers."""

from __future__ import annotations

import random
import re

import pytest
from host.memory_model import CALIBRATED, DIGESTS, FAILED, LOOKS, CoreMemory, MemoryTransport

from lbq_hw.config import CoreConfig
from lbq_hw.host import DeviceError, ExternalMemory
from lbq_hw.host.memory import PIECE, Captures, pieces, recalibrated
from lbq_hw.isa import regions

CORE = CoreConfig().with_external()


def opened(*, state: int = CALIBRATED) -> tuple[CoreMemory, ExternalMemory]:
    cells = CoreMemory(CORE, state=state)
    return cells, ExternalMemory(MemoryTransport(cells))


def tape(slices: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(4 * slices)


def test_a_tape_is_cut_into_pieces_and_filled_to_a_whole_slice() -> None:
    data = tape(2 * PIECE + 1) + b"abc"
    cut = pieces(data)
    assert [(piece.first, piece.slices) for piece in cut] == [
        (0, PIECE), (PIECE, PIECE), (2 * PIECE, 2),
    ]  # fmt: skip
    assert b"".join(piece.data for piece in cut) == data + b"\0"
    assert cut[2].words()[-1] == int.from_bytes(b"abc\0", "little")
    assert pieces(b"") == []


def test_a_tape_that_no_memory_holds_is_refused() -> None:
    most = 4 * regions.MEMORY_SLICES
    text = f"^a tape must have at most {most} bytes, not {most + 4}$"
    with pytest.raises(ValueError, match=text):
        pieces(bytes(most + 1))


def test_all_that_differs_is_written_and_compared() -> None:
    cells, memory = opened()
    data = tape(PIECE + 100)
    cut = pieces(data)
    ticks: list[int] = []
    differing = memory.differing(cut, lambda: ticks.append(0))
    assert differing == cut
    memory.upload(differing, lambda: ticks.append(1))
    assert cells.bytes(len(data)) == data
    assert cells.digests == [(0, PIECE), (PIECE, 100)] * 2
    assert ticks == [0, 0, 1, 1]
    assert memory.differing(cut) == []


def test_what_is_there_is_not_written_again() -> None:
    cells, memory = opened()
    data = tape(3 * PIECE)
    cells.load(data)
    cells[(9 << 28) | PIECE + 7] ^= 1 << 31
    differing = memory.differing(pieces(data))
    assert [piece.first for piece in differing] == [PIECE]
    memory.upload(differing)
    assert (min(cells.written), max(cells.written)) == (PIECE, 2 * PIECE - 1)
    assert cells.bytes(len(data)) == data


def test_a_memory_that_does_not_keep_a_piece_is_told_after_a_second_try() -> None:
    cells, memory = opened()
    data = bytes(4 * (PIECE + 5))
    cells.stuck[PIECE + 3] = 1 << 9
    text = (
        f"the external memory does not keep what is written to slices {PIECE} to {PIECE + 4}: run "
        "with --recalibrate, and if that does not help, test it with --memory-test"
    )
    with pytest.raises(DeviceError, match=f"^{re.escape(text)}$"):
        memory.upload(pieces(data))
    assert cells.digests == [(0, PIECE), *[(PIECE, 5)] * 2]


def test_a_piece_that_was_altered_once_is_written_again() -> None:
    class Altering(MemoryTransport):
        def write(self, address: int, words: object) -> None:
            super().write(address, words)  # type: ignore[arg-type]
            if address >> 28 == 9 and len(self.cells.written) == 5:
                self.cells[address + 2] ^= 4

    cells = CoreMemory(CORE)
    data = tape(5)
    ExternalMemory(Altering(cells)).upload(pieces(data))
    assert cells.bytes(20) == data
    assert cells.written == [0, 1, 2, 3, 4] * 2


def test_a_test_goes_over_the_whole_memory_and_tells_what_differs() -> None:
    cells, memory = opened()
    assert memory.test() == 0
    cells.stuck = {5: 1, 900: 2}
    looks: list[int] = []
    assert memory.test(tick=lambda: looks.append(0)) == 4
    assert memory.test(last=100) == 2
    assert cells.tests == [regions.MEMORY_SLICES - 1, regions.MEMORY_SLICES - 1, 100]
    assert len(looks) == 2


def test_a_memory_that_cannot_be_calibrated_is_told() -> None:
    text = (
        r"^the external memory does not work: its calibration found no timing at which words come "
        r"back; check that the package is for this board, and power the board off and on$"
    )
    with pytest.raises(DeviceError, match=text):
        opened(state=FAILED)


@pytest.mark.parametrize("state", [CALIBRATED, FAILED])
def test_a_calibration_is_waited_for_and_tells_what_passed(state: int) -> None:
    class Looking(MemoryTransport):
        looks = 0

        def read(self, address: int, count: int) -> list[int]:
            self.looks += 1
            return super().read(address, count)

    line = Looking(CoreMemory(CORE, state=state))
    memory = recalibrated(line)
    assert (line.looks, line.cells.calibrations) == (LOOKS, 1)
    assert memory.captures() == Captures(passed=(1, 2), used=1)
    assert memory.captures().facts() == {"passed": [1, 2], "used": 1}


@pytest.mark.parametrize("used", range(14))
def test_captures_are_read_from_their_register(used: int) -> None:
    assert Captures.decode(used << 16 | 1 << 13 | 1) == Captures(passed=(0, 13), used=used)


@pytest.mark.parametrize("state", [0, CALIBRATED | DIGESTS])
def test_a_memory_that_is_not_ready_is_told(state: int) -> None:
    cells = CoreMemory(CORE, state=state)
    cells.ends, cells._left = False, 1
    text = (
        r"^the external memory is not calibrated, or another host uses it: try again, or reset the "
        r"board$"
    )
    with pytest.raises(DeviceError, match=text):
        ExternalMemory(MemoryTransport(cells))


def test_a_memory_that_is_calibrated_late_is_waited_for() -> None:
    class Late(MemoryTransport):
        looks = 0

        def read(self, address: int, count: int) -> list[int]:
            self.looks += 1
            self.cells.state = int(self.looks > 50)
            return super().read(address, count)

    late = Late(CoreMemory(CORE))
    ExternalMemory(late)
    assert late.looks == 51


@pytest.mark.parametrize(("what", "name"), [("digest", "digest"), ("test", "self-test")])
def test_what_never_ends_is_given_up(what: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbq_hw.host.memory.TEST_LOOKS", 100)
    cells, memory = opened()
    cells.ends = False
    text = (
        f"^the external memory does not finish its {name}: reset the board, and if that does not "
        r"help, load its bitstream again$"
    )
    with pytest.raises(DeviceError, match=text):
        memory.digest(0, 5) if what == "digest" else memory.test()
