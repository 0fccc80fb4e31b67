"""Walker against `sim.models.walks`: random records, compiled networks, illegal records, stalls."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw import isa
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.walk.layer_loader import layer_layout
from lbq_hw.core.walk.step_infos import STEPS_AHEAD
from lbq_hw.core.walk.walker import Walker
from lbq_hw.isa import regions
from lbq_hw.isa.record import Record
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_network
from lbq_hw.sim.models.programs import SHAPES, SMALL, Tables, draw_tables, slices, without_rest
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.sim.models.walks import Walk, walk
from lbq_hw.sim.verilog import ports


class Host:
    """Loads a program, starts the walk, resumes it after each layer; then the next program."""

    def __init__(self, walker: Walker, *programs: Tables, stall: Stall = never) -> None:
        self.walker, self.stall = walker, stall
        self.programs = [slices(walker.config, tables) for tables in programs]
        self.records = self.programs.pop(0)
        self.samples = [walker.o_busy, walker.o_done, walker.layer_done, walker.o_layer]
        self.samples += [walker.o_error, walker.o_error_at]
        self.waits = self.resume = self.done = False
        self.started = -1
        self.barriers: dict[int, list[int]] = {}  # cycles of layer_done, by layer
        self.ends: list[tuple[int, int, int]] = []  # cycle, error, error_at of each program

    def set(self, ctx: Any) -> None:
        walker = self.walker
        ctx.set(walker.i_record.valid, bool(self.records))
        if self.records:
            ctx.set(walker.i_record.payload, self.records.pop(0))
            return
        ctx.set(walker.i_start, self.started < 0)
        self.resume = self.waits and not self.stall()
        ctx.set(walker.i_resume, self.resume)

    def see(self, cycle: int, busy: int, done: int, layer_done: int, layer: int, *error: int):
        if busy and self.started < 0:
            self.started = cycle - 1
        if layer_done:
            self.barriers.setdefault(layer, []).append(cycle)
        self.waits = bool(layer_done) and not self.resume
        if self.started >= 0 and done and not self.done:
            assert not busy
            self.ends.append((cycle, *error))
            self.done = not self.programs
            if self.programs:
                self.records, self.started = self.programs.pop(0), -1


def run(
    config: CoreConfig, tables: Mapping[str, Sequence[int]], seed: int | None = None
) -> tuple[list[dict], list[dict], Host, list[int]]:
    """Requests and StepInfos as they came, the host with what it saw, cycles of the requests."""
    requests, steps, host, _ = seen(config, tables, seed)
    return without_rest(requests.payloads), steps.payloads, host, requests.cycles


def seen(
    config: CoreConfig, tables: Mapping[str, Sequence[int]], seed: int | None = None
) -> tuple[Any, Any, Host, list[int]]:
    """Monitors of requests and StepInfos, the host, and the LayerInfo in every cycle."""
    stall = never if seed is None else stalls(seed, 0.4)
    walker = Walker(config)
    bench = Bench(walker)
    host = bench.add(Host(walker, tables, stall=stall))
    requests = bench.monitor(walker.o_request, stall=stall)
    steps = bench.monitor(walker.o_step, stall=never if seed is None else stalls(seed + 1, 0.5))
    infos = bench.probe(info=walker.o_layer_info.as_value())["info"]
    bench.run(limit=30_000, extra=3)
    return requests, steps, host, infos


def check(config: CoreConfig, tables: Tables, seed: int | None = None) -> tuple[Walk, Host]:
    """A walk without an error is as the model says; layers are kept apart.

    The LayerInfo of each holds from its first StepInfo until the walk is resumed, or to the end.
    """
    expected = walk(config, tables)
    assert expected.error == isa.Error.NONE
    requests, steps, host, infos = seen(config, tables, seed)
    assert without_rest(requests.payloads) == expected.requests
    assert steps.payloads == expected.steps
    assert host.ends[0][1] == isa.Error.NONE
    assert list(host.barriers) == list(range(len(expected.ends) - 1))
    for layer, waits in host.barriers.items():
        for cycle in (waits[0], waits[-1]):
            assert bisect_left(requests.cycles, cycle) == expected.ends[layer]
    layout = layer_layout(config)
    resumed = [waits[-1] for waits in host.barriers.values()]
    ends = zip([0, *resumed], [*resumed, len(infos) - 1], expected.layers, strict=True)
    for begin, end, info in ends:
        told = [cycle for cycle in steps.cycles if begin <= cycle <= end]
        if told:
            assert set(infos[told[0] : end + 1]) == {layout.const(info).as_bits()}
    return expected, host


def simple(config: CoreConfig = SMALL, layers: int = 1, **changes: int) -> Tables:
    """Layers of 2 x 2 pixels and one tile; two segments of a run each; 4 of 16 words a request."""
    tables: Tables = {name: [] for name in isa.TABLES}
    values = {
        "layers": dict.fromkeys(isa.LAYER.slots(config), 0)
        | {"rows_last": 1, "columns_last": 1, "conv_rows_last": 1, "conv_columns_last": 1}
        | {"out_base": 100, "out_row": 2, "out_plane": 4, "out_frame": 4, "out_pitch": 16}
        | {"window_row_step": 1, "window_column_step": 1, "segment_last": 1},
        "paths": dict.fromkeys(isa.PATH.slots(config), 0)
        | {"row_step": 4, "row_high": 30, "column_step": 8, "column_high": 40},
        "segments": {"path": 0, "exponent": 1, "base": 20, "weight": 10},
        "runs": {"row": 0, "column": 0, "length_last": 20, "weight": 3},
    }
    for name, value in changes.items():
        table, field = name.split("__")
        values[table][field] = value
    for name, record in isa.TABLES.items():
        count = {"layers": layers, "segments": 2}.get(name, 1)
        for index in range(count):
            fields = dict(values[name])
            if name == "layers" and layers < config.layers:
                fields["last"] = int(index == layers - 1)
            tables[name].append(pack(record, config, fields))
    return tables


def pack(record: Record, config: CoreConfig, values: Mapping[str, int]) -> int:
    """As `Record.encode`, but of illegal values too."""
    word = 0
    for name, slot in record.slots(config).items():
        word |= (values[name] & ((1 << slot.width) - 1)) << slot.offset
    return word


def check_errors(config: CoreConfig, *programs: Tables, seed: int | None = None) -> list[Walk]:
    """Errors are the model's; what precedes them is emitted, then all steps are closed.

    The programs run one after the other and must write every record that they use.
    """
    walker = Walker(config)
    bench = Bench(walker)
    stall = never if seed is None else stalls(seed, 0.4)
    host = bench.add(Host(walker, *programs, stall=stall))
    requests = bench.monitor(walker.o_request, stall=stall)
    steps = bench.monitor(walker.o_step, stall=stall)
    bench.run(extra=3)
    walks = [walk(config, program) for program in programs]
    begin = 0
    for expected, (cycle, *error) in zip(walks, host.ends, strict=True):
        asked, told = (
            [p for p, at in zip(m.payloads, m.cycles, strict=True) if begin <= at < cycle]
            for m in (requests, steps)
        )
        asked, begin = without_rest(asked), cycle
        assert error == [expected.error, expected.at]
        count = len(expected.requests)
        assert asked[:count] == expected.requests
        assert all(request["kind"] == ScanKind.END for request in asked[count:])
        assert sum(request["end"] for request in asked) == len(told) >= len(expected.steps)
        assert told[: len(expected.steps)] == expected.steps
    return walks


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", [1, 2])
def test_random_records_give_the_requests_and_steps_of_the_model(shape, seed):
    check(SHAPES[shape], draw_tables(SHAPES[shape], 10 * shape + seed), seed)


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_without_stalls_every_cycle_has_a_request_an_empty_run_or_a_short_step(shape):
    tables = draw_tables(SHAPES[shape], 4 + 100 * shape, most=600)
    expected, host = check(SHAPES[shape], tables)
    longest = [max(pair) for pair in zip(expected.costs, expected.moves, strict=True)]
    assert host.ends[0][0] - host.started <= sum(longest) + expected.setup + 10


def test_requests_come_without_a_gap_within_a_step_and_as_soon_as_stated():
    config = SMALL.with_(plane_words=4096, row_words=64)
    tables = simple(config, runs__length_last=600, paths__column_high=1000, layers__time_last=2)
    expected = walk(config, tables)
    requests, steps, host, cycles = run(config, tables)
    assert (requests, steps) == (expected.requests, expected.steps)
    assert len(requests) > 200
    parts = isa.LAYER.slices(config) + isa.PATH.slices(config)
    assert cycles[0] - host.started == parts + 15
    gaps = {n: after - before - 1 for n, (before, after) in enumerate(pairwise(cycles))}
    late = {n: gap for n, gap in gaps.items() if gap}
    assert set(late.values()) == {1}
    assert all(requests[n]["end"] for n in late)
    assert len(late) < len(steps) / 2


def test_the_planes_of_a_static_layer_are_counted_before_its_first_request():
    layer = {"planes_last": 2, "static": 1, "time_last": 4, "out_frame": 12}
    tables = simple(**{f"layers__{name}": value for name, value in layer.items()})
    _, _, host, cycles = run(SMALL, tables)
    assert isa.PATH.slices(SMALL) + 4 < 2 + 4 + 4
    assert cycles[0] - host.started == isa.LAYER.slices(SMALL) + 1 + 10 + 2 + 4 + 4


def test_the_first_request_after_a_barrier_comes_as_soon_as_stated():
    _, _, host, cycles = run(SMALL, simple(layers=2))
    resumed = host.barriers[0][-1]
    parts = isa.LAYER.slices(SMALL) + isa.PATH.slices(SMALL)
    assert cycles[bisect_left(cycles, resumed)] - resumed == parts + 15


@pytest.mark.parametrize(
    ("changes", "period"),
    [
        ({"path_last": 0}, 3),
        ({"path_last": 1}, 4),
        ({"path_last": 2}, 5),
        ({"window_rows_last": 1, "window_row_init": -1}, 2 * 3),  # above
        ({"window_columns_last": 2, "window_column_init": -2}, 3 * 3),  # left
        ({"window_rows_last": 2, "conv_rows_last": 0}, 3),  # below
        ({"window_columns_last": 2, "conv_columns_last": 0}, 3),  # right
        ({"path_last": 1, "window_rows_last": 1, "window_row_init": -1}, 2 * 4),
    ],
    ids=str,
)
def test_a_short_step_takes_two_cycles_more_than_it_has_paths(changes, period):
    layer = {"columns_last": 5, "rows_last": 0, "tiles_last": 3, "segment_last": 0}
    layer |= {"window_row_step": 0, "window_column_step": 0} | changes
    changes = {f"layers__{name}": value for name, value in layer.items()}
    tables = simple(**changes, runs__length_last=0, paths__column_step=0)
    requests, steps, _, cycles = run(SMALL, tables)
    assert len(steps) == 24
    ends = [c for c, r in zip(cycles, requests, strict=True) if r["end"]]
    apart = [after - before for before, after in pairwise(ends)]
    assert apart[4:] == [period] * (len(apart) - 4)


def test_requests_wait_once_as_many_step_infos_wait_as_stated():
    walker = Walker(SMALL)
    bench = Bench(walker)
    host = bench.add(Host(walker, simple(layers__time_last=4)))
    requests = bench.monitor(walker.o_request)
    held = iter([True] * 600)
    steps = bench.monitor(walker.o_step, stall=lambda: next(held, False))
    bench.run()
    came = zip(requests.cycles, requests.payloads, strict=True)
    ends = [cycle for cycle, request in came if request["end"]]
    assert sum(cycle < 600 for cycle in ends) == STEPS_AHEAD
    assert max(cycle for cycle in ends if cycle < 600) < 400
    assert (len(ends), len(steps.payloads)) == (20, 20)
    assert host.ends[0][1] == isa.Error.NONE


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_compiled_network_is_walked_as_its_records_say(seed):
    network = random_network(seed, timesteps=1 + seed % 2, layers=1)
    program = compile_network(network, random_core(network, seed))
    image = program.image()
    tables = {name: image[region] for region, name in regions.TABLES.items()}
    check(program.config, tables, seed if seed % 2 else None)


ILLEGAL = {
    isa.Error.LAYER: [
        {"layers__rows_last": 7},
        {"layers__tiles_last": 7},
        {"layers__decay": 257},
        {"layers__reserved": 1},
        {"layers__path_first": 1},
        {"layers__segment_first": 2},
        {"layers__path_last": 3},
        {"layers__time_last": 1, "layers__out_frame": 5},
        {"layers": 4},
    ],
    isa.Error.PATH: [
        {"paths__run_first": 1},
        {"paths__run_last": 13},
        {"paths__lanes": 9},
        {"paths__row_high": 200},
        {"paths__frame_words": 201},
        {"paths__tile_rows": 100},
    ],
    isa.Error.SEGMENT: [
        {"segments__path": 3},
        {"segments__path": 1},
        {"segments__base": 200},
        {"segments__weight": 100},
    ],
    isa.Error.RUN: [{"runs__weight": 100}],
    isa.Error.PLANE: [
        {"segments__base": 198},
        {"paths__frame_words": 170, "layers__time_last": 4},
        {"layers__out_base": 199, "layers__planes_last": 1},
        {"layers__out_row": 100},
        {"layers__static": 1, "layers__time_last": 4, "layers__out_base": 185},
    ],
    isa.Error.LOGIT: [{"layers__readout": 1, "layers__time_last": 1}],
    isa.Error.PARAM: [{"layers__param": 4, "layers__tiles_last": 1}],
}


@pytest.mark.parametrize("error", ILLEGAL)
def test_an_illegal_record_stops_the_walk_with_its_error(error):
    walks = check_errors(SMALL, *(simple(**changes) for changes in ILLEGAL[error]))
    assert {found.error for found in walks} == {error}


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (15, 16), (0, 31)])
def test_an_exponent_that_rises_within_a_layer_stops_the_walk(first, second):
    tables = simple()
    slot = isa.SEGMENT.slots(SMALL)["exponent"]
    legal = tables["segments"][0] & ~(31 << slot.offset)
    tables["segments"] = [legal | exponent << slot.offset for exponent in (first, second)]
    [stopped] = check_errors(SMALL, tables)
    assert (stopped.error, stopped.at) == (isa.Error.SEGMENT, 1)
    tables["segments"].reverse()
    [falling] = check_errors(SMALL, tables)
    assert falling.error == isa.Error.NONE


def test_a_layer_may_begin_with_a_larger_exponent_than_the_one_before_ended_with():
    tables = simple(layers=2)
    slot = isa.SEGMENT.slots(SMALL)["exponent"]
    tables["segments"] = [
        tables["segments"][0] & ~(31 << slot.offset) | exponent << slot.offset
        for exponent in (3, 0)
    ]
    check(SMALL, tables)


def test_a_walk_after_an_error_is_not_troubled_by_it():
    walks = check_errors(SMALL, simple(runs__weight=100), simple(layers=2), seed=1)
    assert [found.error for found in walks] == [isa.Error.RUN, isa.Error.NONE]


@pytest.mark.parametrize("seed", range(6))
def test_records_with_random_bits_end_as_the_model_says(seed):
    source = random.Random(seed)
    config = SHAPES[seed % len(SHAPES)]
    while True:
        tables = {name: list(words) for name, words in draw_tables(config, seed).items()}
        name = source.choice(("paths", "segments", "runs"))
        index = source.randrange(len(tables[name]))
        tables[name][index] ^= 1 << source.randrange(isa.TABLES[name].width(config))
        found = walk(config, tables)
        if found.error and len(found.steps) > 2 and sum(found.costs) < 500:
            break
        seed += 100
    check_errors(config, tables, seed=seed)


def test_the_last_entry_of_the_table_ends_a_program_without_a_last_layer():
    [expected] = check_errors(SMALL, simple(layers=4))
    assert (expected.error, expected.at, len(expected.ends)) == (isa.Error.LAYER, 3, 3)


@pytest.mark.parametrize("delay", [3, 25, 37])
def test_a_stop_closes_every_step_and_leaves_no_error(delay):
    walker, tables = Walker(SMALL), simple(layers=2, layers__time_last=3)
    bench = Bench(walker)
    host = bench.add(Host(walker, tables))
    load = len(host.records) + delay
    bench.script({"stop": walker.i_stop}, [{} for _ in range(load)] + [{"stop": 1}])
    requests, steps = bench.monitor(walker.o_request), bench.monitor(walker.o_step)
    bench.run(limit=load + 40)
    assert sum(request["end"] for request in requests.payloads) == len(steps.payloads) < 32
    assert host.ends[0][1] == isa.Error.NONE


def test_the_walker_converts_to_verilog():
    walker = Walker(SHAPES[1])
    assert "module walker" in verilog.convert(walker, ports=ports(walker), name="walker")
