# amaranth: UnusedElaboratable=no
"""The drawing of the core shows what is there: its blocks, its wires, and labels one can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Value
from amaranth.hdl._ast import Assign, Switch
from amaranth.lib import memory, wiring
from opened import inside, opened

from lbq_hw.config import CoreConfig
from lbq_hw.diagram.__main__ import BEGIN, END, main
from lbq_hw.diagram.components import components, file_of, headline
from lbq_hw.diagram.drawing import CORE
from lbq_hw.diagram.shapes import Wire
from lbq_hw.diagram.svg import HEAD, LETTER, LINE, part_boxes, render

DOCS = Path(__file__).parents[2] / "docs"
SEVERAL = 2  # paths per layer
Box = tuple[float, float, float, float]  # left, top, right, bottom


def drawn() -> list[str]:
    """Every class in the drawing, as often as it is drawn."""
    names = [frame.name for frame in CORE.frames] + [block.name for block in CORE.blocks]
    return names + [part for block in CORE.blocks for part in block.parts]


def test_every_component_with_a_contract_is_drawn_once() -> None:
    # The drawing is of a core without external memory, which has a page of its own, and whose
    # weights are near its lanes.
    elsewhere = (
        "lbq_hw.core.external.",
        "lbq_hw.core.memory.far_rows",
        "lbq_hw.core.memory.spread",
        "lbq_hw.core.neurons.partial_sums",
        "lbq_hw.core.scan.two_places",
    )
    contracts = [
        name
        for name, kind in components().items()
        if kind.__doc__ and not kind.__module__.startswith(elsewhere)
    ]
    assert sorted(drawn()) == contracts
    assert len(contracts) > 30


@cache
def system(layer_paths: int) -> Any:
    config = CoreConfig(layer_paths=layer_paths, timesteps=2, window=2)
    whole: Any = components()["System"]
    built = whole(config, clock_hz=12_000_000, baud=1_000_000)
    assert len(list(inside(built))) > 30  # all of it is opened
    return built


def blocks(layer_paths: int = SEVERAL) -> dict[str, Any]:
    """The components of the drawing, as they are in one system."""
    whole = system(layer_paths)
    parts = opened(whole)[1]
    core = parts["core"]
    found = [whole, core, *parts.values(), *opened(core)[1].values()]
    return {type(part).__name__: part for part in found}


def test_every_part_is_inside_the_block_it_is_drawn_in() -> None:
    # A core whose layers have one path holds it in another block.
    systems = [blocks(layer_paths) for layer_paths in (1, SEVERAL)]
    for block in CORE.blocks:
        parts = [part for there in systems for part in inside(there[block.name])]
        assert set(block.parts) <= {type(part).__name__ for part in parts}, block.name


def assignments(statements: Any) -> Iterator[Assign]:
    for statement in statements:
        if isinstance(statement, Assign):
            yield statement
        elif isinstance(statement, Switch):
            for _, inner, _ in statement.cases:
                yield from assignments(inner)


@cache
def edges() -> dict[int, set[int]]:
    """Which signals each signal is copied to by the logic between the blocks, by their ids."""
    found: dict[int, set[int]] = {}
    for parent in (system(SEVERAL), opened(system(SEVERAL))[1]["core"]):
        statements, parts = opened(parent)
        for statement in assignments(statements["comb"]):
            for source in statement.rhs._rhs_signals():
                for target in statement.lhs._lhs_signals():
                    found.setdefault(id(source), set()).add(id(target))
        for part in parts.values():
            if isinstance(part, memory.Memory):
                for write in part.write_ports:
                    for read in part.read_ports:
                        given, held = Value.cast(write.data), Value.cast(read.data)
                        found.setdefault(id(given), set()).add(id(held))
    return found


def signals(port: str) -> set[int]:
    """Ids of the signals of a port that is named as ``Class.port``."""
    block, _, name = port.partition(".")
    component = blocks()[block]
    assert name in component.signature.members, port
    value = getattr(component, name)
    if isinstance(value, wiring.PureInterface) or hasattr(value, "signature"):
        leaves = [leaf for _, _, leaf in value.signature.flatten(value)]
    else:
        leaves = [value]
    return {id(signal) for leaf in leaves for signal in Value.cast(leaf)._rhs_signals()}


def reaches(source: str, target: str) -> bool:
    seen, wanted = signals(source), signals(target)
    front = set(seen)
    while front:
        front = {after for signal in front for after in edges().get(signal, ())} - seen
        if front & wanted:
            return True
        seen |= front
    return False


@pytest.mark.parametrize("wire", CORE.wires, ids=lambda wire: f"{wire.source}-{wire.target}")
def test_every_wire_is_in_the_core(wire: Wire) -> None:
    assert reaches(wire.source, wire.target)


def test_a_wire_that_is_not_in_the_core_is_found_out() -> None:
    assert not reaches("Walker.o_request", "LaneArray.i_event")
    assert not reaches("Scanner.i_request", "Walker.o_step")


@pytest.mark.parametrize("wire", CORE.wires, ids=lambda wire: f"{wire.source}-{wire.target}")
def test_a_label_that_names_a_class_names_that_of_the_payload(wire: Wire) -> None:
    block, _, name = wire.source.partition(".")
    port = getattr(blocks()[block], name)
    if wire.label[0].isupper():
        assert type(getattr(port, "payload", port).shape()).__name__ == wire.label


def test_wires_begin_and_end_at_their_blocks_and_run_straight() -> None:
    boxes = {shape.name: shape for shape in (*CORE.blocks, *CORE.frames)}
    for wire in CORE.wires:
        for port, (x, y) in ((wire.source, wire.route[0]), (wire.target, wire.route[-1])):
            box = boxes[port.partition(".")[0]]
            right, bottom = box.x + box.width, box.y + box.height
            on_side = x in (box.x, right) and box.y < y < bottom
            assert on_side or (y in (box.y, bottom) and box.x < x < right), wire
        for (x0, y0), (x1, y1) in pairwise(wire.route):
            assert (x0 == x1) != (y0 == y1), wire


def label_boxes() -> Iterator[tuple[str, Box]]:
    for wire in CORE.wires:
        x, y = wire.at
        yield wire.label, (x, y - 9, x + LETTER * len(wire.label), y + 2)


def block_boxes() -> Iterator[tuple[str, Box]]:
    for block in CORE.blocks:
        yield block.name, (block.x, block.y, block.x + block.width, block.y + block.height)


def apart(a: Box, b: Box) -> bool:
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_labels_and_blocks_do_not_overlap() -> None:
    for (a, first), (b, second) in combinations([*label_boxes(), *block_boxes()], 2):
        assert apart(first, second), (a, b)


def test_no_wire_runs_through_a_label_or_a_block() -> None:
    for wire in CORE.wires:
        for (x0, y0), (x1, y1) in pairwise(wire.route):
            line = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            for name, box in (*label_boxes(), *block_boxes()):
                assert apart(line, box), (wire.source, name)


def test_what_a_block_says_of_itself_fits_into_it() -> None:
    for block in CORE.blocks:
        bottom = block.y + HEAD + LINE * len(block.role) + 2
        parts = part_boxes(block)
        assert bottom <= min((top for _, _, top, _, _ in parts), default=block.y + block.height)
        assert all(LETTER * len(name) <= width for name, _, _, width, _ in parts)
        assert all(5.7 * len(line) + 8 <= block.width for line in block.role)


def test_the_committed_drawing_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == (DOCS / "architecture.svg").read_text("utf-8")


def test_the_table_of_blocks_is_what_the_command_writes(tmp_path: Path) -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    (tmp_path / "architecture.md").write_text(before + BEGIN + END + rest.partition(END)[2])
    assert main([str(tmp_path)]) == 0
    for name in ("architecture.md", "architecture.svg"):
        assert (tmp_path / name).read_text("utf-8") == (DOCS / name).read_text("utf-8")


def test_a_page_without_marks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "architecture.md"
    page.write_text(BEGIN)
    assert main([str(tmp_path)]) == 2
    begin = BEGIN.strip()
    assert capsys.readouterr().err == (f"{page}: the page must have {begin!r} and then {END!r}\n")
    assert page.read_text() == BEGIN


def test_a_class_is_known_by_its_file_and_first_sentence() -> None:
    class Sample:
        """Does a thing: of
        two lines. And another.

        Timing. None.
        """

    assert headline(Sample) == "Does a thing: of two lines."
    for kind in components().values():
        assert (DOCS.parent / file_of(kind)).is_file()
        assert headline(kind).endswith(".")


def luminance(colour: str) -> float:
    """As WCAG 2 defines it for ``#rrggbb``."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_and_wires_stand_out_from_what_is_behind_them(dark: bool) -> None:
    style = render(CORE, dark=dark).partition("</style>")[0].partition("@media")[0]
    fills = dict(re.findall(r"^\.?(\w+) \{.*?fill: (#\w{6});", style, re.M))
    fills["wire"] = re.findall(r"^\.wire \{.*?stroke: (#\w{6});", style, re.M)[-1]
    for front, backs in {
        "text": ("page", "block", "part"),
        "role": ("block",),
        "wire": ("page",),
        "head": ("page",),
    }.items():
        for back in backs:
            low, high = sorted((luminance(fills[front]), luminance(fills[back])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back)
