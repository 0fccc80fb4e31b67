"""What a host sees, in the simulation's own time: the same on every machine."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from simulators import CACHE, digits, needs_verilator

from lbq_hw import datasets, package, zoo
from lbq_hw.compiler import smallest_for
from lbq_hw.host.estimate import Line, traffic
from lbq_hw.host.line import LinkError
from lbq_hw.package import Package
from lbq_hw.sim import board, in_step
from lbq_hw.sim.in_step import WAIT, InStep
from lbq_hw.sim.seen import Seen, seen

pytestmark = needs_verilator
CLOCK_HZ, BAUD = 12_000_000, 3_000_000
IMAGES = datasets.load("digits", split="test").images[:3]
LATENCY = 0.001


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """As in test_board.py, whose simulation is built already."""
    made = package.write(
        tmp_path_factory.mktemp("in-step") / "digits", board="sim",
        config=smallest_for(digits(), lanes=4, word=32), model=zoo.find("digits"),
        clock_hz=CLOCK_HZ, baud=BAUD, baked=True, bitstream=None,
    )  # fmt: skip
    return made


@pytest.fixture(scope="module", autouse=True)
def built(packed: Package) -> Iterator[None]:
    """Build the board once: each simulation would make its Verilog anew, to look for its build."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "board.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = board.build(packed, cache=CACHE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_step, "build", lambda *_, **__: program)
        yield


@pytest.fixture(scope="module")
def at(packed: Package) -> Callable[[float], Seen]:
    return lambda latency: seen(packed, IMAGES, latency=latency, cache=CACHE)


def test_the_seconds_of_images_are_the_same_again(at: Callable[[float], Seen]) -> None:
    found = at(0.0)
    assert (found.equal, found.repeats, found.images, found.baud) == (True, 0, 3, BAUD)
    assert at(0.0) == found


def test_the_estimate_is_near_what_is_seen(at: Callable[[float], Seen], packed: Package) -> None:
    """It leaves out escapes of heads and CRCs, and further looks at whether the core is done. A
    bridge's latency, which it adds, runs beside the rest of an answer, and beside the core.
    """
    raw = traffic(packed.program, IMAGES[1])
    for latency in (0.0, LATENCY):
        found = at(latency)
        guess = Line(baud=BAUD, latency=latency).seconds(raw, found.cycles / CLOCK_HZ)
        # Reading the counters is one turn more, and 42 bytes.
        guess += 42 * 10 / BAUD + latency
        assert 0.8 < found.seconds / 2 / guess < 1.25


def test_a_bridge_keeps_answers_until_its_timer_ends_or_a_packet_is_full(packed: Package) -> None:
    with (
        InStep(packed, cache=CACHE) as quick,
        InStep(packed, latency=LATENCY, packet=1000, cache=CACHE) as late,
        InStep(packed, latency=LATENCY, packet=62, cache=CACHE) as packets,
    ):
        lines = [port.transport() for port in (quick, late, packets)]
        began = [line.now() for line in lines]
        first, *others = [line.read(0, 50) for line in lines]
        assert others == [first, first]
        took = [line.now() - start for line, start in zip(lines, began, strict=True)]
    # 200 bytes and more come back. All wait with the first of them, or only those after the last
    # full packet.
    assert took[1] - took[0] < LATENCY < took[1]
    assert took[0] < took[2] <= took[0] + LATENCY


def test_time_passes_while_the_host_waits_and_at_no_other_time(packed: Package) -> None:
    with InStep(packed, cache=CACHE) as port:
        assert (port.now(), port.in_waiting) == (0.0, 0)
        port.write(b"\x7e")
        assert port.now() == 0.0
        assert port.read() == b""
        assert port.now() == pytest.approx(WAIT, abs=2 / CLOCK_HZ)


def test_a_simulation_that_ends_is_told(packed: Package) -> None:
    with InStep(packed, cache=CACHE) as port:
        line = port.transport()
        os.kill(port.process, signal.SIGKILL)
        os.waitid(os.P_PID, port.process, os.WEXITED | os.WNOWAIT)
        with pytest.raises(LinkError, match=r"^the port is gone \("):
            line.read(0, 1)
