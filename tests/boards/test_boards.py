"""Every board: its data, its pins, and, slowly, a bitstream from the real tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import boards
from boards import Board, BoardError, clocks
from boards.top import Top
from lbq_hw.flow import families
from lbq_hw.tools import logs, need
from lbq_hw.tools.process import call
from tests.boards.tiny import Tiny

DOCS = Path(__file__).parents[2] / "docs" / "boards.md"
FABRICS = [name for name in boards.names() if boards.find(name).family is not None]
UART_PINS = {  # the maker's documentation: to the FPGA, from the FPGA
    "ice40-hx8k": ("B10", "B12"),
    "icebreaker": ("6", "9"),
    "icesugar-pro": ("A9", "B9"),
    "orangecrab": ("N17", "M18"),
    "tang-nano-20k": ("70", "69"),
    "tang-nano-9k": ("18", "17"),
    "ulx3s-12f": ("M1", "L4"),
    "ulx3s-45f": ("M1", "L4"),
    "ulx3s-85f": ("M1", "L4"),
}


def prepare(board: Board, folder: Path) -> int:
    """The tiny design's files, as the flow writes them; the clock."""
    setting = clocks.solve(board.pll, board.clock_hz, board.target_hz)
    assert setting is not None
    plan = board.make_platform().prepare(
        Top(board=board, system=Tiny(), setting=setting), "top", debug_verilog=True, emit_src=False
    )
    pins = f"top.{families.of(board).constraints}"
    for name, product in (("top.debug.v", "top.v"), (pins, pins)):
        (folder / product).write_text(plan.files[name], encoding="utf-8")
    return setting.output_hz


def test_the_boards_that_were_promised_are_there() -> None:
    assert boards.names() == sorted([*UART_PINS, "sim"])


@pytest.mark.parametrize("name", FABRICS)
def test_a_board_puts_the_link_on_the_pins_of_its_documentation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    board = boards.find(name)
    prepare(board, tmp_path)
    pins = (tmp_path / f"top.{families.of(board).constraints}").read_text("utf-8")
    found = tuple(
        re.search(rf"uart_0__{line}__io\"?\s*(?:SITE )?\"?(\w+)", pins)[1] for line in ("rx", "tx")
    )
    assert found == UART_PINS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", FABRICS)
def test_the_real_tools_make_a_bitstream_that_meets_the_clock(name: str, tmp_path: Path) -> None:
    board = boards.find(name)
    family = families.of(board)
    clock_hz = prepare(board, tmp_path)
    log = tmp_path / "log"
    call(need("yosys"), ["-p", families.script(board)], folder=tmp_path, log=log)
    arguments = families.place_arguments(board, clock_hz=clock_hz, seed=1)
    call(need(family.placer), [*arguments], folder=tmp_path, log=log)
    assert "Program finished normally" in log.read_text("utf-8")
    placed = logs.parse((tmp_path / "place.json").read_text("utf-8"), name="place.json")
    there = {resource.kind: resource.available for resource in logs.resources(placed)}
    logic, rams, single = (there.get(kind, 0) for kind in ("LUT", "EBR", "SPRAM"))
    assert (there.get("LC", logic), rams, single) == (board.luts, board.block_rams, board.sprams)
    call(need(family.packer), families.pack_arguments(board), folder=tmp_path, log=log)
    assert (tmp_path / f"top.{family.bitstream}").stat().st_size > 50_000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "ice_breaker",
            "no board 'ice_breaker': did you mean icebreaker or ice40-hx8k or icesugar-pro?",
        ),
        (
            "ulx3s",
            "no board 'ulx3s': did you mean ulx3s-85f or ulx3s-45f or ulx3s-12f?",
        ),
        ("zzz", f"no board 'zzz': there are {', '.join(boards.names())}"),
    ],
)
def test_an_unknown_board_is_answered_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(BoardError) as error:
        boards.find(name)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "xc7"}, "family must be one of ice40, ecp5, gowin, not 'xc7'"),
        ({"luts": -1}, "luts must be a non-negative integer, not -1"),
        ({"baud": 1.5}, "baud must be a non-negative integer, not 1.5"),
        ({"platform": ""}, "platform must be given for a board with a fabric"),
    ],
)
def test_wrong_data_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Board(**(boards.find("icebreaker").facts() | change))


def test_the_simulated_board_has_no_platform() -> None:
    with pytest.raises(ValueError, match=r"^board 'sim' has no platform: it is only simulated$"):
        boards.find("sim").make_platform()


def test_the_documented_board_can_be_added_as_it_stands() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", DOCS.read_text("utf-8"), re.M | re.S)
    names: dict[str, Board] = {}
    exec(block, names)
    board = names["BOARD"]
    assert board.make_platform().default_clk == board.clock
    assert clocks.solve(board.pll, board.clock_hz, board.target_hz) is not None


def test_the_documentation_lists_every_board_with_its_size() -> None:
    lines = re.findall(r"^\| `.*$", DOCS.read_text("utf-8"), re.M)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    listed = [(row[1].strip("`"), row[3], row[4].partition(" x ")[0]) for row in rows]
    assert listed == [
        (board.name, f"{board.luts:,}" if board.luts else "", str(board.block_rams or ""))
        for board in map(boards.find, boards.names())
    ]
