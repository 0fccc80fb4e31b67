"""Sizing with external memory: when it is used, what fits, and what is said where nothing does."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from lbq_hw import boards, resources, sizing
from lbq_hw.compiler import compile_network
from lbq_hw.network import Input, Layer, Network, Neuron, Path
from lbq_hw.sizing import FitError

SIDE = 4


def chain(*channels: int) -> Network:
    """3x3 convolutions on the first channels, one after the other, and a readout of ten classes."""
    random, layers, source = np.random.default_rng(5), [], "input"
    for number, (before, after) in enumerate(pairwise(channels)):
        neuron = Neuron(
            capacity=3,
            theta=random.integers(20, 90, after),
            reset=random.integers(20, 90, after),
            decay=0,
            decay_bits=0,
        )
        weight = random.integers(-7, 8, (after, before, 3, 3))
        path = Path(source=source, weight=weight, padding=(1, 1))
        source = f"conv{number}"
        layers.append(
            Layer(
                name=source,
                shape=(after, SIDE, SIDE),
                paths=(path,),
                bias=np.zeros(after, np.int64),
                fraction_bits=0,
                neuron=neuron,
            )
        )
    weight = random.integers(-7, 8, (10, channels[-1], SIDE, SIDE))
    layers.append(
        Layer(
            name="fc",
            shape=(10, 1, 1),
            paths=(Path(source=source, weight=weight),),
            bias=np.zeros(10, np.int64),
            fraction_bits=0,
            neuron=None,
        )
    )
    return Network(
        name="chain",
        input=Input(shape=(channels[0], SIDE, SIDE), static=True, bits=4),
        timesteps=1,
        weight_bits=4,
        layers=tuple(layers),
    )


@pytest.fixture(scope="module")
def large() -> Network:
    """1.2 million bits of weights, more than an LFE5U-25F holds."""
    return chain(3, *[64] * 9)


def test_a_network_that_fits_on_the_chip_stays_there_unless_told_otherwise() -> None:
    network, board = chain(3, 8, 16), boards.find("ulx3s-12f")
    assert sizing.size(network, board).config.external == 0
    assert sizing.size(network, board, memory="internal").config.external == 0
    assert sizing.size(network, board, memory="external").config.external == 16


def test_one_that_does_not_gets_the_fastest_core_that_reads_the_boards_memory(
    large: Network,
) -> None:
    board = boards.find("ulx3s-12f")
    sized = sizing.size(large, board)
    assert sized.config.external == 16
    assert resources.lack(sized.config, board) is None
    others = [sizing.size(large, board, lanes=lanes) for lanes in (64, 32)]
    assert sized.seconds <= 1.02 * min(other.seconds for other in others)
    program = compile_network(large, sized.config)
    assert len(program.tape) > large.parameters // 2
    assert sized.estimate is not None
    assert sized.estimate.block_rams <= board.block_rams


def test_lanes_are_kept(large: Network) -> None:
    assert sizing.size(large, boards.find("ulx3s-12f"), lanes=32).config.lanes == 32


def test_a_quiet_network_takes_fewer_cycles(large: Network) -> None:
    board, images = boards.find("ulx3s-12f"), np.zeros((1, 3, SIDE, SIDE), np.uint8)
    quiet = sizing.size(large, board, lanes=64, memory="external", images=images)
    assert quiet.cycles < sizing.size(large, board, lanes=64, memory="external").cycles


def test_memory_that_is_not_there_cannot_be_asked_for() -> None:
    message = "iCEBreaker has no external memory that a core can read"
    with pytest.raises(FitError, match=f"^{re.escape(message)}$"):
        sizing.size(chain(3, 8), boards.find("icebreaker"), memory="external")


def test_activations_that_do_not_fit_are_refused_with_what_is_short() -> None:
    wide = Network(
        name="wide",
        input=Input(shape=(3, 256, 256), static=True, bits=8),
        timesteps=1,
        weight_bits=4,
        layers=(
            Layer(
                name="fc",
                shape=(10, 1, 1),
                paths=(
                    Path(
                        source="input", weight=np.ones((10, 3, 1, 1), np.int64), stride=(256, 256)
                    ),
                ),
                bias=np.zeros(10, np.int64),
                fraction_bits=0,
                neuron=None,
            ),
        ),
    )
    with pytest.raises(FitError, match=r"with external memory: the core needs about .* block RAMs"):
        sizing.size(wide, boards.find("ulx3s-12f"), memory="external")
