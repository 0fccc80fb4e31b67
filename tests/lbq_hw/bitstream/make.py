"""Makes the golden bitstreams of the tests: ``python -m tests.lbq_hw.bitstream.make``.

A design of a few cells for one board per family, through the tools of a build: the files that the
step `bits` reads, as NAME.tar.xz beside this file.
"""

import io
import json
import os
import sys
import tarfile
from pathlib import Path

import numpy as np
from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import boards, families
from lbq_hw.boards import Board, clocks
from lbq_hw.core.top import Top
from lbq_hw.flow import commands
from lbq_hw.tools import need
from lbq_hw.tools.process import call

HERE = Path(__file__).parent
NAMES = ("icebreaker", "ice40-hx8k", "ulx3s-12f", "tang-nano-9k")


WORDS = [int(word) for word in np.random.default_rng(28).integers(0, 1 << 16, 256)]


class Speaker(wiring.Component):
    """Says words of a memory, bit by bit, at edges of the line: a block RAM with contents."""

    rx: In(1)
    tx: Out(1)
    busy: Out(1)

    def elaborate(self, _platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=16, depth=256, init=WORDS)
        read, write = words.read_port(), words.write_port()
        before, count = Signal(), Signal(12)
        m.d.sync += before.eq(self.rx)
        with m.If(self.rx != before):
            m.d.sync += count.eq(count + 1)
        m.d.comb += [
            read.addr.eq(count >> 4),
            self.tx.eq(read.data.bit_select(count[:4], 1)),
            self.busy.eq(count[-1]),
            write.addr.eq(count),
            write.data.eq(count),
            write.en.eq(count.all()),
        ]
        return m


def make(
    board: Board,
    folder: Path,
    *,
    clock_hz: int | None = None,
    system: wiring.Component | None = None,
) -> None:
    """Write what the steps from `rtl` to `pack` make of a system (a `Speaker`), to a folder."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    folder.mkdir(parents=True, exist_ok=True)
    family, clock_hz = families.of(board), clock_hz or board.target_hz
    setting = clocks.solve(board.pll, board.clock_hz, clock_hz)
    assert setting is not None
    (folder / "setting.json").write_text(json.dumps(vars(setting)), encoding="utf-8")
    top = Top(board=board, system=system or Speaker(), setting=setting)
    plan = board.make_platform().prepare(top, "top", debug_verilog=True, emit_src=False)
    for made, name in (("top.debug.v", "top.v"), (f"top.{family.constraints}",) * 2):
        text = plan.files[made]
        (folder / name).write_text(text if isinstance(text, str) else text.decode())
    logs = {"folder": folder, "log": folder / "log"}
    call(need("yosys"), ["-p", commands.script(board)], **logs)
    arguments = commands.place_arguments(board, clock_hz=clock_hz, seed=1)
    call(need(family.placer.name), arguments, **logs)
    call(need(family.packer.name), commands.pack_arguments(board), **logs)


def main() -> int:
    for name in sys.argv[1:] or NAMES:
        board = boards.find(name)
        family = families.of(board)
        folder = Path("build/golden-bits") / name
        make(board, folder)
        files = [f"top.{family.bitstream}", f"placed.{family.placed}", "netlist.json",
                 f"top.{family.constraints}", "setting.json"]  # fmt: skip
        files += [family.routed] if family.routed else []
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
            for file in files:
                entry = tarfile.TarInfo(file)
                data = (folder / file).read_bytes()
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        print(f"{name}: {(HERE / f'{name}.tar.xz').stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
