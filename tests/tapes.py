"""Networks that are larger than a small core, and their tapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbq_hw import golden, interpreter
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.interpreter import Execution
from lbq_hw.isa import tape
from lbq_hw.isa.tape import TapeItem
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Window
from lbq_hw.sim.drawn.cores import external_core
from lbq_hw.sim.drawn.networks import random_images, random_network


def drawn(seed: int) -> tuple[Network, CoreConfig]:
    """A random network, and a core that is too small for all of it at once."""
    channels = (6, 12, 20)[seed % 3]
    network = random_network(seed, channels=channels, capacity=5 if seed % 2 else None)
    return network, external_core(network, seed)


def execute_and_compare(network: Network, program: Program, seed: int = 0) -> Execution:
    """Run one random image both ways; every level and logit must be the same."""
    raw = random_images(network, 1, seed)
    wanted = golden.run(network, raw, keep="levels")
    got = interpreter.run(program, raw[0], seed=seed)
    assert set(got.levels) == {layer.name for layer in network.layers[:-1]}
    for layer in network.layers[:-1]:
        output = wanted.traces[layer.name].output
        assert output is not None
        place = np.argwhere(output[:, 0] != got.levels[layer.name])
        assert not len(place), f"{layer.name} differs first at (t, c, y, x) = {place[0]}"
    assert np.array_equal(wanted.logits[0], got.logits)
    return got


def with_items(program: Program, items: list[TapeItem]) -> Program:
    """The same program with other items on its tape."""
    return replace(program, tape=tape.encode(program.config, items))


def items_of(program: Program) -> list[TapeItem]:
    """The items of a program's tape."""
    return list(tape.decode(program.config, program.tape))


def residual_network() -> Network:
    """Two blocks with identities around them, then a stride, a max-pool and an average pool; T = 2.

    The readout has two pixels.
    """
    random, channels, side, classes = np.random.default_rng(7), 16, 5, 10

    def weight(*shape: int) -> np.ndarray:
        return random.integers(-7, 8, shape)

    def layer(name: str, *paths: Path, size: int = side, pool: Window | None = None) -> Layer:
        neuron = Neuron(
            capacity=5,
            theta=random.integers(40, 120, channels),
            reset=random.integers(40, 120, channels),
            decay=1,
            decay_bits=1,
        )
        return Layer(
            name=name,
            shape=(channels, size, size),
            paths=paths,
            bias=random.integers(-20, 40, channels),
            fraction_bits=0,
            neuron=neuron,
            pool=pool,
        )

    def conv(source: str, inputs: int = channels, stride: int = 1) -> Path:
        kernel = weight(channels, inputs, 3, 3)
        return Path(source=source, weight=kernel, padding=(1, 1), stride=(stride, stride))

    def identity(source: str) -> Path:
        return Path(source=source, weight=random.integers(-40, 90, channels))

    small = (side + 1) // 2
    layers = (
        layer("stem", conv(INPUT, 3)),
        layer("a", conv("stem")),
        layer("b", conv("a"), identity("stem")),
        layer("c", conv("b")),
        layer("d", conv("c"), identity("b")),
        layer("e", conv("d", stride=2), size=small),
        layer("f", conv("e"), size=small, pool=Window(kernel=(2, 2), stride=(1, 1))),
        Layer(
            name="logits",
            shape=(classes, 2, 1),
            paths=(
                Path(
                    source="f",
                    weight=weight(classes, channels, 1, 1),
                    pool=Window(kernel=(1, 2), stride=(1, 1)),
                ),
            ),
            bias=np.zeros(classes, np.int64),
            fraction_bits=0,
            neuron=None,
        ),
    )
    return Network(
        name="residual",
        input=Input(shape=(3, side, side), static=True, bits=4, shift=4),
        timesteps=2,
        weight_bits=4,
        layers=layers,
    )


def compiled(network: Network, config: CoreConfig) -> Program:
    program = compile_network(network, config)
    assert program.tape
    return program
