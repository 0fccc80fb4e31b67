"""Tapes executed as the core does, against golden: every level, logit and timestep."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tapes import compiled, drawn, execute_and_compare, residual_network, with_items

from lbq_hw import interpreter
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeError, TapeItem
from lbq_hw.network import Network, Path
from lbq_hw.sim.drawn.cores import external_core
from lbq_hw.sim.drawn.networks import random_images


@pytest.mark.parametrize("seed", range(60))
def test_a_random_network_on_a_core_that_is_too_small_for_it(seed: int) -> None:
    network, config = drawn(seed)
    execute_and_compare(network, compiled(network, config), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_networks_on_cores_that_are_too_small(seed: int) -> None:
    network, config = drawn(seed)
    execute_and_compare(network, compiled(network, config), seed)


def residual(**fixed: int) -> tuple[Network, CoreConfig]:
    network = residual_network()
    sizes = {"lanes": 8, "units": 2, "summary": 4, "weight_rows": 32, "layers": 4} | fixed
    return network, external_core(network, 1, **sizes)


def test_outputs_lie_where_what_they_bypass_has_been() -> None:
    network, config = residual()
    program = compiled(network, config)
    bases = {name: tensor.base for name, tensor in program.tensors.items()}
    assert bases["stem"] == bases["b"] == bases["d"]
    assert all(layer.choice.part for layer in program.budget[1:5])
    execute_and_compare(network, program)


@pytest.mark.parametrize(("rows", "words"), [(32, 80), (128, 1000), (512, 80)])
def test_a_residual_network_in_many_cuts(rows: int, words: int) -> None:
    network, config = residual(weight_rows=rows, partial_words=words, partial_bits=20)
    execute_and_compare(network, compiled(network, config))


def test_a_readout_of_several_tiles_and_pixels_that_is_cut() -> None:
    network = residual_network()
    stem, readout = network.layers[0], network.layers[-1]
    weight = np.random.default_rng(3).integers(-7, 8, (20, 16, 4, 5))
    readout = replace(
        readout,
        shape=(20, 2, 1),
        paths=(Path(source="stem", weight=weight),),
        bias=np.arange(20),
    )
    network = replace(network, layers=(stem, readout))
    program = compiled(network, external_core(network, 3, lanes=8, weight_rows=64))
    assert program.budget[-1].passes > 3
    execute_and_compare(network, program)


def test_partial_sums_that_leave_their_bits_are_noticed() -> None:
    network, config = residual(partial_words=200, partial_bits=13)
    program = compiled(network, config)
    narrow = config.with_(partial_bits=7)
    items = list(tape.decode(config, program.tape))
    program = with_items(replace(program, config=narrow), items)
    with pytest.raises(OverflowError, match=r"^a partial sum overflows its 7 bits$"):
        interpreter.run(program, random_images(network, 1)[0])


def test_a_pass_with_more_steps_than_partial_sums_is_refused() -> None:
    network, config = residual(partial_words=200, partial_bits=13)
    program = compiled(network, config)
    small = config.with_(partial_words=40)
    program = with_items(replace(program, config=small), list(tape.decode(config, program.tape)))
    text = "a pass must have at most 10 steps, since it has partial sums"
    with pytest.raises(ValueError, match=f"^{text}$"):
        interpreter.run(program, random_images(network, 1)[0])


@pytest.mark.parametrize("region", [Region.LAYERS, Region.PARAMS, Region.WEIGHTS])
def test_what_is_written_a_pass_too_early_gives_a_wrong_answer(region: Region) -> None:
    network, config = residual(layers=2, channels=8, partial_words=200, partial_bits=20)
    if region != Region.LAYERS:  # so that nothing else has to wait
        config = config.with_(layers=128, paths=128, segments=1024, runs=1024)
    program = compiled(network, config)
    items = list(tape.decode(config, program.tape))
    early = [
        replace(item, after=item.after - 1)
        if item.after and item.address >> regions.SHIFT == region
        else item
        for item in items
    ]
    assert early != items
    with pytest.raises((AssertionError, IndexError, OverflowError, ValueError)):
        execute_and_compare(network, with_items(program, early))


@pytest.mark.parametrize("seed", range(40))
def test_a_tape_with_wrong_bits_or_a_missing_end_is_refused(seed: int) -> None:
    network, config = drawn(5)
    program, source = compiled(network, config), random.Random(seed)
    data = bytearray(program.tape.rstrip(b"\0"))
    if seed % 2:
        del data[source.randrange(len(data) - 4) :]
    else:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    with pytest.raises(TapeError):
        interpreter.run(replace(program, tape=bytes(data)), random_images(network, 1)[0])


def test_a_tape_without_a_last_pass_is_refused() -> None:
    network, config = drawn(5)
    program = compiled(network, config)
    items = list(tape.decode(config, program.tape))
    first = [item.address for item in items].index(tape.PASS)
    short = with_items(program, items[: first + 1])
    text = "the tape ends before a pass that is marked last"
    with pytest.raises(TapeError, match=f"^{text}$"):
        interpreter.run(short, random_images(network, 1)[0])


def test_a_pass_behind_the_last_is_refused() -> None:
    network, config = drawn(5)
    program = compiled(network, config)
    items = [*tape.decode(config, program.tape), TapeItem(address=tape.PASS)]
    text = f"pass {len(program.passes)} comes after the one marked last"
    with pytest.raises(TapeError, match=f"^{text}$"):
        interpreter.run(with_items(program, items), random_images(network, 1)[0])
