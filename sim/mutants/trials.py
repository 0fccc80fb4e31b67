"""Networks with all that a core must answer to them: each fault then costs the core's time alone.

For every image: the levels of each layer, run alone, the logits of the whole program, and the
core's counters. A core with external memory runs a tape per layer, and its counters are compared
after the whole tape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.compiler import Program, compile_network
from lbq_hw.cycles import LayerCycles, predict
from lbq_hw.host import Device
from lbq_hw.isa.regions import COUNTERS, Counters
from lbq_hw.numeric import Integers
from lbq_hw.sim.layer_tapes import layer_tapes
from lbq_hw.sim.sweep.stands import External, OnChip, Trial
from lbq_hw.sim.verilator import Verilated

__all__ = ["Rehearsed", "rehearse"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What a core must make of an image."""

    image: NDArray[np.uint8]
    levels: Mapping[str, NDArray[np.uint8]]
    logits: Integers
    layers: tuple[LayerCycles, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsed:
    """A network's program, and the answers to its images; `tapes` of its layers, if it has any."""

    program: Program
    answers: tuple[Answer, ...]
    tapes: tuple[bytes, ...]

    def difference(self, core: Verilated) -> str | None:
        """The first one between the core and the answers."""
        return next(self._differences(core), None)

    def _differences(self, core: Verilated) -> Iterator[str]:
        device = Device(core, self.program)
        if not self.tapes:
            device.load()
        for number, answer in enumerate(self.answers):
            for found in self._of_image(core, device, answer):
                yield f"image {number}, {found}"

    def _of_image(self, core: Verilated, device: Device, answer: Answer) -> Iterator[str]:
        bits = self.program.config.external
        device.write_image(answer.image)
        for index, layer in enumerate(answer.layers):
            if self.tapes:
                core.load_tape(self.tapes[index], bits)
                device.start()
            else:
                device.run_layer(index)
                yield from _miscounted(f"layer {layer.name!r}", device.counters(), (layer,))
            if layer.name in answer.levels:
                wanted, found = answer.levels[layer.name], device.read_levels(layer.name)
                yield from _unlike(f"layer {layer.name!r}, level", wanted, found)
            else:
                yield from _unlike("logit", answer.logits, device.read_logits())
        if self.tapes:
            core.load_tape(self.program.tape, bits)
        yield from _unlike("whole program, logit", answer.logits, device.run(answer.image))
        yield from _miscounted("whole program", device.counters(), answer.layers)
        if self.tapes:
            wanted = sum(layer.wait_cycles for layer in answer.layers)
            if (waits := device.wait_cycles()) != wanted:
                yield f"wait_cycles {wanted} predicted, {waits} counted"


def rehearse(stand: OnChip | External, trial: Trial) -> Rehearsed:
    """Compile a trial, and find what golden and the cycle model say."""
    network, config = trial.network, stand.config
    timing = stand.memory.timing if isinstance(stand, External) else None
    program = compile_network(network, config, timing=timing)
    results = [golden.run(network, image[None], keep="levels") for image in trial.inputs]
    answers = tuple(
        Answer(
            image=image,
            levels=result.emitted(0),
            logits=result.logits[0],
            layers=tuple(predict(program, image, result.emitted(0), timing=timing)),
        )
        for image, result in zip(trial.inputs, results, strict=True)
    )
    tapes = tuple(layer_tapes(program)) if config.external else ()
    return Rehearsed(program=program, answers=answers, tapes=tapes)


def _miscounted(place: str, counted: Counters, layers: tuple[LayerCycles, ...]) -> Iterator[str]:
    """The counters of the core that are not the sums over layers."""
    for name in COUNTERS:
        found, wanted = getattr(counted, name), sum(getattr(layer, name) for layer in layers)
        if found is not None and found != wanted:
            yield f"{place}: {name} {wanted} predicted, {found} counted"


def _unlike(place: str, wanted: NDArray[np.integer], found: NDArray[np.integer]) -> Iterator[str]:
    for at in np.argwhere(wanted != found)[:1]:
        where = tuple(at.tolist())
        yield f"{place} {list(where)}: golden {wanted[where]}, core {found[where]}"
