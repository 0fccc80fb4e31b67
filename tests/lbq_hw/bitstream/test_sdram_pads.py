"""Pads of an SDRAM, on every board that has one: a small design through the tools of a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import bitstream, boards
from lbq_hw.boards.clocks import Setting
from lbq_hw.chips import Chip
from lbq_hw.core.external.pins import PinBus
from tests.lbq_hw.bitstream.make import make

NAMES = [name for name in boards.names() if name != "sim" and boards.find(name).chip is not None]


class Counter(wiring.Component):
    """Counts on all pins of an SDRAM; the line says what the data pins have in common."""

    def __init__(self, chip: Chip):
        super().__init__({"rx": In(1), "tx": Out(1), "busy": Out(1), "bus": Out(PinBus(chip))})

    def elaborate(self, _platform):
        m = Module()
        bus = self.bus
        out = Cat(bus.clk_en, bus.cs, bus.ras, bus.cas, bus.we, bus.ba, bus.a, bus.dqm, bus.dq_o)
        count = Signal(len(out) + 1)
        m.d.sync += count.eq(count + self.rx)
        m.d.comb += [
            Cat(out, bus.dq_oe).eq(count),
            self.tx.eq(Cat(bus.dq_i[0], bus.dq_i[1]).xor()),
            self.busy.eq(count[-1]),
        ]
        return m


@pytest.mark.slow  # half a minute for each board: the tools read the data of a large chip
@pytest.mark.parametrize("name", NAMES)
def test_pads_of_the_sdram_are_as_asked(name: str, tmp_path: Path) -> None:
    board = boards.find(name)
    assert board.chip is not None
    make(board, tmp_path, system=Counter(board.chip))
    setting = Setting(**json.loads((tmp_path / "setting.json").read_text(encoding="utf-8")))
    found = bitstream.check(bitstream.files(tmp_path, board), board, setting)
    # chip's data and address pins, clock, chip select, three commands, enable; line and clock
    assert len(found["pins"]) >= board.chip.data_bits + board.chip.pin_bits + 4
