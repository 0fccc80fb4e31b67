# amaranth: UnusedElaboratable=no
"""HostPort of a core with external memory: its region, its registers, and who must wait."""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any

import pytest
from amaranth.back import rtlil
from core.harness import Bench, ones
from core.host.test_port import CLEAR, CONTROL, ERROR, ID, START, Requests

from lbq_hw.core.external.tape_host_port import TapeHostPort
from lbq_hw.core.host.port import HostPort
from lbq_hw.core.host.registers import Registers
from lbq_hw.isa import Error, regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region
from lbq_hw.sim.models.programs import SMALL
from lbq_hw.sim.models.slice_memory import SliceMemory

CORE = SMALL.with_external()
MEMORY = Region.MEMORY << regions.SHIFT
NUMBER = {name: register.address for name, register in regions.registers(CORE).items()}
Tries = list[tuple[int, int | None]]


class Run:
    """Requests one after the other, and a memory; what was seen of it."""

    def __init__(
        self, tries: Tries, *, seed: int | None = None, calibrated: int = 1, test_cycles: int = 9,
        words: dict[int, int] | None = None, finished: int | None = None,
    ) -> None:  # fmt: skip
        host = TapeHostPort(CORE)
        bench = Bench(host)
        self.memory = bench.add(SliceMemory(host.host_memory, words or {}, seed=seed))
        self.memory.test_cycles = test_cycles
        self.requests = bench.add(Requests(host.port, tries))
        bench.hold((host.calibrated, calibrated), (host.aligned, 1), (host.passes, 321))
        end = [{"finished": cycle == finished} for cycle in range((finished or 0) + 1)]
        bench.script({"finished": host.finished}, end)
        self.seen = bench.probe(start=host.start, busy=host.busy)
        bench.run(extra=60)
        self.answers = list(self.requests.answers.values())


class LogitMemory:
    """Answers reads in the cycle after."""

    done = True

    def __init__(self, port: Any, words: list[list[int]]) -> None:
        self.port, self.words = port, words
        self.samples = [port.en, port.addr]
        self.asked = 0

    def set(self, ctx: Any) -> None:
        ctx.set(self.port.data, self.words[self.asked])

    def see(self, _cycle: int, enable: int, address: int) -> None:
        if enable:
            self.asked = address


def test_slices_are_taken_and_answered_as_soon_as_the_memory_lets() -> None:
    tries: Tries = [(MEMORY | 3, 0x11), (MEMORY | 3, None), (ID, None), (MEMORY | 4, 0x22)]
    run = Run([*tries, (ID, None)])
    # Offered in the cycle after, answered by the memory in the one after that, by the port two
    # cycles later; a register, after as many cycles as a plane word takes. The next request is
    # taken in the cycle after.
    assert run.requests.taken == [1, 3, 8, 15, 17]
    assert [cycle for cycle, _, _ in run.memory.requests] == [2, 4, 16]
    assert run.requests.answers == {7: 0x11, 14: regions.MAGIC, 23: regions.MAGIC}
    assert run.memory.words == {3: 0x11, 4: 0x22}


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_reads_and_writes_is_that_of_the_requests(seed: int) -> None:
    last = regions.MEMORY_SLICES - 1
    places = [0, last, 5, 1 << 23, 0]
    tries: Tries = []
    for number, place in enumerate(places):
        tries += [(MEMORY | place, number + 1), (MEMORY | place, None), (ID, None)]
    tries += [(MEMORY | place, None) for place in places]
    run = Run(tries, seed=seed)
    first = [value for number in range(5) for value in (number + 1, regions.MAGIC)]
    assert run.answers == [*first, 5, 2, 3, 4, 5]
    assert run.memory.words == {0: 5, last: 2, 5: 3, 1 << 23: 4}


def test_a_digest_and_its_registers() -> None:
    words = {40 + i: 7**i for i in range(6)}
    tries: Tries = [(NUMBER["digest_first"], 41), (NUMBER["digest_slices"], 4)]
    tries += [(NUMBER["memory"], None)] * 25
    tries += [(NUMBER["digest_crc"], None), (ERROR, None), (NUMBER["passes"], None)]
    run = Run(tries, words=words)
    *states, crc, error, passes = run.answers
    assert states == sorted(states, reverse=True)
    assert set(states) == {3, 1}
    data = struct.pack("<4I", *(words[41 + i] for i in range(4)))
    assert (crc, error, passes) == (zlib.crc32(data), Error.NONE, 321)


@pytest.mark.parametrize("test", [False, True], ids=["digest", "test"])
@pytest.mark.parametrize(
    "busy",
    [
        (MEMORY, None),
        (MEMORY, 1),
        (CONTROL, START),
        (NUMBER["digest_first"], 1),
        (NUMBER["digest_slices"], 1),
        (NUMBER["test_last"], 1),
        (NUMBER["captures"], 1),
    ],
    ids=["read", "write", "start", "first", "slices", "last", "captures"],
)
def test_while_the_memory_is_in_use_nothing_else_may_use_it(
    test: bool, busy: tuple[int, int | None]
) -> None:
    begin: Tries = [(NUMBER["test_last"], 9)] if test else [(NUMBER["digest_slices"], 30)]
    run = Run([*begin, busy, (ERROR, None), (NUMBER["memory"], None)], test_cycles=99)
    *refused, error, state = run.answers
    assert refused == ([0] if busy[1] is None else [])
    assert error == Error.BUSY
    assert state == (9 if test else 3)
    assert not any(run.seen["start"])
    assert not any(write for _, _, write in run.memory.requests)
    assert len(run.memory.tests) == test
    assert not run.memory.calibrations


def test_while_the_memory_is_in_use_the_rest_can_be_done() -> None:
    planes = regions.address(CORE, Region.PLANES, 0)
    tries: Tries = [(NUMBER["digest_slices"], 30), (planes, 5), (planes, None), (CONTROL, CLEAR)]
    run = Run([*tries, (ERROR, None), (NUMBER["memory"], None)])
    assert run.answers[1:] == [Error.NONE, 3]


@pytest.mark.parametrize(
    "request_",
    [(MEMORY, None), (MEMORY, 1), (NUMBER["digest_slices"], 1), (NUMBER["test_last"], 1)],
    ids=["read", "write", "digest", "test"],
)
def test_a_memory_that_is_not_calibrated_is_not_reached(request_: tuple[int, int | None]) -> None:
    run = Run([request_, (ERROR, None), (NUMBER["memory"], None)], calibrated=0)
    assert run.answers[-2:] == [Error.MEMORY, 0]
    assert not run.memory.requests
    assert not run.memory.tests


@pytest.mark.parametrize(
    "request_",
    [
        (MEMORY, None), (MEMORY, 1), (NUMBER["digest_slices"], 1), (NUMBER["test_last"], 1),
        (NUMBER["captures"], 1),
    ],
    ids=["read", "write", "digest", "test", "captures"],
)  # fmt: skip
def test_while_a_program_runs_the_memory_is_its_own(request_: tuple[int, int | None]) -> None:
    run = Run([(CONTROL, START), request_, (ERROR, None), (NUMBER["memory"], None)], finished=30)
    assert run.answers[-2:] == [Error.BUSY, 1]
    assert not run.memory.requests
    assert not run.memory.tests
    assert not run.memory.calibrations
    assert ones(run.seen["busy"]) == list(range(2, 31))


@pytest.mark.parametrize("calibrated", [0, 1])
def test_a_memory_may_always_be_calibrated_again(calibrated: int) -> None:
    run = Run([(NUMBER["captures"], 0), (ERROR, None)], calibrated=calibrated)
    assert run.answers == [Error.NONE]
    assert run.memory.calibrations == [run.requests.taken[0] + 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_start_waits_for_the_slice_before_it(seed: int) -> None:
    run = Run([(MEMORY | 9, 1), (CONTROL, START), (ERROR, None)], seed=seed)
    [start] = ones(run.seen["start"])
    [(written, _, _)] = run.memory.requests
    assert start > written
    assert run.answers == [Error.NONE]


@pytest.mark.parametrize(
    "address",
    [MEMORY | regions.MEMORY_SLICES, len(NUMBER), *(0x100 | number for number in range(16, 25))],
)
def test_what_lies_behind_the_memory_and_its_registers_does_not_exist(address: int) -> None:
    run = Run([(address, None), (ERROR, None), (CONTROL, CLEAR), (address, 1), (ERROR, None)])
    assert run.answers == [0, Error.ADDRESS, Error.ADDRESS]


@pytest.mark.parametrize("name", regions.MEMORY_REGISTERS)
def test_a_register_of_the_memory_is_written_as_the_map_says(name: str) -> None:
    run = Run([(NUMBER[name], 0), (ERROR, None)])
    access = regions.MEMORY_REGISTERS[name].access
    assert run.answers == [Error.NONE if "w" in access else Error.ADDRESS]


@pytest.mark.parametrize("number", [*range(16, 25), MEMORY])
def test_a_core_without_external_memory_has_neither(number: int) -> None:
    host = HostPort(SMALL)
    assert "host_memory" not in host.signature.members
    bench = Bench(host)
    tries: Tries = [(number, None), (ERROR, None), (CONTROL, CLEAR), (number, 1), (ERROR, None)]
    requests = bench.add(Requests(host.port, tries))
    bench.run(extra=3)
    assert list(requests.answers.values()) == [0, Error.ADDRESS, Error.ADDRESS]


def test_a_core_without_external_memory_has_no_cell_of_it() -> None:
    def modules(host: HostPort) -> set[str]:
        text = rtlil.convert(host, ports=[host.busy])
        return set(re.findall(r"^module .*\.(\w+)$", text, re.MULTILINE))

    without, external = modules(HostPort(SMALL)), modules(TapeHostPort(CORE))
    assert without == {"registers", "writes"}
    assert external - without >= {"access", "digest"}
    assert [name for name, _ in Registers(SMALL).values.shape()] == [*regions.REGISTERS]


@pytest.mark.parametrize("units", [1, 4, 8, 32, 64])
def test_each_logit_is_the_one_of_its_unit(units: int) -> None:
    config = CORE.with_external(lanes=64, channels=64, logits=64, units=units)
    host = TapeHostPort(config)
    parts = regions.slices(config)[Region.LOGITS]
    first = regions.address(config, Region.LOGITS, 0)
    bench = Bench(host)
    requests = bench.add(Requests(host.port, [(first + i, None) for i in range(64 * parts)]))
    logits = [logit * 3 - 70 for logit in range(64)]
    words = [logits[i : i + units] for i in range(0, 64, units)]
    bench.add(LogitMemory(host.logits, words))
    bench.run(extra=10)
    answers = list(requests.answers.values())
    for part in range(parts):
        assert answers[part::parts] == [(logit >> SLICE * part) % (1 << SLICE) for logit in logits]
