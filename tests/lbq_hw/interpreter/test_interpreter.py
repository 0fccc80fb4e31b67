from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tapes import items_of, with_items

from lbq_hw import datasets, file, golden, interpreter, isa, zoo
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.golden import counts
from lbq_hw.interpreter import Execution
from lbq_hw.interpreter.machine import Machine
from lbq_hw.isa import regions
from lbq_hw.isa.tape import TapeItem
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Window
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_images, random_network


def execute_and_compare(network: Network, config: CoreConfig, seed: int = 0) -> Execution:
    """Run one random image both ways; every level and logit must be the same."""
    raw = random_images(network, 1, seed)
    wanted = golden.run(network, raw, keep="levels")
    got = interpreter.run(compile_network(network, config), raw[0], seed=seed)
    for layer in network.layers[:-1]:
        output = wanted.traces[layer.name].output
        assert output is not None
        place = np.argwhere(output[:, 0] != got.levels[layer.name])
        assert not len(place), f"{layer.name} differs first at (t, c, y, x) = {place[0]}"
    assert np.array_equal(wanted.logits[0], got.logits)
    return got


@pytest.mark.parametrize("seed", range(25))
def test_a_random_network_on_a_random_core(seed: int) -> None:
    network = random_network(seed)
    execute_and_compare(network, random_core(network, seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_networks_on_random_cores(seed: int) -> None:
    network = random_network(seed)
    execute_and_compare(network, random_core(network, seed), seed)


def test_exponents_that_rise_within_a_layer_are_refused() -> None:
    network = random_network(1)
    config = random_core(network, 1)
    program = compile_network(network, config)
    segments = program.table("segments")
    number = program.table("layers")[0]["segment_last"]
    before = segments[number - 1]["exponent"]
    word = isa.SEGMENT.encode(config, segments[number] | {"exponent": before + 1})
    slices = tuple(word >> 32 * i & 0xFFFFFFFF for i in range(isa.SEGMENT.slices(config)))
    address = regions.address(config, regions.Region.SEGMENTS, number)
    last = TapeItem(address=address, payload=slices)
    changed = with_items(program, [*items_of(program), last])
    text = (
        f"segment {number}: exponent must be at most {before}, that of the segment before it in "
        f"its layer, not {before + 1}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        interpreter.run(changed, random_images(network, 1)[0])


@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
def test_one_network_at_every_number_of_lanes(lanes: int) -> None:
    network = random_network(7, timesteps=3)
    execute_and_compare(network, random_core(network, lanes, lanes=lanes), lanes)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_is_read_once_for_all_timesteps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: a recording of hundreds of them is executed in seconds."""
    reads: list[int] = []
    for name in ("_bits", "_mask"):
        plain = getattr(Machine, name)

        def counted(*args: object, plain: Callable[..., Any] = plain) -> Any:
            reads.append(1)
            return plain(*args)

        monkeypatch.setattr(Machine, name, counted)
    network = random_network(seed, static=False, timesteps=2)
    counts = []
    for timesteps in (2, 120):
        reads.clear()
        longer = replace(network, timesteps=timesteps)
        execute_and_compare(longer, random_core(longer, seed), seed)
        counts.append(len(reads))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(("static", "timesteps"), [(True, 8), (False, 8), (True, 1), (False, 1)])
def test_few_and_many_timesteps(static: bool, timesteps: int) -> None:
    network = random_network(11, static=static, timesteps=timesteps)
    execute_and_compare(network, random_core(network, timesteps))


def made(paths: tuple[Path, ...], shape: tuple[int, int, int], **changes: object) -> Network:
    """A network of one layer with these paths, from a 3-channel image, and a readout."""
    random = np.random.default_rng(5)
    first = Layer(
        name="first",
        shape=shape,
        paths=paths,
        bias=random.integers(-20, 20, shape[0]),
        fraction_bits=2,
        neuron=Neuron(
            capacity=6,
            theta=random.integers(20, 400, shape[0]),
            reset=random.integers(-50, 300, shape[0]),
            decay=3,
            decay_bits=2,
        ),
    )
    first = replace(first, **changes)
    channels, height, width = first.output_shape
    last = Layer(
        name="logits",
        shape=(3, 1, 1),
        paths=(Path(source="first", weight=random.integers(-7, 8, (3, channels, height, width))),),
        bias=np.zeros(3, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="made",
        input=Input(shape=(3, 6, 7), static=False, bits=5, shift=3),
        timesteps=3,
        weight_bits=4,
        layers=(first, last),
    )


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(6).integers(-7, 8, shape)


@pytest.mark.parametrize("lanes", [4, 16])
def test_an_identity_of_the_input_beside_a_convolution(lanes: int) -> None:
    paths = (
        Path(source=INPUT, weight=weights(3, 3, 3, 3), padding=(1, 1)),
        Path(source=INPUT, weight=np.array([900, -301, 5]), exponent=1),
    )
    network = made(paths, (3, 6, 7))
    execute_and_compare(network, random_core(network, 1, lanes=lanes))


@pytest.mark.parametrize("padding", [(0, 0), (1, 0)])
def test_an_identity_of_a_sum_pool(padding: tuple[int, int]) -> None:
    pool = Window(kernel=(2, 3), stride=(2, 1), padding=padding)
    path = Path(source=INPUT, weight=np.array([9, -40, 3]), pool=pool)
    network = made((path,), path.output_shape((3, 6, 7)))
    execute_and_compare(network, random_core(network, 2))


def test_a_padded_convolution_of_an_overlapping_sum_pool() -> None:
    pool = Window(kernel=(3, 3), stride=(1, 2), padding=(1, 0))
    path = Path(source=INPUT, weight=weights(5, 3, 3, 2), padding=(2, 3), stride=(2, 1), pool=pool)
    network = made((path,), path.output_shape((3, 6, 7)))
    execute_and_compare(network, random_core(network, 3))


def test_an_overlapping_padded_max_pool() -> None:
    path = Path(source=INPUT, weight=weights(9, 3, 3, 3), padding=(1, 1))
    pool = Window(kernel=(3, 2), stride=(2, 1), padding=(1, 1))
    network = made((path,), (9, 6, 7), pool=pool)
    execute_and_compare(network, random_core(network, 4, lanes=4))


def test_a_kernel_and_padding_larger_than_the_image() -> None:
    path = Path(source=INPUT, weight=weights(2, 3, 9, 11), padding=(6, 7), stride=(3, 5))
    network = made((path,), path.output_shape((3, 6, 7)))
    execute_and_compare(network, random_core(network, 5))


@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("channels", [5, 12, 33])
def test_layers_of_several_tiles_with_an_identity(lanes: int, channels: int) -> None:
    path = Path(source=INPUT, weight=weights(channels, 3, 3, 3), stride=(2, 2), padding=(1, 1))
    network = made((path,), (channels, 3, 4))
    first, last = network.layers
    assert first.neuron is not None
    second = replace(
        first,
        name="second",
        paths=(
            Path(source="first", weight=weights(channels, channels, 3, 3), padding=(1, 1)),
            Path(source="first", weight=weights(channels) * 50, exponent=1),
        ),
        neuron=replace(first.neuron, theta=first.neuron.theta * 4),
        pool=Window(kernel=(2, 2), stride=(1, 1)),
    )
    pool = Window(kernel=(2, 1), stride=(1, 1))
    pooled = Path(source="second", weight=weights(channels) * 9, pool=pool)
    third = replace(first, name="third", paths=(pooled,), shape=(channels, 1, 3))
    last = replace(last, paths=(Path(source="third", weight=weights(3, channels, 1, 3)),))
    network = replace(network, layers=(first, second, third, last))
    got = execute_and_compare(network, random_core(network, channels, lanes=lanes))
    assert all(levels.any() for levels in got.levels.values())


def test_the_shipped_digits_network_on_a_real_image() -> None:
    network = file.load(zoo.find("digits"))
    raw = datasets.load("digits", split="test").images[:1]
    program = compile_network(network, smallest_for(network, lanes=8))
    got = interpreter.run(program, raw[0])
    assert np.array_equal(got.logits, golden.run(network, raw).logits[0])


def test_an_image_of_zeros_costs_one_null_event_per_step() -> None:
    path = Path(source=INPUT, weight=weights(5, 3, 3, 3), padding=(1, 1))
    network = made((path,), (5, 6, 7))
    program = compile_network(network, smallest_for(network, lanes=4))
    first = interpreter.run(program, np.zeros((3, 3, 6, 7), np.uint8)).work[0]
    assert (first.steps, first.events, first.nulls) == (6 * 7 * 2 * 3, 0, 6 * 7 * 2 * 3)
    assert first.lane_cycles == first.nulls


def test_the_end_of_a_step_rides_on_its_last_bit() -> None:
    path = Path(source=INPUT, weight=np.ones((1, 3, 1, 1), np.int64))
    network = made((path,), (1, 6, 7))
    program = compile_network(network, smallest_for(network, lanes=4))
    first = interpreter.run(program, np.full((3, 3, 6, 7), 255, np.uint8)).work[0]
    assert (first.events > 0, first.nulls) == (True, 0)


def test_doublings_ride_on_events_and_the_rest_are_null() -> None:
    path = Path(source=INPUT, weight=np.ones((1, 3, 1, 1), np.int64), exponent=1)
    network = made((path,), (1, 6, 7))
    program = compile_network(network, smallest_for(network, lanes=4))
    raw = np.zeros((3, 3, 6, 7), np.uint8)
    raw[0, 0, 0, 0] = 0b10010 << 3  # exponents 5 and 2: two null doublings between, two to 0
    first = interpreter.run(program, raw).work[0]
    assert first.events == 2
    assert first.nulls == 2 + 2 + (first.steps - 1)


@pytest.mark.parametrize("seed", range(6))
def test_events_are_the_bit_sparse_accumulations_over_the_lanes(seed: int) -> None:
    network = random_network(seed, static=False)
    raw = random_images(network, 1, seed)
    counter = counts.Counter(network)
    golden.run(network, raw, observe=counter)
    program = compile_network(network, smallest_for(network, lanes=8))  # one tile per layer
    work = interpreter.run(program, raw[0]).work
    compared = 0
    for layer, done, counted in zip(network.layers, work, counter.counts().layers, strict=True):
        if layer.pool is None and not any(path.is_identity for path in layer.paths):
            assert done.events * layer.shape[0] == counted.work.bit_sparse
            compared += 1
    assert compared


def test_an_accumulator_too_narrow_is_noticed() -> None:
    path = Path(source=INPUT, weight=np.full((2, 3, 3, 3), 7), padding=(1, 1))
    network = made((path,), (2, 6, 7))
    program = compile_network(network, smallest_for(network, lanes=4))
    small = program.config.with_(acc_bits=program.config.acc_bits - 2)
    narrow = with_items(replace(program, config=small), items_of(program))
    with pytest.raises(OverflowError, match=r"^an accumulator overflows its \d+ bits$"):
        interpreter.run(narrow, np.full((3, 3, 6, 7), 255, np.uint8))


def test_the_proven_accumulator_is_used_to_the_last_bit() -> None:
    path = Path(source=INPUT, weight=np.full((2, 3, 3, 3), 7), padding=(1, 1))
    network = made((path,), (2, 6, 7))
    config = smallest_for(network, lanes=4)
    bounds = network.bounds(network.layers[0])
    raw = np.full((1, 3, 3, 6, 7), 255, np.uint8)
    acc = golden.run(network, raw, keep="all").traces["first"].acc
    assert acc is not None
    assert acc.max() == bounds.acc_high.max() == 31 * 7 * 27
    interpreter.run(compile_network(network, config), raw[0])
