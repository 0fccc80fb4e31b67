"""A core with external memory at its ports: samples in, a tape beside it, logits out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.sim import Simulator
from core.external.tape_bench import Memory, words_of
from core.test_accelerator import access

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.compiler import Program
from lbq_hw.core.accelerator import accelerator
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import INPUT
from lbq_hw.sim.collisions import colliding

REGISTERS = {
    name: register.address
    for name, register in (regions.REGISTERS | regions.MEMORY_REGISTERS).items()
}
START, CLEAR = 1, 2


@dataclass(kw_only=True)
class Outcome:
    """Of one run: registers, and logits if it had no error."""

    status: int
    error: int
    error_at: int
    cycles: int
    passes: int
    wait_cycles: int
    logits: np.ndarray | None


class Bench:
    """Runs tapes on one core; the memory is `tape_bench.Memory`, not always aligned."""

    def __init__(self, program: Program, timing: ReaderTiming, *, limit: int) -> None:
        self.program, self.timing, self.limit = program, timing, limit
        self.core = accelerator(program.config)(program.config)
        self.memory = Memory(self.core.memory.words, self.core.memory.start, [0], timing)
        self.aligned = lambda cycle: cycle % 7 == 3
        self.calibrated = True

    def run(self, image: np.ndarray, tapes: list[bytes]) -> list[Outcome]:
        """The same image with each tape."""
        outcomes: list[Outcome] = []

        async def beside(ctx: Any) -> None:
            cycle = 0
            core = self.core
            while True:
                self.memory.set(ctx)
                ctx.set(core.memory.aligned, self.aligned(cycle))
                ctx.set(core.memory.calibrated, self.calibrated)
                _, _, *seen = await ctx.tick().sample(*self.memory.samples)
                self.memory.see(cycle, *seen)
                cycle += 1

        async def host(ctx: Any) -> None:
            for data in tapes:
                self.memory.words = words_of(data, self.timing.word_bits)
                await self._load(ctx, image)
                outcomes.append(await self._play(ctx))

        simulator = Simulator(colliding(self.core))
        simulator.add_clock(1e-6)
        simulator.add_testbench(beside, background=True)
        simulator.add_testbench(host)
        simulator.run()
        return outcomes

    async def _load(self, ctx: Any, image: np.ndarray) -> None:
        config = self.program.config
        base = self.program.tensors[INPUT].base
        for entry, slices in enumerate(self.program.load_image(image).tolist(), base):
            for part, word in enumerate(slices):
                address = regions.address(config, Region.PLANES, entry, part)
                await access(ctx, self.core.port, address, word)

    async def _play(self, ctx: Any) -> Outcome:
        port = self.core.port
        await access(ctx, port, REGISTERS["control"], CLEAR)
        await access(ctx, port, REGISTERS["control"], START)
        for _ in range(self.limit):
            await ctx.tick()
            if not ctx.get(self.core.busy):
                break
        found = {
            name: await access(ctx, port, REGISTERS[name])
            for name in ("status", "error", "error_at", "cycles", "passes", "wait_cycles")
        }
        logits = None
        if not found["error"]:
            words = []
            for entry in range(self.program.logit_words):
                parts = [
                    await access(
                        ctx, port, regions.address(self.program.config, Region.LOGITS, entry, part)
                    )
                    for part in range(regions.slices(self.program.config)[Region.LOGITS])
                ]
                word = sum(part << 32 * i for i, part in enumerate(parts))
                bits = 32 * len(parts)
                words.append(word - (word >> bits - 1 << bits))
            logits = self.program.logits(np.array(words))
        return Outcome(logits=logits, **found)
