# amaranth: UnusedElaboratable=no
"""The streaming core against its interpreter and its cycle model, in Amaranth's simulator; reads
that collide with writes give inverted data.
"""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.sim import Simulator
from streams import counting_network

from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.network import Network
from lbq_hw.sim.collisions import colliding
from lbq_hw.sim.drawn.streams import recording, stream_network
from lbq_hw.streaming import records
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.cycles import step_cycles
from lbq_hw.streaming.machine import Machine
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import CLEAR, RESET, STEP, StreamError, StreamRegion

CONTROL, STATUS, ERROR, CYCLES, STEPS = (
    records.REGISTERS.index(name) for name in ("control", "status", "error", "cycles", "step")
)


class Port:
    """The host's side of a core in a simulation."""

    def __init__(self, ctx: Any, core: Any) -> None:
        self.ctx, self.core = ctx, core

    async def _request(self, address: int, write: bool, data: int) -> None:
        port = self.core.port
        values = {"addr": address, "write": write, "w_data": data, "valid": 1}
        for name, value in values.items():
            self.ctx.set(getattr(port, name), value)
        while not self.ctx.get(port.ready):
            await self.ctx.tick()
        await self.ctx.tick()
        self.ctx.set(port.valid, 0)

    async def write(self, address: int, data: int) -> None:
        await self._request(address, True, data)

    async def read(self, address: int) -> int:
        await self._request(address, False, 0)
        while not self.ctx.get(self.core.port.r_valid):
            await self.ctx.tick()
        data = self.ctx.get(self.core.port.r_data)
        await self.ctx.tick()
        return data

    async def run(self, command: int, limit: int = 20_000) -> int:
        """Cycles until the core is idle again."""
        await self.write(CONTROL, command)
        cycles = 0
        while self.ctx.get(self.core.busy):
            await self.ctx.tick()
            cycles += 1
            assert cycles < limit
        return cycles

    async def entries(self, program: StreamProgram, region: StreamRegion) -> list[int]:
        parts = records.slices(program.config, region)
        found = []
        for entry in range(records.depths(program.config)[region]):
            first = records.address(program.config, region, entry)
            words = [await self.read(first + part) for part in range(parts)]
            found.append(sum(word << 32 * part for part, word in enumerate(words)))
        return found


def packed(machine: Machine) -> list[int]:
    bits = machine.config.membrane_bits
    mask = (1 << bits) - 1
    return [
        sum((int(v) & mask) << bits * unit for unit, v in enumerate(word))
        for word in machine.membranes
    ]


def simulate(core: StreamAccelerator, test: Any) -> None:
    simulator = Simulator(colliding(core))
    simulator.add_clock(1e-6)

    async def bench(ctx: Any) -> None:
        await test(Port(ctx, core))

    simulator.add_testbench(bench)
    simulator.run()


async def load(port: Port, program: StreamProgram) -> None:
    for address, words in program.writes():
        for part, word in enumerate(words):
            await port.write(address + part, word)


def check(network: Network, *, lanes: int, units: int, steps: int) -> None:
    program = compile_stream(network, lanes=lanes, units=units)
    machine = Machine(program)

    async def test(port: Port) -> None:
        await load(port, program)
        for number, frame in enumerate(recording(network, steps), 1):
            events = program.events(frame)
            for word in events:
                await port.write(StreamRegion.EVENTS << 28, word)
            work = machine.step(events)
            cycles = await port.run(STEP)
            assert cycles == sum(step_cycles(program.config, work))
            assert [await port.read(at) for at in (CYCLES, STEPS)] == [cycles, number]
            assert await port.entries(program, StreamRegion.MEMBRANES) == packed(machine)
            assert await port.entries(program, StreamRegion.MAPS) == machine.maps
        await port.run(RESET)
        assert not any(await port.entries(program, StreamRegion.MEMBRANES))
        assert await port.read(STEPS) == 0

    simulate(StreamAccelerator(program.config), test)


@pytest.mark.parametrize("seed", [2, 3])
def test_steps_are_those_of_the_machine_in_as_many_cycles_as_the_model_says(seed: int) -> None:
    check(stream_network(seed), lanes=4, units=2, steps=3)


def test_what_the_host_must_not_do_is_refused() -> None:
    program = compile_stream(counting_network(), lanes=4, units=2)

    async def test(port: Port) -> None:
        await load(port, program)
        assert await port.read(STATUS) == 0
        assert await port.read(15 << 24) == 0  # no such register
        assert [await port.read(at) for at in (STATUS, ERROR)] == [4, StreamError.ADDRESS]
        await port.write(CONTROL, CLEAR)
        await port.write(CONTROL, STEP)
        await port.write(StreamRegion.TAPS << 28, 0)
        assert await port.read(ERROR) == StreamError.BUSY

    simulate(StreamAccelerator(program.config), test)


def test_a_membrane_beyond_its_width_is_reported() -> None:
    program = compile_stream(counting_network(), lanes=4, units=2, horizon=4)

    async def test(port: Port) -> None:
        await load(port, program)
        for number in range(1, 9):
            await port.write(StreamRegion.EVENTS << 28, records.event_word(0, 0, 0, 1))
            await port.run(STEP)
            wanted = StreamError.MEMBRANE if number == 8 else StreamError.NONE
            assert await port.read(ERROR) == wanted

    simulate(StreamAccelerator(program.config), test)
