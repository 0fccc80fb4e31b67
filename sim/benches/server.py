"""Not a testbench: a core that executes `sim.commands` from a socket until it is closed. It first
sends its process ID.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Any

import cocotb
from amaranth.lib.wiring import Out
from cocotb.utils import get_sim_time

from lbq_hw.core.host.port import PortSignature
from lbq_hw.sim.benches.harness import PERIOD, Settings, reset
from lbq_hw.sim.benches.port import Port
from lbq_hw.sim.commands import READ, WRITE


@cocotb.test()
async def serve(dut: Any) -> None:
    members = PortSignature().members.items()
    await reset(dut, [f"port__{name}" for name, member in members if member.flow is Out])
    port = Port(dut)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(Settings.from_env().socket)
        with connection.makefile("rwb") as link:
            link.write(struct.pack("<I", os.getpid()))
            link.flush()
            # Simulated time stands still while the host works.
            while len(command := link.read(12)) == 12:
                kind, first, second = struct.unpack("<III", command)
                if kind == WRITE:
                    await port.write(first, [second])
                    continue
                if kind == READ:
                    answer = await port.read(first, second)
                else:
                    began = get_sim_time("ns")
                    idle = await port.wait(first << 32 | second)
                    cycles = int(get_sim_time("ns") - began) // PERIOD
                    answer = [cycles & 0xFFFFFFFF, cycles >> 32, int(idle)]
                link.write(struct.pack(f"<{len(answer)}I", *answer))
                link.flush()
