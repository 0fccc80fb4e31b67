"""A network on the core, layer by layer against the golden model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.compiler import Program
from lbq_hw.cycles import LayerCycles, predict
from lbq_hw.golden.counts import Counter
from lbq_hw.host import Counters, Device, Transport
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.network import Network
from lbq_hw.sim.layer_tapes import layer_tapes


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first place where the core and the golden model differ."""

    image: int
    layer: str
    timestep: int
    channel: int
    y: int
    x: int
    golden: int
    core: int

    def __str__(self) -> str:
        return (
            f"image {self.image}, layer {self.layer!r}, timestep {self.timestep}, channel "
            f"{self.channel}, y {self.y}, x {self.x}: golden {self.golden}, core {self.core}"
        )


@runtime_checkable
class TapeLoader(Protocol):
    """A transport to a simulated core with external memory, which can put a tape there."""

    def load_tape(self, tape: bytes, word_bits: int) -> None: ...


class Timed:
    """A transport that counts the seconds for which the core runs."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.write, self.read = transport.write, transport.read
        self.seconds = 0.0

    def load_tape(self, tape: bytes, word_bits: int) -> None:
        assert isinstance(self.transport, TapeLoader)
        self.transport.load_tape(tape, word_bits)

    def wait(self, limit: int) -> bool:
        began = time.perf_counter()
        idle = self.transport.wait(limit)
        self.seconds += time.perf_counter() - began
        return idle


@dataclass(kw_only=True)
class Outcome:
    """The result of a check; cycles and operations are summed over images.

    With external memory, `predicted` has the cycles of the cycle model, `waited` counts those of
    them in which no pass ran, and `layer_cycles` also come from the model.
    """

    program: Program
    difference: Difference | None = None
    predicted: int = 0
    waited: int = 0
    images: int = 0
    cycles: int = 0
    simulated: int = 0
    seconds: float = 0.0
    layer_cycles: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    layer_events: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    layer_nulls: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    counter: Counter | None = None

    def report(self) -> dict[str, Any]:
        """One JSON-able object; cycles and operations are means per image."""
        assert self.counter is not None
        work, config = self.counter.counts(), self.program.config
        images = max(self.images, 1)
        layers = [
            {
                "name": info.name,
                "cycles": int(cycles) / images,
                "events": int(events) / images,
                "null_events": int(nulls) / images,
                "acs_bit_sparse": counted.work.bit_sparse,
                "utilisation": counted.work.bit_sparse * images / (config.adders * int(cycles)),
            }
            for info, cycles, events, nulls, counted in zip(
                self.program.info,
                self.layer_cycles,
                self.layer_events,
                self.layer_nulls,
                work.layers,
                strict=True,
            )
            if cycles
        ]
        return {
            "model": self.program.name,
            "bit_exact": self.difference is None,
            "difference": None if self.difference is None else str(self.difference),
            "on_time": self.on_time,
            "images": self.images,
            "lanes": config.lanes,
            "cycles": self.cycles / images,
            "acs_bit_sparse": work.work.bit_sparse,
            "utilisation": work.work.bit_sparse * images / (config.adders * self.cycles)
            if self.cycles
            else 0.0,
            "sim_cycles_per_second": self.simulated / max(self.seconds, 1e-9),
            "layers": layers,
        }

    @property
    def on_time(self) -> bool:
        """Whether a core with external memory took the predicted number of cycles."""
        return not self.program.config.external or self.cycles == self.predicted

    def rates(self, clock_hz: int) -> dict[str, Any]:
        """Rates at a clock, without the upload; JSON-able."""
        images = max(self.images, 1)
        cycles = self.cycles / images
        rates: dict[str, Any] = {"clock_hz": clock_hz, "images_per_second": clock_hz / cycles}
        if self.program.config.external:
            size = len(self.program.tape)
            rates["external"] = {
                "bytes": size,
                "wait_cycles": self.waited / images,
                "bytes_per_second": size / (cycles / clock_hz),
            }
        return rates


def check(
    network: Network,
    program: Program,
    transport: Transport,
    images: NDArray[np.uint8],
    *,
    timing: ReaderTiming | None = None,
    advance: Callable[[], object] = lambda: None,
) -> Outcome:
    """Run raw images on the core: first each layer alone, compared level by level, then the whole
    network.

    `timing` belongs to an external memory. Stops at the first difference.
    """
    timed = Timed(transport)
    device = Device(timed, program)
    runner = _Tapes(device, timed) if program.config.external else _Layers(device)
    outcome = Outcome(program=program, counter=Counter(network))
    assert outcome.counter is not None
    size = len(program.info)
    totals = {name: np.zeros(size, np.int64) for name in ("cycles", "events", "null_events")}
    for number, image in enumerate(images):
        expected = golden.run(network, image[None], keep="levels", observe=outcome.counter)
        predicted = _predicted(program, image, expected, timing)
        outcome.predicted += sum(layer.cycles for layer in predicted)
        outcome.waited += sum(layer.wait_cycles for layer in predicted)
        device.write_image(image)
        for index, info in enumerate(program.info):
            runner.run_layer(index)
            counted = device.counters()
            outcome.simulated += counted.cycles
            for name, total in totals.items():
                own = None if program.config.external else getattr(counted, name)
                total[index] += getattr(predicted[index], name) if own is None else own
            outcome.difference = (
                _levels_difference(device, expected, number, info.name)
                if index < size - 1
                else _logits_difference(device.read_logits(), expected.logits[0], number, info.name)
            )
            if outcome.difference is not None:
                return _finish(outcome, totals, timed, number)
        runner.load_whole()
        logits = device.run(image)
        whole: Counters = device.counters()
        outcome.cycles += whole.cycles
        outcome.simulated += whole.cycles
        name = program.info[-1].name
        outcome.difference = _logits_difference(logits, expected.logits[0], number, name)
        advance()
        if outcome.difference is not None:
            return _finish(outcome, totals, timed, number + 1)
    return _finish(outcome, totals, timed, len(images))


class _Layers:
    """A program in the core's own memories."""

    def __init__(self, device: Device) -> None:
        self._device = device
        device.load()

    def run_layer(self, index: int) -> None:
        self._device.run_layer(index)

    def load_whole(self) -> None:
        """Nothing to do: the whole program is in the core."""


class _Tapes:
    """A program in external memory."""

    def __init__(self, device: Device, timed: Timed) -> None:
        self._device, self._timed = device, timed
        self._layers = list(layer_tapes(device.program))

    def run_layer(self, index: int) -> None:
        self._load(self._layers[index])
        self._device.start()

    def load_whole(self) -> None:
        self._load(self._device.program.tape)

    def _load(self, tape: bytes) -> None:
        self._timed.load_tape(tape, self._device.config.external)


def _predicted(
    program: Program,
    image: NDArray[np.uint8],
    expected: golden.Result,
    timing: ReaderTiming | None,
) -> tuple[LayerCycles, ...]:
    """The counts of a core with all counters, predicted for a core that has only some of them or
    that reads a tape.
    """
    if program.config.counters == len(COUNTERS) and not program.config.external:
        return ()
    return predict(program, image, expected.emitted(0), timing=timing)


def _finish(
    outcome: Outcome, totals: dict[str, NDArray[np.int64]], timed: Timed, images: int
) -> Outcome:
    outcome.images, outcome.seconds = images, timed.seconds
    outcome.layer_cycles, outcome.layer_events = totals["cycles"], totals["events"]
    outcome.layer_nulls = totals["null_events"]
    return outcome


def _levels_difference(
    device: Device, expected: golden.Result, image: int, layer: str
) -> Difference | None:
    wanted = expected.traces[layer].output
    assert wanted is not None
    found = device.read_levels(layer)
    unlike = np.argwhere(wanted[:, 0] != found)
    if not len(unlike):
        return None
    t, c, y, x = (int(index) for index in unlike[0])
    return Difference(
        image=image,
        layer=layer,
        timestep=t,
        channel=c,
        y=y,
        x=x,
        golden=int(wanted[t, 0, c, y, x]),
        core=int(found[t, c, y, x]),
    )


def _logits_difference(
    found: NDArray[np.int64], wanted: NDArray[np.int64], image: int, layer: str
) -> Difference | None:
    unlike = np.flatnonzero(found != wanted)
    if not len(unlike):
        return None
    at = int(unlike[0])
    place = {"timestep": 0, "channel": at, "y": 0, "x": 0}
    values = {"golden": int(wanted[at]), "core": int(found[at])}
    return Difference(image=image, layer=layer, **place, **values)
