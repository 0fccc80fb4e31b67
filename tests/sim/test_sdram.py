"""The pin-level model of an SDRAM: every check fires, and what is allowed passes."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from core.external.simulated import RUN, SMALL_16, run

from lbq_hw.chips import CHIPS, TANG_NANO_20K, ULX3S, Chip
from lbq_hw.chips.timing import reader_timing
from lbq_hw.cycles.words import WordStream
from lbq_hw.sim.sdram import MODEL, SimulatedMemory, contents, parameters, tape_contents
from lbq_hw.sim.verilator import build_bench
from lbq_hw.sim.verilog import convert

NONE, ACTIVATE, READ, REFRESH, TERMINATE, PRECHARGE, WRITE, MODE = range(8)
ASLEEP, DRIVEN, MASKED, UNKNOWN, RELOAD = 8, 16, 32, 64, 128
ALL = 1 << 10
Step = tuple[int, int, int, int]


def do(command: int, bank: int = 0, address: int = 0, data: int = 0) -> list[Step]:
    return [(command, bank, address, data)]


def wait(cycles: int) -> list[Step]:
    return do(NONE) * cycles


def mode(cas: int = 3, length: int = 7, extra: int = 1 << 9) -> list[Step]:
    return do(MODE, 0, extra | cas << 4 | length) + wait(1)


WAKE = do(ASLEEP) * 5 + wait(5)
PREPARE = WAKE + do(PRECHARGE, 0, ALL) + wait(1) + (do(REFRESH) + wait(5)) * 2
START = PREPARE + mode()
ROW = START + do(ACTIVATE, 1, 3) + wait(1)
WRITTEN = ROW + do(WRITE | DRIVEN, 1, 5, 0xBEEF)
BURST = ROW + wait(4) + do(READ, 1, 2)


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, Path]]:
    """The model as it is simulated: once with a clock too fast for a latency of 2."""
    with tempfile.TemporaryDirectory() as name:
        made = {}
        for kind, options in (("", []), ("fast", ["-Ppins.PERIOD_2=10001"])):
            made[kind] = Path(name) / f"pins{kind}.vvp"
            sources = [str(Path(__file__).with_name("sdram_pins.v")), str(MODEL)]
            command = ["iverilog", "-g2012", "-s", "pins", *options, "-o", str(made[kind])]
            subprocess.run([*command, *sources], check=True, capture_output=True)
        yield made


def simulate(program: Path, steps: list[Step], *arguments: str) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "script"
        script.write_text("".join(f"{c} {b} {a:x} {d:x}\n" for c, b, a, d in steps))
        command = ["vvp", "-n", str(program), f"+script={script}", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


def said(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("sdram:")]


CHECKS = {
    "tRCD": (START + do(ACTIVATE, 2) + do(READ, 2), "bank 2"),
    "tRCD of a write": (START + do(ACTIVATE, 2) + do(WRITE | DRIVEN, 2), "bank 2"),
    "tRP": (ROW + wait(6) + do(PRECHARGE, 1) + do(ACTIVATE, 1), "bank 1"),
    "tRP of a refresh": (ROW + wait(6) + do(PRECHARGE, 1) + do(REFRESH), "bank 1"),
    "tRAS": (ROW + wait(2) + do(PRECHARGE, 1), "bank 1"),
    "tRC": (ROW + wait(3) + do(PRECHARGE, 1) + wait(1) + do(ACTIVATE, 1), "bank 1"),
    "tRFC": (START + do(REFRESH) + wait(4) + do(ACTIVATE), "all banks"),
    "tRRD": (START + do(ACTIVATE, 0) + wait(1) + do(ACTIVATE, 3), "bank 3"),
    "tWR": (WRITTEN[:-1] + wait(4) + WRITTEN[-1:] + do(PRECHARGE, 1), "bank 1"),
    "tWR of all": (WRITTEN[:-1] + wait(4) + WRITTEN[-1:] + do(PRECHARGE, 0, ALL), "bank 1"),
    "tMRD": (PREPARE + mode()[:1] + do(ACTIVATE), "all banks"),
    "refresh interval": (START + wait(16 * 200 + 3), "all banks"),
    "power-up wait": (do(ASLEEP) * 2 + wait(2) + do(PRECHARGE, 0, ALL), "all banks"),
    "power-up order": (WAKE + do(REFRESH), "all banks"),
    "power-up order, no mode": (PREPARE + do(ACTIVATE, 2), "bank 2"),
    "power-up order, one refresh": (
        WAKE + do(PRECHARGE, 0, ALL) + wait(1) + do(REFRESH) + wait(5) + mode() + do(ACTIVATE, 2),
        "bank 2",
    ),
    "CAS latency": (PREPARE + mode(cas=1), "all banks"),
    "mode register": (PREPARE + mode(length=5), "all banks"),
    "mode register, interleaved": (PREPARE + mode(extra=1 << 9 | 8), "all banks"),
    "mode register, burst writes": (PREPARE + mode(extra=0), "all banks"),
    "bank open": (ROW + wait(9) + do(ACTIVATE, 1), "bank 1"),
    "bank open at a refresh": (ROW + wait(9) + do(REFRESH), "bank 1"),
    "bank closed": (START + do(READ, 3), "bank 3"),
    "bus turnaround": (BURST + wait(2) + do(DRIVEN), "bank 1"),
    "bus turnaround at the end": (BURST + do(TERMINATE) + wait(1) + do(DRIVEN), "bank 1"),
    "write data": (ROW + do(WRITE, 1), "bank 1"),
    "auto precharge": (ROW + do(READ, 1, ALL), "bank 1"),
    "clock enable": (START + do(ASLEEP), "all banks"),
    "unknown command": (START + do(UNKNOWN), "all banks"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_violation_ends_the_simulation_with_its_name(
    programs: dict[str, Path], name: str
) -> None:
    steps, where = CHECKS[name]
    lines = simulate(programs[""], steps + wait(3))
    check = next(kind for kind in NAMES if name.startswith(kind))
    last = max(n for n, step in enumerate(steps, start=1) if step[0] != NONE)
    if check == "refresh interval":
        # Each of 16 rows may wait for 16 x 200 cycles, from the mode register on.
        last = 1 + 16 * 200 + max(n for n, step in enumerate(steps, start=1) if step[0] == MODE)
    assert said(lines) == [f"sdram: {check} violated in {where} at {last * 10000} ps"]
    assert len(lines) == 2 * last


NAMES = (
    "tRCD", "tRP", "tRAS", "tRC", "tRFC", "tRRD", "tWR", "tMRD", "refresh interval",
    "power-up wait", "power-up order", "CAS latency", "mode register", "bank open", "bank closed",
    "bus turnaround", "write data", "auto precharge", "clock enable", "unknown command",
)  # fmt: skip


def test_a_latency_that_the_clock_does_not_allow_is_a_violation(programs: dict[str, Path]) -> None:
    lines = simulate(programs["fast"], PREPARE + mode(cas=2))
    assert said(lines) == ["sdram: CAS latency violated in all banks at 250000 ps"]
    assert said(simulate(programs["fast"], PREPARE + mode(cas=3))) == []


# Each ends in the first cycle that the data sheet allows.
ALLOWED = {
    "tRCD": ROW + do(READ, 1),
    "tRP, tRAS and tRC": ROW + wait(3) + do(PRECHARGE, 1) + wait(2) + do(ACTIVATE, 1),
    "tRFC": START + do(REFRESH) + wait(5) + do(ACTIVATE),
    "tRRD": START + do(ACTIVATE, 0) + wait(2) + do(ACTIVATE, 3),
    "tWR": ROW + wait(2) + do(WRITE | DRIVEN, 1) + wait(1) + do(PRECHARGE, 1),
    "tMRD": START + do(ACTIVATE),
    "refresh interval": START + wait(3000) + (do(REFRESH) + wait(9)) * 16 + wait(3000),
    "bus turnaround": BURST + do(TERMINATE) + wait(2) + do(DRIVEN),
    "a write and a read": WRITTEN + do(READ, 1),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_passes(programs: dict[str, Path], name: str) -> None:
    lines = simulate(programs[""], ALLOWED[name] + wait(2))
    assert said(lines) == []
    assert len(lines) == 2 * (len(ALLOWED[name]) + 2)


@pytest.mark.parametrize("cas", [2, 3])
@pytest.mark.parametrize(
    ("access", "hold", "edges"),
    [  # the first and the last half period, of 5 ns, at whose end a word is there
        (3000, 2000, (1, 2)),
        (6000, 2000, (2, 2)),
        (6000, 5000, (2, 3)),
        (10000, 4000, (2, 2)),
        (10001, 5000, (3, 3)),
        (14000, 11000, (3, 4)),
    ],
)
def test_a_word_is_right_between_its_access_and_its_hold_time(
    programs: dict[str, Path], cas: int, access: int, hold: int, edges: tuple[int, int]
) -> None:
    begin = PREPARE + mode(cas=cas) + do(ACTIVATE, 1, 3) + wait(1)
    begin += do(WRITE | DRIVEN, 1, 15, 0xBEEF) + do(WRITE | DRIVEN, 1, 0, 0x1234)
    steps = begin + do(READ, 1, 15) + wait(1) + do(TERMINATE) + wait(8)
    lines = simulate(programs[""], steps, f"+sdram_access={access}", f"+sdram_hold={hold}")
    assert said(lines) == []
    seen = [line.split()[1] for line in lines]
    launch = 2 * (len(begin) + cas - 1)  # the line before the edge that launches the first word
    found = {word: [n - launch for n, other in enumerate(seen) if other == word]
             for word in ("beef", "1234")}  # fmt: skip
    right = list(range(edges[0], edges[1] + 1))
    assert found["beef"] == right
    # The full page goes on from its beginning.
    assert found["1234"] == [edge + 2 for edge in right]


def test_masks_keep_words_from_being_written_and_read(programs: dict[str, Path]) -> None:
    steps = WRITTEN + do(WRITE | DRIVEN | MASKED, 1, 5, 0xDEAD)
    steps += do(READ, 1, 5) + do(MASKED) + do(NONE) + do(TERMINATE) + wait(4)
    seen = [line.split()[1] for line in simulate(programs[""], steps)]
    assert seen.count("beef") == 0
    steps[-7] = (NONE, 0, 0, 0)
    assert [line.split()[1] for line in simulate(programs[""], steps)].count("beef") > 0


def test_the_memory_begins_with_the_words_of_a_file(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "words"
    file.write_bytes(contents(range(1 << 10), ULX3S))
    # Columns of 4 bits, then banks of 2, then rows.
    lines = simulate(programs[""], BURST + wait(9), f"+sdram_file={file}")
    assert f"rise {3 << 6 | 1 << 4 | 2:04x}" in lines
    lines = simulate(programs[""], BURST, f"+sdram_file={tmp_path / 'none'}")
    assert said(lines) == [f"sdram: {tmp_path / 'none'} cannot be read"]


def test_the_file_is_read_again_when_it_is_asked_for(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "words"
    file.write_bytes(contents([0x1111] * (1 << 10), ULX3S))
    steps = WRITTEN + do(READ, 1, 5) + wait(4)
    assert "rise beef" in simulate(programs[""], steps, f"+sdram_file={file}")
    lines = simulate(programs[""], WRITTEN + do(RELOAD) + steps[-5:], f"+sdram_file={file}")
    assert "rise beef" not in lines
    assert "rise 1111" in lines


def test_a_tape_is_a_file_of_words() -> None:
    tape = bytes.fromhex("78563412 efcdab90")
    assert tape_contents(tape, 16) == contents([0x5678, 0x1234, 0xCDEF, 0x90AB], ULX3S)
    assert tape_contents(tape, 32) == contents([0x12345678, 0x90ABCDEF], TANG_NANO_20K)


def test_words_of_a_file_have_their_highest_byte_first() -> None:
    assert contents([0x1234, 0xABCD], ULX3S) == b"\x12\x34\xab\xcd"
    assert contents([0x12345678], TANG_NANO_20K) == b"\x12\x34\x56\x78"


def test_an_access_time_beyond_what_the_model_keeps_is_refused(programs: dict[str, Path]) -> None:
    lines = simulate(programs[""], WAKE, "+sdram_access=40001")
    assert said(lines) == ["sdram: access must be more than hold and at most 40000 ps"]


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_parameters_are_those_of_the_model(chip: Chip) -> None:
    text = MODEL.read_text("utf-8")
    for name in parameters(chip, 80_000_000):
        assert f"parameter {name} = " in text
    assert parameters(chip, 80_000_000)["PERIOD"] == 12_500


def verilated(chip: Chip, file: Path, words: int, cache: Path) -> list[list[str]]:
    """Lines of sdram.cpp after a run over the first words of a file."""
    text = convert(SimulatedMemory(chip=chip, clock_hz=80_000_000), name="memory")
    text += MODEL.read_text(encoding="utf-8")
    bench = Path(__file__).with_name("sdram.cpp")
    program = build_bench(text, bench, top="memory", cache=cache)
    command = [str(program), str(words), f"+sdram_file={file}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return [line.split() for line in done.stdout.splitlines()]


def fnv(words: list[int]) -> str:
    value = 14695981039346656037
    for word in words:
        value = (value ^ word) * 1099511628211 % (1 << 64)
    return f"{value:016x}"


@pytest.mark.slow
def test_verilator_sees_what_icarus_sees(tmp_path: Path) -> None:
    words = [address * 40503 & 0xFFFF for address in range(SMALL_16.words)]
    file = tmp_path / "words"
    file.write_bytes(contents(words, SMALL_16))
    lines = verilated(SMALL_16, file, 3000, tmp_path)
    done = run([(RUN, 3000)], words=words)
    assert [line[0] for line in lines] == ["ready", "start", "done"]
    assert int(lines[0][2]) == done.capture
    assert lines[2][2] == fnv(words[:3000])
    [taken] = done.runs()
    assert [word for _, _, word in taken] == words[:3000]
    assert int(lines[2][1]) - int(lines[1][1]) == taken[-1][0]


@pytest.mark.slow
def test_a_whole_chip_of_32_megabytes_is_filled_and_read_in_the_cycles_of_the_model(
    tmp_path: Path,
) -> None:
    file = tmp_path / "words"
    file.write_bytes(random.Random(1).randbytes(2 * ULX3S.words))
    count = 1_000_000
    lines = verilated(ULX3S, file, count, tmp_path)
    data = file.read_bytes()[: 2 * count]
    words = [high << 8 | low for high, low in zip(data[::2], data[1::2], strict=True)]
    assert lines[2][2] == fnv(words)
    last = WordStream(reader_timing(ULX3S, 80_000_000)).take(1, count)
    assert int(lines[2][1]) - int(lines[1][1]) == last
