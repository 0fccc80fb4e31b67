"""The host's end of the core's memory-mapped port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cocotb.task import resume
from cocotb.triggers import FallingEdge, RisingEdge, SimTimeoutError, with_timeout

from lbq_hw.sim.benches.harness import PERIOD
from lbq_hw.sim.models.traffic import Stall, never


class Port:
    """Requests to a design with a `PortSignature` named ``port`` and a ``busy``."""

    def __init__(self, dut: Any, *, stall: Stall = never) -> None:
        self.dut, self.stall = dut, stall
        self.edge = RisingEdge(dut.clk)

    async def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses."""
        self.dut.port__write.value = 1
        for offset, word in enumerate(words):
            self.dut.port__w_data.value = word
            await self._request(address + offset)
        self.dut.port__write.value = 0

    async def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        words = []
        for offset in range(count):
            await self._request(address + offset)
            await self.edge
            while not self.dut.port__r_valid.value:
                await self.edge
            words.append(int(self.dut.port__r_data.value))
        return words

    async def wait(self, limit: int) -> bool:
        """Run until the design is idle, at most `limit` cycles; whether it became so."""
        await self.edge  # a start that was just written has been taken after this
        if limit and self.dut.busy.value:
            try:
                await with_timeout(FallingEdge(self.dut.busy), limit * PERIOD, "ns")
            except SimTimeoutError:
                return False
            await self.edge
        return not self.dut.busy.value

    async def _request(self, address: int) -> None:
        while self.stall():
            await self.edge
        self.dut.port__addr.value = address
        self.dut.port__valid.value = 1
        await self.edge
        while not self.dut.port__ready.value:
            await self.edge
        self.dut.port__valid.value = 0


class Bridged:
    """A `lbq_hw.host.Transport` over a port, for code that `cocotb.task.bridge` runs."""

    def __init__(self, port: Port) -> None:
        self.write, self.read = resume(port.write), resume(port.read)
        self.wait = resume(port.wait)
