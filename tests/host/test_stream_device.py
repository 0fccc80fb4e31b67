"""The host's side of a streaming core, on a core that is the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from streams import counting_network

from lbq_hw.golden.streaming import Stream
from lbq_hw.host.streaming import LIMIT, StreamDevice, StreamLostError
from lbq_hw.host.transport import DeviceError
from lbq_hw.sim.drawn.streams import recording, stream_network
from lbq_hw.streaming import records
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.machine import Machine, MembraneError
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import CLEAR, RESET, STEP, StreamError, StreamRegion


class FakeCore:
    """A transport to a `Machine`."""

    def __init__(self, program: StreamProgram) -> None:
        self.machine, self.config = Machine(program), program.config
        self.events: list[int] = []
        self.registers = dict.fromkeys(records.REGISTERS, 0)
        self.registers |= {"id": records.MAGIC, "digest": int(program.config.digest[:8], 16)}
        self.written: dict[int, int] = {}

    def write(self, address: int, words: Sequence[int]) -> None:
        for at, word in enumerate(words, address):
            region = StreamRegion(at >> 28)
            if region is StreamRegion.EVENTS:
                self.events.append(word)
            elif region is StreamRegion.REGISTERS:
                self._command(word)
            else:
                self.written[at] = word

    def _command(self, word: int) -> None:
        values = self.registers
        if word & CLEAR:
            values |= {"error": 0, "status": 0}
        if word & RESET:
            self.machine.reset()
            values |= {"step": 0, "epoch": values["epoch"] + 1, "status": 2}
        if word & STEP:
            values |= {"step": values["step"] + 1, "status": 2}
            try:
                self.machine.step(self.events)
            except MembraneError:
                values |= {"error": StreamError.MEMBRANE, "status": 6}
            self.events.clear()

    def read(self, address: int, count: int) -> list[int]:
        found = []
        for at in range(address, address + count):
            region = StreamRegion(at >> 28)
            if region is StreamRegion.REGISTERS:
                found.append(self.registers[records.REGISTERS[at]])
                continue
            bits = (records.slices(self.config, region) - 1).bit_length()
            entry, part = (at & (1 << 28) - 1) >> bits, at & (1 << bits) - 1
            found.append(self._entry(region, entry) >> 32 * part & 0xFFFF_FFFF)
        return found

    def _entry(self, region: StreamRegion, entry: int) -> int:
        machine, bits = self.machine, self.config.membrane_bits
        if region is StreamRegion.MEMBRANES:
            word, mask = machine.membranes[entry], (1 << bits) - 1
            return sum((int(v) & mask) << bits * unit for unit, v in enumerate(word))
        return machine.maps[entry] if region is StreamRegion.MAPS else machine.levels[entry]

    def wait(self, limit: int) -> bool:
        return limit > 0


def device_of(program: StreamProgram) -> tuple[StreamDevice, FakeCore]:
    core = FakeCore(program)
    device = StreamDevice(core, program)
    device.load()
    return device, core


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steps_and_levels_are_those_of_golden(seed: int) -> None:
    network = stream_network(seed)
    program = compile_stream(network, lanes=4, units=2)
    device, core = device_of(program)
    assert core.written == {
        at + part: word for at, words in program.writes() for part, word in enumerate(words)
    }
    for _ in range(2):
        golden = Stream(network)
        for frame in recording(network, 4, seed):
            expected = golden.step(frame)
            assert device.step(frame).tolist() == expected.logits.tolist()
            for name, levels in expected.levels.items():
                assert np.array_equal(device.levels(name), levels)
        assert device.steps == 4
        device.reset()
        assert device.steps == 0


def test_membranes_that_are_lost_are_reported() -> None:
    network = counting_network()
    device, core = device_of(compile_stream(network, lanes=4, units=2))
    frame = np.ones(network.input.shape, np.uint8)
    device.step(frame)
    core.registers["step"] += 1
    lost = "the core has made 3 steps since its reset, not 2: reset it"
    with pytest.raises(StreamLostError, match=lost):
        device.step(frame)
    device.reset()
    core.registers["epoch"] += 1
    with pytest.raises(StreamLostError, match="the core was reset by another host, or lost its"):
        device.step(frame)
    device.reset()
    assert device.step(frame).tolist() == [1]


def test_a_membrane_beyond_its_width_ends_the_stream() -> None:
    network = counting_network()
    device, _ = device_of(compile_stream(network, lanes=4, units=2, horizon=4))
    frame = np.ones(network.input.shape, np.uint8)
    for _ in range(7):
        device.step(frame)
    with pytest.raises(
        StreamLostError, match="a membrane overflowed its width in step 8: reset the"
    ):
        device.step(frame)


def test_another_core_is_refused() -> None:
    program = compile_stream(counting_network(), lanes=4, units=2)
    core = FakeCore(program)
    core.registers["digest"] = 5
    with pytest.raises(DeviceError, match="the core must be a streaming one with config"):
        StreamDevice(core, program)


def test_a_step_is_given_up_by_the_cores_own_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that gives up too soon is asked again; a core that does not end is told of."""
    network = stream_network(1)
    device, core = device_of(compile_stream(network, lanes=4, units=2))
    [frame] = recording(network, 1, 1)
    answers = iter([False, False, True])
    monkeypatch.setattr(core, "wait", lambda _: next(answers))
    device.step(frame)
    assert next(answers, None) is None
    core.registers["cycles"] = LIMIT
    monkeypatch.setattr(core, "wait", lambda _: False)
    with pytest.raises(DeviceError, match=f"^the core did not finish within {LIMIT} cycles"):
        device.step(frame)
