"""An external memory alone on a board, behind the pins of the link."""

from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import boards, families
from lbq_hw.boards import clocks
from lbq_hw.chips import Chip
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pins import SdramPins
from lbq_hw.core.top import Top
from lbq_hw.flow import commands
from lbq_hw.tools import logs, need
from lbq_hw.tools.process import call


class Alone(wiring.Component):
    """Shifts the line into the memory's inputs; the parity of its outputs goes out."""

    def __init__(self, *, chip: Chip, clock_hz: int):
        super().__init__({"rx": In(1), "tx": Out(1), "busy": Out(1)})
        self._chip, self._clock_hz = chip, clock_hz

    def elaborate(self: Any, platform: Any) -> Module:
        m: Any = Module()
        m.submodules.memory = memory = ExternalMemory(chip=self._chip, clock_hz=self._clock_hz)
        port = platform.request("sdram", 0, dir="-")
        m.submodules.pins = pins = SdramPins(chip=self._chip, port=port)
        wiring.connect(m, memory.bus, pins.bus)
        ends: dict[Any, list[Any]] = {In: [], Out: []}
        for path, member, value in memory.signature.flatten(memory):
            if path[0] != "bus" and isinstance(Value.cast(value), Signal):
                ends[member.flow].append(Value.cast(value))
        taken: Any = Cat(ends[In])
        given: Any = Signal(len(Cat(ends[Out])))
        chain = Signal(len(taken))
        folded = Signal(-(-len(given) // 8))
        m.d.comb += taken.eq(chain)
        m.d.sync += [
            chain.eq(Cat(self.rx, chain)),
            given.eq(Cat(ends[Out])),
            Cat(folded).eq(Cat(given[8 * n : 8 * n + 8].xor() for n in range(len(folded)))),
            self.tx.eq(folded.xor()),
            self.busy.eq(memory.tape.calibrated),
        ]
        return m


def place(name: str, chip: Chip, clock_hz: int, folder: Path) -> dict[str, Any]:
    """nextpnr's report of the memory alone on a board; the log is in the folder."""
    board = boards.find(name)
    setting = clocks.solve(board.pll, board.clock_hz, clock_hz)
    assert setting is not None
    system = Alone(chip=chip, clock_hz=setting.output_hz)
    plan = board.make_platform().prepare(
        Top(board=board, system=system, setting=setting),
        "top",
        debug_verilog=True,
        emit_src=False,
    )
    pins = f"top.{families.of(board).constraints}"
    for file, product in (("top.debug.v", "top.v"), (pins, pins)):
        (folder / product).write_text(plan.files[file], encoding="utf-8")
    log = folder / "synth.log"
    call(need("yosys"), ["-q", "-p", commands.script(board)], folder=folder, log=log)
    arguments = commands.place_arguments(board, clock_hz=setting.output_hz, seed=1)
    placer = need(families.of(board).placer.name)
    call(placer, arguments, folder=folder, log=folder / "place.log")
    return logs.parse((folder / "place.json").read_text("utf-8"), name="place.json")


def used(report: dict[str, Any], bucket: str) -> int:
    """Cells of a kind that the design takes."""
    return report["utilization"].get(bucket, {"used": 0})["used"]
