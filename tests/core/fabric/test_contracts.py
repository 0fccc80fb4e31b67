# amaranth: UnusedElaboratable=no
"""Whoever breaks the contract of a block is told so in simulation; on a board it costs nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from amaranth import Fragment, Module
from amaranth.back import rtlil
from amaranth.sim import Simulator
from core.external.simulated import SMALL_16
from core.external.tape_bench import CORE

from lbq_hw import boards
from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.core.accelerator import accelerator
from lbq_hw.core.external.digest import Digest
from lbq_hw.core.external.memory_access import MemoryAccess
from lbq_hw.core.external.page_queue import PageQueue
from lbq_hw.core.external.refresh_timer import RefreshTimer
from lbq_hw.core.external.sdram import Sdram
from lbq_hw.core.external.tape_pages import TapePages
from lbq_hw.core.external.tape_reader import TapeReader
from lbq_hw.core.external.tape_writes import TapeWrites
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.states import States
from lbq_hw.core.host.registers import Registers
from lbq_hw.core.host.writes import HostWrites
from lbq_hw.core.lanes.lane_group import LaneGroup
from lbq_hw.core.memory.far_rows import FarRows
from lbq_hw.core.memory.planes import PlaneMemory
from lbq_hw.core.memory.rows import RowMemory
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.neurons.partial_sums import PartialSums
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.stream.credit import Credit
from lbq_hw.sim.models import writer as writers
from lbq_hw.sim.verilog import SimulatedPlatform, ports

ON_CHIP = CORE.with_(external=0, partial_words=0, partial_bits=0)
CHIP = dataclasses.replace(SMALL_16, column_bits=3)
TIMING = ReaderTiming(page_words=16, first=3, rest=1, refresh=4, interval=60)
SPAN = {"kind": ScanKind.CONV, "want": 1}

# Ports of memories, which read unless they are told.
QUIET: dict[type, tuple[str, ...]] = dict.fromkeys(
    (FarRows, RowMemory, SpreadMemory), ("read.en",)
) | {PlaneMemory: ("word.en", "host.en")}

# What is driven in cycle after cycle, by the path of a signal; and what is said in the end.
BROKEN: dict[str, tuple[Any, list[dict[str, Any]], str]] = {
    "credit": (
        lambda: Credit(room=2),
        [{"sent": 1}] * 3,
        "an item is sent without room for it",
    ),
    "credit returned": (
        lambda: Credit(room=2, returns=2),
        [{"returned": 1}],
        "more room is given back than was taken",
    ),
    "refresh": (
        lambda: RefreshTimer(TIMING),
        [{"made": 1}],
        "a refresh is made that is not due",
    ),
    "digest": (
        Digest,
        [{"start": 1, "slices": 2}] * 2,
        "a digest starts while another is in progress",
    ),
    "answer": (
        Digest,
        [{"start": 1, "slices": 2}, {"answer.valid": 1}],
        "a slice arrives that was not requested",
    ),
    "shown": (
        lambda: PageQueue(bits=8, words=4),
        [{"store.valid": 1}, {"show": 1}, {"show": 1}],
        "a word is released that is not stored",
    ),
    "stored": (
        lambda: PageQueue(bits=8, words=4),
        [{"store.valid": 1}] * 9,
        "more than two pages are stored",
    ),
    "overlap": (
        MemoryAccess,
        [{"calibrated": 1, "read": 1}, {"calibrated": 1, "write": 1}],
        "operations overlap",
    ),
    "uncalibrated": (MemoryAccess, [{"read": 1}], "the memory is used before calibration"),
    "capture": (
        lambda: Sdram(chip=SMALL_16, clock_hz=50_000_000),
        [{"port.access.valid": 1}] * 30_000 + [{"capture.delay": 1}],
        "the capture changes while words are read",
    ),
    "pages": (
        lambda: TapePages(chip=CHIP),
        [{"start": 1}] * 2,
        "a run starts before the last one's end",
    ),
    "tape": (lambda: TapeReader(CORE), [{"start": 1}] * 2, "a tape starts while one is read"),
    "tape's writes": (
        lambda: TapeWrites(CORE),
        [{"written": 3}],
        "a slice is written to two regions",
    ),
    "host's writes": (
        lambda: HostWrites(ON_CHIP),
        [{"written": 6}],
        "a slice is written to two regions",
    ),
    "registers": (
        lambda: Registers(ON_CHIP),
        [{"begin": 1}] * 2,
        "a run begins while another is in progress",
    ),
    "event": (
        lambda: LaneGroup(lanes=4, mask_bits=1, stages=1, weight_bits=4, acc_bits=8),
        [{"action.clear": 1, "action.double": 1}],
        "an event both clears and doubles",
    ),
    "row": (
        lambda: RowMemory(rows=8, lanes=2, weight_bits=4),
        [{"write.en": 2, "read.en": 1, "read.addr": 5}],
        "a row is read during a write",
    ),
    "far row": (
        lambda: FarRows(rows=8, lanes=4, weight_bits=4, slices=2),
        [{"advance": 3, "read.en": 1, "read.addr": 2, "write.en": 1, "write.addr": 2}] * 2,
        "a row is read while it is written",
    ),
    "plane": (
        lambda: PlaneMemory(words=16, word=8, summary=4, granule=4),
        [{"i_write.valid": 1, "i_write.payload.addr": 3, "word.en": 1, "word.addr": 3}],
        "a plane word is read while it is written",
    ),
    "planes of the host": (
        lambda: PlaneMemory(words=16, word=8, summary=4, granule=4),
        [{"word.en": 1, "host.en": 1}],
        "the host and the scanner read planes at once",
    ),
    "spread word": (
        lambda: SpreadMemory(width=8, depth=16),
        [{"write.en": 1, "write.addr": 3, "read.en": 1, "read.addr": 3}],
        "a word is read while it is written",
    ),
    "writer": (
        lambda: writers.build(lanes=4, word=8, planes=3),
        [{"i.valid": 1, "layer.planes": 3}] * 2,
        "planes come before the last are written",
    ),
    "group": (
        lambda: PartialSums(units=2, groups=2, acc_bits=12, words=8, bits=8),
        [{"leave": 1, "step": 1}, {"leave": 1, "valid": 1}, {"leave": 1, "valid": 1}],
        "a group of a step is stored twice",
    ),
    "steps": (
        lambda: PartialSums(units=2, groups=2, acc_bits=12, words=8, bits=8),
        [{"leave": 1, "step": 1}] * 5,
        "a pass has more steps than the memory holds",
    ),
    "exponent": (
        lambda: Scanner(lanes=8, word=8, summary=4, words=32, rows=64),
        [{"i_request.valid": 1, "i_request.payload": SPAN | {"exponent": n}} for n in (2, 1, 2)],
        "an exponent rises within a step",
    ),
}  # fmt: skip


def member(block: Any, path: str) -> Any:
    for name in path.split("."):
        block = getattr(block, name)
    return block


def play(block: Any, steps: list[dict[str, Any]]) -> None:
    async def testbench(ctx: Any) -> None:
        for name in QUIET.get(type(block), ()):
            ctx.set(member(block, name), 0)
        for step in steps:
            before = {path: ctx.get(member(block, path)) for path in step}
            for path, value in step.items():
                ctx.set(member(block, path), value)
            await ctx.tick()
            for path, value in before.items():
                ctx.set(member(block, path), value)
        for _ in range(3):
            await ctx.tick()

    simulator = Simulator(block)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_contract_ends_the_simulation_with_its_sentence(name: str) -> None:
    make, steps, said = BROKEN[name]
    if len(steps) < 100:
        play(make(), steps[:-1])  # all but the last is allowed
    with pytest.raises(AssertionError, match=f"^Assertion violated: {said}$"):
        play(make(), steps)


def test_two_states_at_once_are_an_error() -> None:
    m = Module()
    states = States(m, None, "A")
    with states.state("A"):
        states.go("B")
        states.go("C")
    for name in ("B", "C"):
        with states.state(name):
            pass
    with pytest.raises(
        AssertionError, match=r"^Assertion violated: two states are active at once$"
    ):
        play(m, [{}] * 3)


def test_simulators_check_contracts_and_boards_have_no_cell_of_them() -> None:
    def text(platform: Any) -> str:
        core = accelerator(ON_CHIP)(ON_CHIP)
        return rtlil.convert(Fragment.get(core, platform), ports=ports(core))

    assert text(None).count("cell $check") > 10
    assert text(SimulatedPlatform()).count("cell $check") > 10
    for name in ("icebreaker", "tang-nano-9k", "ulx3s-85f"):
        assert "$check" not in text(boards.find(name).make_platform())


def test_a_contract_of_a_design_for_a_board_is_no_statement() -> None:
    m = Module()
    must(m, boards.find("icebreaker").make_platform(), 0, "anything")
    assert not Fragment.get(m, None).statements
