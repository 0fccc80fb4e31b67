"""A core of ``lbq rtl`` under bus masters and streams of other projects, with random pauses.

Not one of `BENCHES`: `sim.own_design` prepares the inputs and the expected results.
"""

from __future__ import annotations

import json
import logging
import os
import random
from collections import deque
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)
from cocotbext.wishbone.driver import WBOp, WishboneMaster

from lbq_hw.core.bus.top import WishboneCore
from lbq_hw.sim.benches.harness import reset

VARIABLE = "LBQ_OWN_DESIGN"
PAUSES = 0.2
_INPUTS = ("s_axis_pixel_tvalid", "s_axis_pixel_tdata", "s_axis_pixel_tuser", "m_axis_logit_tready",
           "s_axi_awvalid", "s_axi_wvalid", "s_axi_bready", "s_axi_arvalid", "s_axi_rready",
           "s_axi_awaddr", "s_axi_araddr", "s_axi_wdata", "s_axi_wstrb", "wb_cyc", "wb_stb",
           "wb_we", "wb_adr", "wb_sel", "wb_dat_w")  # fmt: skip


def _task() -> dict[str, Any]:
    """Addresses, inputs and logits, as `sim.own_design` has written them."""
    return json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))


def _pauses(source: random.Random) -> Iterator[bool]:
    while True:
        yield source.random() < PAUSES


class Axi4Lite:
    """`cocotbext.axi.AxiLiteMaster`, word by word."""

    def __init__(self, dut: Any, source: random.Random) -> None:
        self._master: Any = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
        writes, reads = self._master.write_if, self._master.read_if
        channels = (writes.aw_channel, writes.w_channel, writes.b_channel, reads.ar_channel,
                    reads.r_channel)  # fmt: skip
        for channel in channels:
            channel.set_pause_generator(_pauses(random.Random(source.random())))

    async def write(self, address: int, word: int) -> None:
        answer = await self._master.write(address, word.to_bytes(4, "little"))
        assert answer.resp == 0, f"a write to {address:#x} was answered with {answer.resp}"

    async def read(self, address: int) -> int:
        answer = await self._master.read(address, 4)
        assert answer.resp == 0, f"a read of {address:#x} was answered with {answer.resp}"
        return int.from_bytes(answer.data, "little")


class Wishbone:
    """`cocotbext.wishbone.driver.WishboneMaster`, word by word.

    The driver's own record may miss the last answer of a cycle, so this class records answers
    itself.
    """

    def __init__(self, dut: Any, source: random.Random) -> None:
        # Its optional signals would be found among the module's inner ones, without a prefix.
        names = {name: port.removeprefix("wb_") for name, port in WishboneCore.NAMES.items()}
        self._master = WishboneMaster(dut, "wb", dut.clk, signals_dict=names)
        self._source, self._dut = source, dut
        self._answers: deque[tuple[bool, int]] = deque()
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        while True:
            await RisingEdge(self._dut.clk)
            if self._dut.wb_ack.value or self._dut.wb_err.value:
                self._answers.append((bool(self._dut.wb_err.value), int(self._dut.wb_dat_r.value)))

    async def _send(self, address: int, word: int | None) -> int:
        idle = self._source.choice((0, 0, 0, 1, 5))
        await self._master.send_cycle([WBOp(adr=address // 4, dat=word, idle=idle)])
        refused, data = self._answers.popleft()
        assert not refused, f"{address:#x} was answered with err"
        assert not self._answers, f"{address:#x} was answered twice"
        return data

    async def write(self, address: int, word: int) -> None:
        await self._send(address, word)

    async def read(self, address: int) -> int:
        return await self._send(address, None)


async def _start(dut: Any) -> None:
    for name in ("cocotb", "cocotbext", "cocotb.lbq_core"):
        logging.getLogger(name).setLevel(logging.WARNING)
    await reset(dut, [name for name in _INPUTS if hasattr(dut, name)])


@cocotb.test()
async def through_the_bus(dut: Any) -> None:
    task, source = _task(), random.Random(cocotb.RANDOM_SEED)
    kind = Axi4Lite if hasattr(dut, "s_axi_awvalid") else Wishbone
    await _start(dut)
    master, at = kind(dut, source), task["addresses"]
    await master.write(at["source"], 1)
    await master.write(at["interrupt"], 1)
    for number, (words, wanted) in enumerate(zip(task["words"], task["logits"], strict=True)):
        await master.write(at["ended"], 1)
        for word in words:
            await master.write(at["pixels"], word)
        if number % 2:
            while not await master.read(at["ended"]):
                pass
        elif not dut.irq.value:
            await RisingEdge(dut.irq)
        logits = [await master.read(address) for address in task["logits_at"]]
        signed = [word - (word >> 31 << 32) for word in logits]
        assert signed == wanted, f"input {number}: {signed}, not {wanted}"
    assert await master.read(at["inputs"]) == len(task["words"])


@cocotb.test()
async def through_the_stream(dut: Any) -> None:
    task, source = _task(), random.Random(cocotb.RANDOM_SEED)
    await _start(dut)
    pixels = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_pixel"), dut.clk, dut.rst)
    logits = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_logit"), dut.clk, dut.rst)
    for end in (pixels, logits):
        end.set_pause_generator(_pauses(random.Random(source.random())))
    for one in task["pixels"]:
        first = list(chain((1,), repeat(0, len(one) - 1)))
        await pixels.send(AxiStreamFrame(tdata=bytes(one), tuser=first))
    for number, wanted in enumerate(task["logits"]):
        frame = await logits.recv()
        words = [
            int.from_bytes(frame.tdata[at : at + 4], "little", signed=True)
            for at in range(0, len(frame.tdata), 4)
        ]
        assert words == wanted, f"input {number}: {words}, not {wanted}"
    assert not dut.failed.value
