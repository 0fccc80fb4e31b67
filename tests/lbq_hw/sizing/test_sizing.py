"""Sizing: what it chooses, what it refuses, and how near its model is to place and route."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import boards, families, resources, sizing, zoo
from lbq_hw.compiler import compile_network
from lbq_hw.config import SPREAD_WEIGHT_BITS, CoreConfig
from lbq_hw.file import load
from lbq_hw.network import Input, Layer, Network, Path
from lbq_hw.resources import Estimate, Memory, memories, model
from lbq_hw.sizing import FitError, SizedCore
from lbq_hw.sizing.activity import Activity

POINTS = resources.measured()


@pytest.mark.parametrize("family", families.names())
def test_the_model_is_near_place_and_route(family: str) -> None:
    points = [point for point in POINTS if boards.find(point["board"]).family == family]
    rows = resources.compare(points)
    assert len(rows) >= 4
    errors = [row["estimate"]["luts"] / row["luts"] - 1 for row in rows]
    assert max(map(abs, errors)) < 0.05
    clocks = [
        row["estimate"]["fmax_hz"] / 1e6 / row["fmax_mhz"] - 1 for row in rows if row["fmax_mhz"]
    ]
    assert len(clocks) >= 4
    assert max(map(abs, clocks)) < 0.15


def kind_of(point: dict) -> tuple[str | None, bool, bool]:
    """What the logic of a core depends on beside its sizes."""
    config = CoreConfig.from_dict(point["config"])
    return boards.find(point["board"]).family, config.partial_words > 0, config.pairs > 0


def test_the_logic_of_a_build_is_foretold_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = Counter(kind_of(point) for point in POINTS)
    try:
        for point in POINTS:
            others = [other for other in POINTS if other is not point]
            monkeypatch.setattr(model, "measured", lambda others=others: others)
            model._luts.cache_clear()
            (row,) = resources.compare([point])
            # Without the only core of a kind the others hardly tell what is its price.
            most = 0.15 if kinds[kind_of(point)] > 1 else 0.2
            assert abs(row["estimate"]["luts"] / row["luts"] - 1) < most
    finally:
        model._luts.cache_clear()


def test_block_rams_are_counted_as_they_were_found() -> None:
    for row in resources.compare(POINTS):
        assert abs(row["estimate"]["block_rams"] - row["block_rams"]) <= 2


@pytest.mark.parametrize("lanes", [4, 32])
@pytest.mark.parametrize("weight_bits", [2, 3, 8])
def test_weights_that_fill_a_chip_are_counted_without_an_elaboration(
    lanes: int, weight_bits: int
) -> None:
    rows = SPREAD_WEIGHT_BITS // (lanes * weight_bits) + 700
    config = CoreConfig(lanes=lanes, word=32, weight_bits=weight_bits, weight_rows=rows)
    found = memories.memories(config, boards.find("ulx3s-85f"))
    elaborated = [replace(m, name="") for m in found if m.name.startswith("core.lanes.")]
    counted = [replace(m, name="") for m in memories.weight_memories(config)]
    assert sorted(elaborated, key=str) == sorted(counted, key=str)


QUICK = [
    ("digits", "sim"),
    ("digits", "ulx3s-12f"),
    ("mnist-4bit", "icebreaker"),
    ("mnist-4bit", "tang-nano-9k"),
]
TOO_SMALL = [("digits", "ice40-hx8k"), ("mnist-4bit", "ice40-hx8k")]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param(model, name, marks=[] if (model, name) in QUICK else pytest.mark.slow)
        for model in ("digits", "mnist-4bit")
        for name in boards.names()
        if (model, name) not in TOO_SMALL
    ],
)
def test_small_networks_fit_most_boards(model: str, name: str) -> None:
    board = boards.find(name)
    network = load(zoo.find(model))
    sized = sizing.size(network, board)
    compile_network(network, sized.config)  # raises if the core lacks anything
    assert sized.clock_hz <= board.target_hz
    if sized.estimate is not None:
        assert sized.estimate.short(board) == []


def test_options_are_kept() -> None:
    network = load(zoo.find("digits"))
    board = boards.find("ulx3s-85f")
    sized = sizing.size(network, board, lanes=32, weight_bits=8, target_hz=50_000_000)
    assert (sized.config.lanes, sized.config.weight_bits) == (32, 8)
    assert sized.clock_hz == 50_000_000


def test_more_room_gives_a_faster_core() -> None:
    network = load(zoo.find("mnist"))
    small, large = (sizing.size(network, boards.find(f"ulx3s-{size}")) for size in ("12f", "85f"))
    assert large.seconds <= small.seconds
    assert large.config.lanes >= small.config.lanes


def test_an_estimate_that_rests_on_an_assumption_says_so() -> None:
    network = load(zoo.find("digits"))
    board = boards.find("sim")
    blank = np.zeros((1, *network.input.shape), np.uint8)
    assumed, counted = sizing.size(network, board), sizing.size(network, board, images=blank)
    ends = "us per image without the link"
    assert counted.summary.endswith(ends)
    remark = "if 11 % of the bits are set: --raw FILE or --data DIR counts them"
    assert assumed.summary.endswith(f"{ends}, {remark}")
    assert assumed.to_dict()["activity"]["source"] == "assumed"
    assert assumed.to_dict()["activity"]["share"] == 0.11
    assert counted.to_dict()["activity"]["source"] == "images"


def made(seconds: float, luts: int, block_rams: int) -> SizedCore:
    guess = Estimate(luts=luts, block_rams=block_rams, sprams=0, fmax_hz=80e6)
    return SizedCore(
        config=CoreConfig(),
        board="ulx3s-85f",
        clock_hz=1_000_000,
        estimate=guess,
        cycles=1e6 * seconds,
        activity=Activity(accumulations=(1.0,), share=0.1, shares=(0.1,), source="images"),
    )


def test_a_core_must_gain_more_than_a_fiftieth_for_what_it_takes_more() -> None:
    board = boards.find("ulx3s-85f")
    fastest, smaller = made(1.0, 9000, 30), made(1.0002, 9000, 20)
    assert sizing._economical([fastest, smaller], board) is smaller
    assert sizing._economical([fastest, made(1.021, 4000, 10)], board) is fastest
    assert sizing._economical([fastest, made(1.0002, 9000, 30)], board) is fastest
    smallest = made(1.019, 8000, 20)
    assert sizing._economical([fastest, smaller, smallest], board) is smallest


def test_a_core_that_leaves_no_room_must_gain_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    digits, board = load(zoo.find("digits")), boards.find("icebreaker")
    roomy = sizing.size(digits, board, doors=False)
    assert roomy.estimate is not None
    assert resources.roomy(roomy.estimate, board)
    monkeypatch.setattr(sizing, "ROOM", 0)
    full = sizing.size(digits, board, doors=False)
    assert full.estimate is not None
    assert not resources.roomy(full.estimate, board)
    assert full.seconds < roomy.seconds < 1.25 * full.seconds
    # Where no core leaves room, one that fits is taken.
    monkeypatch.undo()
    monkeypatch.setattr(resources.room, "ROOMY", 0.5)
    assert sizing.size(digits, board, doors=False, lanes=8).config.lanes == 8


def test_weights_that_exceed_all_memory_are_refused_before_a_core_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight = np.ones((1024, 1024, 1, 1), np.int64)
    readout = Layer(
        name="fc",
        shape=(1024, 1, 1),
        paths=(Path(source="input", weight=weight),),
        bias=np.zeros(1024, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    network = Network(
        name="large",
        input=Input(shape=(1024, 1, 1), static=True, bits=8),
        timesteps=1,
        weight_bits=8,
        layers=(readout,),
    )
    message = (
        "network 'large' does not fit iCEBreaker\n- the weights need 8,396,800 bits, its memories "
        "have 1,171,456 (7,225,344 short)\n- tried, and still too large: 4-bit weights\n"
        "- boards whose external memory holds it: tang-nano-20k, "
        "colorlight-i5, icesugar-pro, ulx3s-12f, ulx3s-25f, colorlight-i9, ulx3s-45f, ulx3s-85f"
    )
    monkeypatch.setattr(sizing, "cores_on_chip", None)
    with pytest.raises(FitError, match=f"^{re.escape(message)}$"):
        sizing.size(network, boards.find("icebreaker"))


def test_weights_lie_in_single_port_rams_where_they_fit() -> None:
    board = boards.find("icebreaker")
    config = CoreConfig(lanes=8, weight_bits=8, weight_rows=16384)
    assert resources.sprams(config, board) == 4
    assert resources.sprams(config.with_(weight_rows=16385), board) == 0
    assert resources.sprams(config.with_(lanes=16, weight_bits=4, units=4), board) == 4
    assert resources.sprams(config, boards.find("ice40-hx8k")) == 0


@pytest.mark.parametrize(
    ("board", "profile"),
    [
        ("icebreaker", "compact"),
        ("icesugar", "compact"),
        ("ice40-hx8k", "standard"),
        ("ulx3s-85f", "standard"),
    ],
)
def test_a_core_is_compact_where_its_chip_is_slow(board: str, profile: str) -> None:
    config = CoreConfig(lanes=16, word=16)
    assert resources.rounded(config, boards.find(board)).profile == profile


def test_a_core_with_external_memory_is_spread_on_a_slow_chip_too() -> None:
    config = CoreConfig().with_external()
    assert resources.rounded(config, boards.find("icebreaker")).profile == "spread"


@pytest.mark.parametrize(
    ("family", "depth", "width", "granule", "blocks"),
    [
        ("ice40", 256, 16, 16, 1),
        ("ice40", 257, 17, 17, 3),
        ("ice40", 8, 16, 16, 1),
        ("ice40", 3, 16, 16, 0),
        ("ecp5", 512, 36, 36, 1),
        ("ecp5", 2048, 18, 18, 2),
        ("ecp5", 16, 64, 64, 0),
        ("ecp5", 2048, 16, 4, 4),  # an enable a byte holds 4 of its bits
        ("ecp5", 960, 512, 32, 32),  # of 36 bits with four enables 32 are used
        ("gowin", 2784, 64, 32, 12),
        ("gowin", 3000, 8, 8, 2),
        ("gowin", 4096, 16, 8, 4),
    ],
)
def test_blocks_take_the_best_shape(
    family: str, depth: int, width: int, granule: int, blocks: int
) -> None:
    memory = Memory(name="m", depth=depth, width=width, granule=granule)
    found = families.find(family)
    assert resources.blocks(memory, found) == blocks
    assert resources.blocks(replace(memory, clocked=False), found) == 0


def test_a_core_is_never_faster_than_the_board_aims_at_however_fast_its_oscillator() -> None:
    board = replace(boards.find("ulx3s-12f"), clock_hz=100_000_000)
    guess = Estimate(luts=1, block_rams=1, sprams=0, fmax_hz=60e6)
    assert sizing._clock(board, CoreConfig(), guess, None) <= board.target_hz


def test_a_core_that_was_built_has_its_clock_again_and_another_one_what_the_model_says() -> None:
    built = [p for p in POINTS if "clock_mhz" in p]
    guess = Estimate(luts=1, block_rams=1, sprams=0, fmax_hz=60e6)
    assert len(built) > 3
    for point in built:
        assert point["clock_mhz"] <= point["fmax_mhz"]
        board, config = boards.find(point["board"]), CoreConfig.from_dict(point["config"])
        clock = min(board.target_hz, round(1e6 * point["clock_mhz"]))
        assert sizing._clock(board, config, guess, None) == clock
        assert sizing._clock(board, config, guess, 54_000_000) <= 54_000_000
        other = config.with_(runs=config.runs + 1)
        assert sizing._clock(board, other, guess, None) <= 0.95 * 60e6


def test_memories_beside_the_neurons_do_not_depend_on_the_units() -> None:
    """So that a core that is too large without its neurons is not elaborated for other units."""
    board, config = boards.find("tang-nano-9k"), CoreConfig(lanes=16, units=1)
    found = []
    for units in (1, 4):
        stores = memories.memories(config.with_(units=units), board)
        found.append([store for store in stores if not store.name.startswith(memories._OF_UNITS)])
    assert found[0] == found[1]
    fixed = memories.fixed_blocks(config.with_(units=8), board)
    assert fixed == sum(resources.blocks(store, families.find("gowin")) for store in found[0]) > 0


def test_boards_of_one_kind_have_the_same_memories() -> None:
    config = CoreConfig(lanes=8)
    kinds = {}
    for name in ("ulx3s-85f", "versa-ecp5", "icebreaker", "ice40-hx8k"):
        kinds[name] = memories._kind(config, boards.find(name))
    assert kinds["ulx3s-85f"] == kinds["versa-ecp5"]
    assert kinds["icebreaker"] != kinds["ice40-hx8k"]


@pytest.mark.slow
def test_the_price_of_small_memories_is_kept_with_each_measurement() -> None:
    assert [point["small"] for point in POINTS] == [model.small_of(point) for point in POINTS]
