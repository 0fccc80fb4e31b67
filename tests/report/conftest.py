"""A report of the digits network: all from real runs but for the tools, which built tiny.v."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lbq_hw import families, file, golden, zoo
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.cycles import means, predict
from lbq_hw.datasets import load
from lbq_hw.datasets.fitting import Samples
from lbq_hw.golden.counts import Counter, Counts
from lbq_hw.network import Network
from lbq_hw.report import Facts, collect
from lbq_hw.report.facts import Board, Build, Cycles, Fit, Link, Neurons, Simulation, Step
from lbq_hw.tools import logs

IMAGES = 4
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def network() -> Network:
    return file.load(zoo.find("digits"))


@pytest.fixture(scope="session")
def program(network: Network) -> Program:
    return compile_network(network, smallest_for(network, lanes=16))


@pytest.fixture(scope="session")
def activity(network: Network, program: Program) -> tuple[Counts, Neurons, Cycles]:
    """What golden and the cycle model say of a few test images."""
    images = load("digits", split="test").images[:IMAGES]
    counter, levels = Counter(network), collect.Levels(network)
    seen = golden.run(
        network, images, keep="levels", observe=lambda trace: (counter(trace), levels(trace))
    )
    outputs = {
        name: trace.output for name, trace in seen.traces.items() if trace.output is not None
    }
    found = [
        predict(program, image, {name: output[:, index] for name, output in outputs.items()})
        for index, image in enumerate(images)
    ]
    predicted = collect.predicted(means(found, adders=program.config.adders))
    return counter.counts(), levels.neurons(), predicted


def answered(network: Network) -> tuple[Samples, NDArray[np.int64]]:
    """Test images, and what golden takes them for."""
    samples = Samples.of(load("digits", split="test"))
    return samples, golden.run(network, samples.images).classes


@pytest.fixture(scope="session")
def facts(network: Network, program: Program, activity: tuple[Counts, Neurons, Cycles]) -> Facts:
    counts, neurons, cycles = activity
    placed = logs.parse((FIXTURES / "ice40-report.json").read_text(), name="ice40-report.json")
    return Facts(
        model=collect.model(network, evaluation=json.loads(zoo.evaluation("digits").read_text())),
        answers=collect.answers(network, *answered(network)),
        board=Board(
            name="icebreaker",
            title="iCEBreaker",
            fabric="iCE40UP5K-SG48",
            clock_hz=12_000_000,
            available={"LC": 5280, "EBR": 30, "SPRAM": 4},
        ),
        core=collect.core(program.config),
        fit=Fit(
            fits=True,
            resources={"LC": 80, "EBR": 1},
            fmax_hz=70e6,
            cycles=3500.0,
            remark="by guess",
        ),
        resources=logs.resources(placed, families.find("ice40").cells),
        timing=logs.timing(placed, seed=2, seeds={"1": 80e6, "2": 86.7e6}),
        cycles=cycles,
        link=Link(baud=1_000_000, bytes=900),
        operations=collect.operations(counts),
        neurons=neurons,
        memory=collect.memory(program),
        proofs=collect.proofs(program),
        simulation=Simulation(
            simulator="Verilator 5.006", bit_exact=True, images=IMAGES, cycles_per_second=6e5
        ),
        build=Build(
            tools={"yosys": "0.70"},
            digests=collect.digests([zoo.find("digits")]),
            steps=(Step(name="load", seconds=0.5), Step(name="synth", seconds=90.0, cached=True)),
            seed=2,
        ),
    )
