# amaranth: UnusedElaboratable=no
"""The page on the core: its example runs on the RTL as told, its numbers are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from core.harness import plain
from opened import inside

from lbq_hw import golden
from lbq_hw.compiler import Program
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.diagram.components import components
from lbq_hw.diagram.drawing import CORE
from lbq_hw.isa import link, regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import INPUT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
STEP = 4  # steps before the one that is followed: two columns of two timesteps


def table(head: str) -> list[dict[str, str]]:
    """The rows of the table that begins with these columns, cells by column."""
    lines = PAGE[PAGE.index(f"\n| {head} |") + 1 :].partition("\n\n")[0].splitlines()
    columns, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


@cache
def example() -> dict[str, Any]:
    """What the page's code defines."""
    names: dict[str, Any] = {}
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    exec(block, names)
    return names


def writes(program: Program, sample: Any) -> Iterator[tuple[int, int]]:
    """Addresses and words that bring a sample into the core, and start it."""
    base = program.tensors[INPUT].base
    for entry, slices in enumerate(program.load_image(sample).tolist(), base):
        for part, word in enumerate(slices):
            yield regions.address(program.config, Region.PLANES, entry, part), word
    yield regions.REGISTERS["control"].address, 1


@cache
def seen() -> dict[str, list[tuple[int, Any]]]:
    """What the streams of the core carry in the example, each payload with its cycle."""
    program = example()["program"]
    core: Any = components()["Accelerator"](program.config, image=program.image())
    module = core.elaborate(None)
    parts = {name: part for name, (part, _) in module._named_submodules.items()}
    streams = {
        "requests": parts["scanner"].i_request,
        "events": parts["scanner"].o_event,
        "taken": parts["lanes"].i_event,
        "sums": parts["lanes"].o_sum,
        "planes": parts["neurons"].o_planes,
        "writes": parts["writer"].o,
    }
    found: dict[str, list[tuple[int, Any]]] = {name: [] for name in streams}

    async def host(ctx: Any) -> None:
        for address, word in writes(program, example()["sample"]):
            ctx.set(core.port.valid, 1)
            ctx.set(core.port.write, 1)
            ctx.set(core.port.addr, address)
            ctx.set(core.port.w_data, word)
            await ctx.tick().until(core.port.ready)
            ctx.set(core.port.valid, 0)
        for cycle in range(1000):
            for name, port in streams.items():
                if ctx.get(port.valid) and ctx.get(port.ready):
                    found[name].append((cycle, plain(ctx.get(port.payload))))
            await ctx.tick()
            if not ctx.get(core.busy):
                return
        raise AssertionError("the core does not end")

    simulator = Simulator(module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(host)
    simulator.run()
    return found


def of_step(name: str) -> list[tuple[int, Any]]:
    """What a stream carries in the step that is followed; its end comes last."""
    ends = [index for index, (_, payload) in enumerate(seen()[name]) if payload["end"]]
    return seen()[name][ends[STEP - 1] + 1 : ends[STEP] + 1]


def test_the_requests_are_those_of_the_walker() -> None:
    program = example()["program"]
    bits = program.input_bits(example()["sample"])
    told = table("request")
    requests = [payload for _, payload in of_step("requests")]
    assert len(told) == len(requests)
    for row, request in zip(told, requests, strict=True):
        wanted = [4 * request["span"] + i for i in range(4) if request["want"] >> i & 1]
        assert numbers(row["span"]) == [request["span"]]
        assert numbers(row["words wanted"]) == wanted
        assert numbers(row["words with a flag"]) == [word for word in wanted if bits[word].any()]
        assert numbers(row["exponent"]) == [request["exponent"]]


def test_the_events_and_sums_are_those_of_the_scanner_and_the_lanes() -> None:
    weights = example()["program"].contents.weights()
    bits = example()["program"].input_bits(example()["sample"])
    told, events = table("event"), [payload for _, payload in of_step("events")]
    assert len(told) == len(events)
    lanes = np.zeros(4, int)
    for row, event in zip(told, events, strict=True):
        for name in ("clear", "double", "end"):
            assert int(row[name]) == event[name]
        lanes = lanes * (1 - event["clear"]) * (1 + event["double"])
        if event["mask"]:
            assert int(row["weight row"]) == event["row"]
            lanes = lanes + weights[event["row"]]
            word, bit = numbers(row["bit"])
            assert bits[word, bit]
        else:
            assert (row["weight row"], row["bit"]) == ("none", "null")
        assert numbers(row["lanes after it"]) == lanes.tolist()
    assert seen()["sums"][STEP][1] == lanes.tolist()


def test_the_neurons_levels_and_membranes_follow_from_the_sums() -> None:
    levels = golden.run(example()["network"], example()["sample"][None], keep="levels")
    traced = levels.traces["conv"].levels
    assert traced is not None
    membrane = 0
    for t, row in enumerate(table("timestep")):
        assert int(row["timestep"]) == t
        assert int(row["sum"]) == seen()["sums"][STEP + t][1][0]
        assert int(row["leak"]) == membrane // 2
        u = membrane // 2 + int(row["sum"])
        assert int(row["U"]) == u
        asked, rest, level = [], u, 0
        for plane in (2, 1, 0):
            reached = rest >= 6 << plane
            asked.append(f"{rest} >= {6 << plane}: {'yes' if reached else 'no'}")
            rest, level = rest - reached * (6 << plane), level + (reached << plane)
        assert row["compares"] == ", ".join(asked)
        assert int(row["level"]) == level == traced[t, 0, 0, 0, 2]
        planes = seen()["planes"][STEP + t][1]["planes"]
        assert sum((plane & 1) << k for k, plane in enumerate(planes)) == level
        membrane = u - 6 * (level > 0)
        assert int(row["membrane after it"]) == membrane


def test_the_writes_are_those_of_the_writer() -> None:
    told = table("plane")
    written = [payload for _, payload in seen()["writes"][3 * STEP : 3 * STEP + 3]]
    for plane, (row, write) in enumerate(zip(told, written, strict=True)):
        assert int(row["plane"]) == plane
        assert int(row["word"]) == write["addr"]
        assert write["enable"] == 1  # the lower half of the word
        assert int(row["bits"], 2) == write["data"] & 15
        assert int(row["first of its word"]) == write["first"]
    assert "sets its flag, bit 1 of summary word 7" in PAGE
    assert divmod(written[1]["addr"], 4) == (7, 1)


def test_the_cycles_are_those_of_the_rtl() -> None:
    start = of_step("requests")[0][0]
    taken = of_step("taken")
    cycles = [
        start,
        of_step("events")[0][0],
        taken[0][0],
        taken[-1][0],
        seen()["sums"][STEP][0],
        seen()["planes"][STEP][0],
        *(cycle for cycle, _ in seen()["writes"][3 * STEP : 3 * STEP + 2]),
    ]
    assert [int(row["cycle"]) for row in table("cycle")] == [cycle - start for cycle in cycles]


def test_every_test_that_pins_a_number_exists() -> None:
    defined = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        defined |= set(re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M))
    named = {row["test"].strip("`") for row in table("number")}
    assert len(named) >= 16
    assert named <= defined


def constant(name: str, kind: str) -> int:
    """A number of a component, or of the module in which it lies."""
    component = components()[kind]
    module = __import__(component.__module__, fromlist=[name])
    return getattr(component, name, None) or getattr(module, name)


@pytest.mark.parametrize(
    ("sentence", "kind", "name"),
    [
        (r"offered (\d+) cycles after its request was taken", "Scanner", "LATENCY"),
        (r"up to (\d+) StepInfos can wait", "StepInfos", "STEPS_AHEAD"),
    ],
)
def test_a_number_of_the_page_is_that_of_the_code(sentence: str, kind: str, name: str) -> None:
    (number,) = re.findall(sentence, " ".join(PAGE.split()))
    assert int(number) == constant(name, kind)


def test_numbers_of_a_default_core_are_its_own() -> None:
    core: Any = components()["Accelerator"](CoreConfig())
    (neurons,) = (part for part in inside(core) if type(part).__name__ == "NeuronArray")
    text = " ".join(PAGE.split())
    assert f"{neurons.latency} cycles in all on a default core" in text
    assert f"membranes ({neurons.loop} cycles on a default core)" in text
    slow: Any = components()["Accelerator"](CoreConfig(profile=Profile.COMPACT))
    (neurons,) = (part for part in inside(slow) if type(part).__name__ == "CompactNeurons")
    assert f"{neurons.latency} with the other sizes of a default core" in text
    assert f"A bit lasts at least {link.LEAST_DIVISOR} clock cycles" in text
    config = CoreConfig()
    assert config.word * config.summary == 512
    assert f"has {config.summary} flags and a plane word {config.word} bits" in text


def test_every_block_has_a_paragraph() -> None:
    headings = " ".join(re.findall(r"^### (.*)$", PAGE, re.M))
    for block in CORE.blocks:
        assert f"`{block.name}`" in headings
