# amaranth: UnusedElaboratable=no
"""HostPort, cycle by cycle: when requests are taken. What they do is in `sim.benches.host_port`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest
from core.harness import Bench

from lbq_hw.config import Profile
from lbq_hw.core.external.tape_host_port import TapeHostPort
from lbq_hw.core.host.port import HostPort
from lbq_hw.core.host.spread_port import SpreadHostPort
from lbq_hw.core.variants import host_port
from lbq_hw.isa import Error, regions
from lbq_hw.isa.regions import Region
from lbq_hw.sim.models.programs import SMALL

ID, CONTROL, ERROR = (regions.REGISTERS[name].address for name in ("id", "control", "error"))
START, CLEAR = 1, 2


class Requests:
    """Offers requests without a pause, each until it is taken: an address, and data to write."""

    def __init__(self, port: Any, requests: Iterable[tuple[int, int | None]]) -> None:
        self.port = port
        self.samples = [port.ready, port.r_valid, port.r_data]
        self.left = deque(requests)
        self.taken: list[int] = []
        self.answers: dict[int, int] = {}

    @property
    def done(self) -> bool:
        return not self.left

    def set(self, ctx: Any) -> None:
        ctx.set(self.port.valid, bool(self.left))
        if self.left:
            address, data = self.left[0]
            ctx.set(self.port.addr, address)
            ctx.set(self.port.write, data is not None)
            ctx.set(self.port.w_data, data or 0)

    def see(self, cycle: int, ready: int, answered: int, answer: int) -> None:
        if answered:
            self.answers[cycle] = answer
        if ready and self.left:
            self.left.popleft()
            self.taken.append(cycle)


def test_a_request_is_taken_every_other_cycle_and_a_read_answered_in_the_next() -> None:
    host = HostPort(SMALL)
    bench = Bench(host)
    weights = Region.WEIGHTS << regions.SHIFT
    requests = bench.add(Requests(host.port, [(ID, None), (weights, 5), (ID, None), (ID, None)]))
    bench.run(extra=3)
    assert requests.taken == [1, 3, 5, 7]
    assert requests.answers == dict.fromkeys([2, 6, 8], regions.MAGIC)


def test_where_weights_fill_a_chip_a_request_waits_until_the_one_before_is_answered() -> None:
    host = SpreadHostPort(SMALL.with_(profile=Profile.SPREAD))
    bench = Bench(host)
    weights = Region.WEIGHTS << regions.SHIFT
    requests = bench.add(Requests(host.port, [(ID, None), (weights, 5), (ID, None), (ID, None)]))
    bench.run(extra=7)
    assert requests.taken == [1, 8, 10, 17]
    assert requests.answers == dict.fromkeys([7, 16, 23], regions.MAGIC)


@pytest.mark.parametrize(
    ("profile", "later"), [(Profile.COMPACT, 0), (Profile.STANDARD, 1), (Profile.SPREAD, 1)]
)
def test_a_write_is_stored_when_it_is_taken_or_a_cycle_later(profile: Profile, later: int) -> None:
    host = host_port(SMALL.with_(profile=profile))(SMALL.with_(profile=profile))
    bench = Bench(host)
    weights = Region.WEIGHTS << regions.SHIFT
    requests = bench.add(Requests(host.port, [(weights, 5), (ID, None), (weights, 3)]))
    seen = bench.probe(enables=host.weights.en, value=host.weights.data.as_value())
    bench.run(extra=3)
    stored = [cycle for cycle, enables in enumerate(seen["enables"]) if enables]
    assert stored == [requests.taken[0] + later, requests.taken[2] + later]
    assert [seen["value"][cycle] & 255 for cycle in stored] == [5, 3]


@pytest.mark.parametrize("end", [6, 7])
def test_no_request_is_taken_in_the_cycle_after_the_end_of_a_run(end: int) -> None:
    host = HostPort(SMALL)
    bench = Bench(host)
    requests = bench.add(Requests(host.port, [(CONTROL, START), *[(ID, None)] * 6]))
    bench.script({"finished": host.finished}, [{"finished": cycle == end} for cycle in range(20)])
    seen = bench.probe(start=host.start, busy=host.busy)
    bench.run()
    assert requests.taken == [1, 3, 5, *([8, 10, 12, 14] if end == 6 else [7, 9, 11, 13])]
    assert sorted(requests.answers) == [cycle + 1 for cycle in requests.taken[1:]]
    assert [cycle for cycle, bit in enumerate(seen["start"]) if bit] == [2]
    assert [cycle for cycle, bit in enumerate(seen["busy"]) if bit] == list(range(2, end + 1))


@pytest.mark.parametrize("region", regions.reached(SMALL)[1:])
def test_a_region_is_read_and_written_as_the_map_says(region: Region) -> None:
    host = HostPort(SMALL)
    bench = Bench(host)
    address = regions.address(SMALL, region, 0)
    tries = [(address, None), (ERROR, None), (CONTROL, CLEAR), (address, 0), (ERROR, None)]
    requests = bench.add(Requests(host.port, tries))
    bench.run(extra=3)
    _, *errors = requests.answers.values()
    allowed = ["r" in regions.ACCESS[region], "w" in regions.ACCESS[region]]
    assert errors == [Error.NONE if may else Error.ADDRESS for may in allowed]


def test_a_core_has_the_port_of_its_profile() -> None:
    configs = (SMALL, SMALL.with_(profile=Profile.SPREAD), SMALL.with_external())
    assert [host_port(config) for config in configs] == [HostPort, SpreadHostPort, TapeHostPort]
