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

from lbq_hw import chips
from lbq_hw.config import CoreConfig
from lbq_hw.diagram.__main__ import BEGIN, END, main
from lbq_hw.diagram.components import components, file_of, headline
from lbq_hw.diagram.drawing import (
    CORE,
    DRAWINGS,
    EXTERNAL,
    HEAD,
    LETTER,
    LINE,
    Drawing,
    Wire,
    render,
)

DOCS = Path(__file__).parents[3] / "docs"
SEVERAL = 2  # paths per layer
Box = tuple[float, float, float, float]  # left, top, right, bottom


every_drawing = pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
every_wire = pytest.mark.parametrize(
    ("drawing", "wire"),
    [(drawing, wire) for drawing in DRAWINGS.values() for wire in drawing.wires],
    ids=lambda value: f"{value.source}-{value.target}" if isinstance(value, Wire) else "",
)


def drawn(drawing: Drawing) -> list[str]:
    """Every class in a drawing, as often as it is drawn."""
    names = [frame.name for frame in drawing.frames] + [block.name for block in drawing.blocks]
    return names + [part for block in drawing.blocks for part in block.parts]


def contracts(*modules: str) -> set[str]:
    """Components of some modules that have a contract; not the variants of others."""
    known = components()
    return {
        name
        for name, kind in known.items()
        if kind.__doc__
        and kind.__module__.startswith(modules)
        and not any(base in known.values() for base in kind.__mro__[1:])
    }


def test_every_component_with_a_contract_is_drawn_once() -> None:
    # Spread cores have these; pins belong to a board's top, buses and pixels to `lbq rtl`, a door
    # to builds that ask for one, an expander to cores whose tape has rows of several widths, and
    # the streaming core is on a page of its own, with the filter bank for sound.
    elsewhere = contracts(
        "lbq_hw.core.memory.far_rows", "lbq_hw.core.stream.register_slice",
        "lbq_hw.core.stream.credit", "lbq_hw.core.external.pins", "lbq_hw.core.fabric.ecp5",
        "lbq_hw.core.bus.", "lbq_hw.core.pixels.", "lbq_hw.core.host.door",
        "lbq_hw.core.host.switch", "lbq_hw.core.external.row_expander",
        "lbq_hw.core.streaming.", "lbq_hw.core.audio.",
    )  # fmt: skip
    external = contracts(
        "lbq_hw.core.external.", "lbq_hw.core.memory.spread", "lbq_hw.core.neurons.partial_sums"
    )
    first, second = drawn(CORE), drawn(EXTERNAL)
    assert sorted(first) == sorted(contracts("lbq_hw.core.") - external - elsewhere)
    assert len(first) > 30
    assert len(second) == len(set(second))
    known = components()
    variants = {name for name in second if known[name].__mro__[1] is not wiring.Component}
    assert set(second) - set(first) - variants == external - elsewhere


@cache
def system(drawing_title: str, layer_paths: int) -> Any:
    config = CoreConfig(layer_paths=layer_paths, timesteps=2, window=2)
    chip = None
    if drawing_title == EXTERNAL.title:
        chip = chips.ULX3S
        config = config.with_external(chip.data_bits, partial_words=64, partial_bits=16)
    whole: Any = components()["System"]
    built = whole(config, clock_hz=50_000_000, baud=1_000_000, chip=chip)
    assert len(list(inside(built))) > 30  # all of it is opened
    return built


def blocks(drawing: Drawing, layer_paths: int = SEVERAL) -> dict[str, Any]:
    """The components of a drawing, as they are in one system."""
    whole = system(drawing.title, layer_paths)
    parts = opened(whole)[1]
    core = parts["core"]
    found = [whole, core, *parts.values(), *opened(core)[1].values()]
    return {type(part).__name__: part for part in found}


@every_drawing
def test_every_part_is_inside_the_block_it_is_drawn_in(drawing: Drawing) -> None:
    # A core whose layers have one path holds it in another block.
    systems = [blocks(drawing, layer_paths) for layer_paths in (1, SEVERAL)]
    for block in drawing.blocks:
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
def edges(title: str) -> dict[int, set[int]]:
    """Which signals each signal is copied to by the logic between the blocks, by their ids."""
    found: dict[int, set[int]] = {}
    whole = system(title, SEVERAL)
    for parent in (whole, opened(whole)[1]["core"]):
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


def signals(drawing: Drawing, port: str) -> set[int]:
    """Ids of the signals of a port that is named as ``Class.port``."""
    block, _, name = port.partition(".")
    component = blocks(drawing)[block]
    assert name in component.signature.members, port
    value = getattr(component, name)
    if isinstance(value, wiring.PureInterface) or hasattr(value, "signature"):
        leaves = [leaf for _, _, leaf in value.signature.flatten(value)]
    else:
        leaves = [value]
    return {id(signal) for leaf in leaves for signal in Value.cast(leaf)._rhs_signals()}


def reaches(drawing: Drawing, source: str, target: str) -> bool:
    seen, wanted = signals(drawing, source), signals(drawing, target)
    front = set(seen)
    while front:
        front = {after for signal in front for after in edges(drawing.title).get(signal, ())} - seen
        if front & wanted:
            return True
        seen |= front
    return False


@every_wire
def test_every_wire_is_in_the_core(drawing: Drawing, wire: Wire) -> None:
    assert reaches(drawing, wire.source, wire.target)


def test_a_wire_that_is_not_in_the_core_is_found_out() -> None:
    assert not reaches(CORE, "Walker.o_request", "LaneArray.i_event")
    assert not reaches(CORE, "Scanner.i_request", "Walker.o_step")
    assert not reaches(EXTERNAL, "TapeRunner.records", "TapeLanes.weights")


@every_wire
def test_a_label_that_names_a_class_names_that_of_the_payload(drawing: Drawing, wire: Wire) -> None:
    block, _, name = wire.source.partition(".")
    port = getattr(blocks(drawing)[block], name)
    if wire.label[0].isupper():
        assert type(getattr(port, "payload", port).shape()).__name__ == wire.label


@every_drawing
def test_wires_begin_and_end_at_their_blocks_and_run_straight(drawing: Drawing) -> None:
    boxes = {shape.name: shape.box for shape in (*drawing.blocks, *drawing.frames)}
    for wire in drawing.wires:
        for port, (x, y) in ((wire.source, wire.route[0]), (wire.target, wire.route[-1])):
            left, top, width, height = boxes[port.partition(".")[0]]
            right, bottom = left + width, top + height
            on_side = x in (left, right) and top < y < bottom
            assert on_side or (y in (top, bottom) and left < x < right), wire
        for (x0, y0), (x1, y1) in pairwise(wire.route):
            assert (x0 == x1) != (y0 == y1), wire


def label_boxes(drawing: Drawing) -> Iterator[tuple[str, Box]]:
    for wire in drawing.wires:
        x, y = wire.at
        yield wire.label, (x, y - 9, x + LETTER * len(wire.label), y + 2)


def block_boxes(drawing: Drawing) -> Iterator[tuple[str, Box]]:
    for block in drawing.blocks:
        x, y, width, height = block.box
        yield block.name, (x, y, x + width, y + height)


def apart(a: Box, b: Box) -> bool:
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@every_drawing
def test_labels_and_blocks_do_not_overlap(drawing: Drawing) -> None:
    boxes = [*label_boxes(drawing), *block_boxes(drawing)]
    for (a, first), (b, second) in combinations(boxes, 2):
        assert apart(first, second), (a, b)


@every_drawing
def test_no_wire_runs_through_a_label_or_a_block(drawing: Drawing) -> None:
    for wire in drawing.wires:
        for (x0, y0), (x1, y1) in pairwise(wire.route):
            line = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            for name, box in (*label_boxes(drawing), *block_boxes(drawing)):
                assert apart(line, box), (wire.source, name)


@every_drawing
def test_what_a_block_says_of_itself_fits_into_it(drawing: Drawing) -> None:
    for block in drawing.blocks:
        _, y, width, height = block.box
        bottom = y + HEAD + LINE * len(block.role) + 2
        assert bottom <= min((top for _, (_, top, _, _) in block.part_boxes), default=y + height)
        assert all(LETTER * len(name) <= part for name, (_, _, part, _) in block.part_boxes)
        assert all(5.7 * len(line) + 8 <= width for line in block.role)


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_committed_drawing_is_what_the_command_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--of", name]) == 0
    assert capsys.readouterr().out == (DOCS / f"{name}.svg").read_text("utf-8")


def test_the_core_is_what_the_command_prints_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == (DOCS / "architecture.svg").read_text("utf-8")


def test_the_tables_of_blocks_are_what_the_command_writes(tmp_path: Path) -> None:
    for name in DRAWINGS:
        before, _, rest = (DOCS / f"{name}.md").read_text("utf-8").partition(BEGIN)
        (tmp_path / f"{name}.md").write_text(before + BEGIN + END + rest.partition(END)[2])
    assert main([str(tmp_path)]) == 0
    for name in DRAWINGS:
        for file in (f"{name}.md", f"{name}.svg"):
            assert (tmp_path / file).read_text("utf-8") == (DOCS / file).read_text("utf-8")


def test_a_page_without_marks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "architecture.md"
    page.write_text(BEGIN)
    assert main([str(tmp_path)]) == 2
    begin = BEGIN.strip()
    assert capsys.readouterr().err == (
        f"error: {page}: the page must have {begin!r} and then {END!r}\n"
    )
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
