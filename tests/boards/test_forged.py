"""Board files with random mistakes: each is a board that can be built for, or one sentence."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path

from lbq_hw import boards
from lbq_hw.boards import Board, BoardError, clocks
from lbq_hw.core.top import Top
from tests.boards.tiny import Tiny
from tests.forged import assert_both, counts, read_or_refused

SHIPPED = ("icebreaker", "ulx3s-12f", "tang-nano-9k")
FIELDS = (
    "title", "device", "family", "platform", "luts", "block_rams", "sprams", "clock", "clock_hz",
    "pll", "target_hz", "sdram", "uart", "led", "hold", "baud", "place", "pack", "program", "usb",
)  # fmt: skip
VALUES = (
    "None", "0", "-1", "1.5", "'x'", "''", "()", "('uart',)", "('led', 0)", "('led', 99)", "[]",
    "('uart', 'x')", "{}", "object()", "10**12", "True", "b'x'", "'{'", "'{0} {1}'", "'{svf}'",
    "'ehxplll'", "'ecp5'", "'ice40'", "'gowin'", "':Mine'", "'os:path'", "'sys:exit'",
    "'amaranth_boards.versa_ecp5:VersaECP5Platform'", "'no.such:Thing'", "'IS42S16160G'",
    "(('led', 1, 1),)", "(('led', 1),)", "('--85k', '--package', 'CABGA381', '--speed', '6')",
    "lambda: 1", "12_000_000", "3_000_000",
)  # fmt: skip
RESOURCES = (
    "Resource('led', 0, Pins('ZZ9', dir='o'))",
    "Resource('led', 0, Pins('', dir='o'))",
    "Resource('led', 0, Pins('1 2', dir='o'))",
    "Resource('led', 0, DiffPairs('B2', 'C2', dir='o'))",
    "Resource('led', 0, Pins('1', dir='o', conn=('none', 0)))",
    "Resource('led', 0)",
    "Resource('led', 'x', Pins('B2', dir='o'))",
    "Resource('led', 0, Subsignal('a', Pins('B2')), Subsignal('b', Pins('B2')))",
    "Resource('led', 0, Pins('B2', dir='o'), Attrs(IO_TYPE=5))",
    "Resource('led', 0, Pins('B2', dir='o'), Clock(0))",
    "None",
    "Resource('led', 0, Pins('B2')), Resource('led', 0, Pins('C2'))",
)
TEXTS = (
    "", "BOARD = None", "BOARD", "raise KeyError", "import sys; sys.exit(0)", "raise SystemExit",
    "(", "import no_such_module", "from lbq_hw.boards import Board; BOARD = Board()", "\0",
    "from lbq_hw.boards import Board; BOARD = Board", "from boards import Board", "1 / 0",
    "class E(BaseException): ...\nraise E", "def f(): f()\nf()", "BOARD = __file__",
)  # fmt: skip


def forged(draw: random.Random) -> str:
    """A file with a mistake: in its text, in a field or two, or in a resource of its platform."""
    kind = draw.random()
    if kind < 0.15:
        return draw.choice(TEXTS)
    base = draw.choice(SHIPPED)
    fields = {field: draw.choice(VALUES) for field in draw.sample(FIELDS, draw.choice((1, 1, 2)))}
    platform = ""
    if kind > 0.7:
        module, _, name = boards.find(base).platform.partition(":")
        platform = (
            f"from amaranth.build import *\nfrom {module} import {name} as Base\n"
            "class Mine(Base):\n"
            "    resources = [*(one for one in Base.resources if one.name != 'led'), "
            f"{draw.choice(RESOURCES)}]\n"
        )
        fields = {"platform": "':Mine'"}
    given = ", ".join(f"{name}={value}" for name, value in fields.items())
    return (
        "from dataclasses import replace\nfrom lbq_hw import boards\n"
        f"{platform}BOARD = replace(boards.find({base!r}), name='mine', {given})\n"
    )


def assert_builds(board: Board) -> None:
    """A board that is not simulated can be built for, and its bitstream loaded."""
    if board.family is None:
        return
    setting = clocks.solve(board.pll, board.clock_hz, board.target_hz)
    top = Top(board=board, system=Tiny(), setting=setting)
    board.make_platform().prepare(top, "top", emit_src=False)
    assert board.command("top.bit") != board.program


@counts(74)
def test_a_forged_board_is_told_in_one_sentence_or_can_be_built_for(
    count: int, tmp_path: Path
) -> None:
    ends: Counter[str] = Counter()
    for seed in range(count):
        file = tmp_path / f"mine{seed}.py"
        file.write_text(forged(random.Random(seed)), encoding="utf-8")
        board = read_or_refused(partial(boards.find, str(file)), BoardError, file, ends)
        if board is not None:
            assert_builds(board)
    assert_both(ends, count)
