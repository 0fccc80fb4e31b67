"""golden against an event-by-event reference, and against what can be worked out by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reference import as_array, execute
from threadpoolctl import threadpool_limits

from lbq_hw import golden
from lbq_hw.golden import Trace, exact
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path
from lbq_hw.sim.drawn.networks import random_images, random_network


def assert_equals_reference(network: Network, images: int = 2) -> None:
    raw = random_images(network, images, seed=1)
    result = golden.run(network, raw, keep="all")
    assert list(result.traces) == [INPUT, *(layer.name for layer in network.layers)]
    for index in range(images):
        expected = execute(network, raw[index])
        assert result.logits[index].tolist() == expected.logits
        for layer in network.layers:
            trace = result.traces[layer.name]
            acc = as_array(expected.acc[layer.name], layer.shape)
            assert trace.acc is not None
            assert len(trace.acc) == (1 if network.is_static(layer) else network.timesteps)
            assert_array_equal(np.broadcast_to(trace.acc[:, index], acc.shape), acc)
            for name in ("u", "v", "levels"):
                steps = getattr(expected, name)[layer.name]
                if steps:
                    assert_array_equal(getattr(trace, name)[:, index], as_array(steps, layer.shape))
            if layer.neuron is not None:
                assert trace.output is not None
                output = as_array(expected.output[layer.name], layer.output_shape)
                assert_array_equal(trace.output[:, index], output)


@pytest.mark.parametrize("seed", range(60))
def test_random_network_equals_the_reference(seed: int) -> None:
    assert_equals_reference(random_network(seed))


@pytest.mark.parametrize("capacity", range(1, 32))
def test_every_capacity_equals_the_reference(capacity: int) -> None:
    assert_equals_reference(random_network(1000 + capacity, capacity=capacity, layers=2), images=1)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("timesteps", [1, 2, 5])
def test_static_and_temporal_inputs_equal_the_reference(static: bool, timesteps: int) -> None:
    network = random_network(2000 + timesteps, static=static, timesteps=timesteps)
    assert_equals_reference(network)


def test_sums_that_need_float64_and_int64_equal_the_reference() -> None:
    found = 0
    for seed in range(3000, 3100):
        network = random_network(seed, weight_bits=16, static=True)
        plans = exact.plan(network)
        doubles = any(path.matrix.dtype == np.float64 for plan in plans for path in plan.paths)
        if doubles and any(plan.dtype == np.int64 for plan in plans[:-1]):
            assert_equals_reference(network, images=1)
            found += 1
    assert found >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10_000, 11_000))
def test_many_random_networks_equal_the_reference(seed: int) -> None:
    assert_equals_reference(random_network(seed))


def one_layer(
    weight: object = ((2,),),
    *,
    timesteps: int = 3,
    theta: int = 10,
    reset: int = 10,
    bias: int = 0,
    capacity: int = 3,
    decay: tuple[int, int] = (1, 1),
    exponent: int = 0,
    fraction_bits: int = 0,
) -> Network:
    """One input pixel, one neuron, one logit that reads the neuron's level."""
    codes = np.asarray(weight).reshape(1, 1, 1, 1)
    neuron = Neuron(
        capacity=capacity,
        theta=np.array([theta]),
        reset=np.array([reset]),
        decay=decay[0],
        decay_bits=decay[1],
    )
    hidden = Layer(
        name="hidden",
        shape=(1, 1, 1),
        paths=(Path(source=INPUT, weight=codes, exponent=exponent),),
        bias=np.array([bias]),
        fraction_bits=fraction_bits,
        neuron=neuron,
    )
    logits = Layer(
        name="logits",
        shape=(1, 1, 1),
        paths=(Path(source="hidden", weight=np.ones((1, 1, 1, 1), np.int64)),),
        bias=np.array([7]),
        fraction_bits=1,
        neuron=None,
    )
    return Network(
        name="one",
        input=Input(shape=(1, 1, 1), static=True, bits=8),
        timesteps=timesteps,
        weight_bits=16,
        layers=(hidden, logits),
    )


def run_pixel(network: Network, pixel: int) -> dict[str, Trace]:
    raw = np.full((1, 1, 1, 1), pixel, np.uint8)
    return dict(golden.run(network, raw, keep="all").traces)


def flat(array: object) -> list[int]:
    return np.asarray(array).ravel().tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_layer_on_the_traces_of_its_sources_has_the_trace_that_it_has_in_the_network(
    seed: int,
) -> None:
    network = random_network(seed)
    traces = golden.run(network, random_images(network, 3), keep="levels").traces
    for layer in network.layers:
        alone, expected = golden.run_layer(network, layer, traces), traces[layer.name]
        for name in ("acc", "u", "v", "levels", "output"):
            assert_array_equal(getattr(alone, name), getattr(expected, name), strict=True)


def test_what_is_emitted_for_one_image_is_the_output_of_its_layers_of_neurons() -> None:
    network = random_network(4)
    result = golden.run(network, random_images(network, 3), keep="levels")
    emitted = result.emitted(1)
    assert list(emitted) == [layer.name for layer in network.layers[:-1]]
    for name, levels in emitted.items():
        output = result.traces[name].output
        assert output is not None
        assert_array_equal(levels, output[:, 1], strict=True)


def test_one_neuron_by_hand() -> None:
    traces = run_pixel(one_layer(bias=1), pixel=6)
    hidden = traces["hidden"]
    assert flat(hidden.acc) == [12]
    assert flat(hidden.u) == [13, 14, 15]  # 13; 13 + (13-10)//2; 13 + (14-10)//2
    assert flat(hidden.levels) == [1, 1, 1]
    assert flat(hidden.v) == [3, 4, 5]
    assert flat(traces["logits"].u) == [9, 18, 27]  # 1 * 2**1 + 7 each timestep


def test_a_membrane_exactly_at_the_step_fires() -> None:
    assert flat(run_pixel(one_layer(timesteps=1), pixel=5)["hidden"].levels) == [1]
    assert flat(run_pixel(one_layer(timesteps=1, theta=11), pixel=5)["hidden"].levels) == [0]


def test_levels_saturate_but_the_membrane_does_not() -> None:
    hidden = run_pixel(one_layer(), pixel=255)["hidden"]
    assert flat(hidden.levels) == [3, 3, 3]
    assert flat(hidden.u) == [510, 760, 885]
    assert flat(hidden.v) == [500, 750, 875]


def test_the_decay_of_a_negative_membrane_rounds_down() -> None:
    hidden = run_pixel(one_layer(weight=-3), pixel=1)["hidden"]
    assert flat(hidden.u) == [-3, -5, -6]  # floor(-3/2) = -2, floor(-5/2) = -3
    assert flat(hidden.levels) == [0, 0, 0]


def test_the_exponent_and_the_fraction_scale_the_current() -> None:
    hidden = run_pixel(one_layer(timesteps=1, exponent=2, fraction_bits=3, bias=-1), pixel=1)
    assert flat(hidden["hidden"].acc) == [8]
    assert flat(hidden["hidden"].u) == [63]


def test_a_tie_goes_to_the_first_class() -> None:
    network = random_network(5, static=True)
    readout = network.layers[-1]
    silent = replace(
        readout,
        paths=tuple(replace(p, weight=np.zeros_like(p.weight)) for p in readout.paths),
        bias=np.zeros(readout.shape[0], np.int64),
    )
    tied = replace(network, layers=(*network.layers[:-1], silent))
    assert golden.predict(tied, random_images(tied, 3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(8))
def test_the_batch_size_does_not_matter(seed: int) -> None:
    network = random_network(seed)
    raw = random_images(network, 7)
    whole = golden.run(network, raw, keep="all")
    parts = golden.run(network, raw, keep="all", batch=3)
    assert_array_equal(whole.logits, parts.logits)
    assert_array_equal(whole.classes, golden.predict(network, raw, batch=1))
    for name, trace in whole.traces.items():
        for field in ("acc", "u", "v", "levels", "output"):
            a, b = getattr(trace, field), getattr(parts.traces[name], field)
            assert (a is None) == (b is None)
            if a is not None:
                assert_array_equal(a, b)


def test_the_block_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(11)
    raw = random_images(network, 5)
    whole = golden.run(network, raw, keep="all")
    monkeypatch.setattr(exact, "BLOCK_BYTES", 1)
    monkeypatch.setattr(exact, "BLOCK_ROWS", 1)
    assert [len(list(plan.blocks(5))) for plan in exact.plan(network)] == [5] * len(network.layers)
    single = golden.run(network, raw, keep="all")
    assert_array_equal(whole.logits, single.logits)
    for name, trace in whole.traces.items():
        for field in ("acc", "u", "v", "levels", "output"):
            if getattr(trace, field) is not None:
                assert_array_equal(getattr(trace, field), getattr(single.traces[name], field))


@pytest.mark.parametrize("seed", range(8))
def test_the_number_of_threads_does_not_matter(seed: int) -> None:
    network = random_network(seed)
    raw = random_images(network, 7)
    with threadpool_limits(1, user_api="blas"):
        alone = golden.run(network, raw, keep="all")
    with threadpool_limits(3, user_api="blas"):
        shared = golden.run(network, raw, keep="all")
        few = golden.run(network, raw[:2], keep="all")  # fewer images than threads
    assert_array_equal(few.logits, alone.logits[:2])
    assert_array_equal(shared.logits, alone.logits)
    for name, trace in alone.traces.items():
        for field in ("acc", "u", "v", "levels", "output"):
            if getattr(trace, field) is not None:
                assert_array_equal(getattr(trace, field), getattr(shared.traces[name], field))


def test_int32_and_int64_membranes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(21, static=True)
    raw = random_images(network, 4)
    narrow = golden.run(network, raw)
    assert {plan.dtype.name for plan in exact.plan(network)} == {"int32", "int64"}
    monkeypatch.setattr(exact, "_membrane_dtype", lambda *_: np.dtype(np.int64))
    assert {plan.dtype.name for plan in exact.plan(network)} == {"int64"}
    assert_array_equal(narrow.logits, golden.run(network, raw).logits)


def test_no_image_gives_no_logits() -> None:
    network = random_network(2)
    result = golden.run(network, random_images(network, 0), keep="all")
    assert result.logits.shape == (0, network.classes)
    assert result.traces[INPUT].levels is not None


def test_logits_of_several_positions_are_in_channel_order() -> None:
    network = next(
        network
        for network in map(random_network, range(100))
        if network.layers[-1].shape[1] > 1 and network.layers[-1].shape[0] > 1
    )
    raw = random_images(network, 1)
    u = golden.run(network, raw, keep="all").traces["logits"].u
    assert u is not None
    assert_array_equal(golden.run(network, raw).logits[0], u[-1, 0].ravel())


def test_levels_alone_are_kept_when_asked_for() -> None:
    network = random_network(4)
    raw = random_images(network, 3)
    full, levels = (golden.run(network, raw, keep=keep) for keep in ("all", "levels"))
    for layer in network.layers[:-1]:
        trace = levels.traces[layer.name]
        assert trace.acc is trace.u is trace.v is None
        assert trace.levels is not None
        assert_array_equal(trace.levels, full.traces[layer.name].levels)
    assert golden.run(network, raw).traces == {}


def test_the_observer_sees_every_layer_of_every_batch_in_order() -> None:
    network = random_network(4)
    seen: list[tuple[str, int]] = []

    def observe(trace: Trace) -> None:
        array = trace.u if trace.levels is None else trace.levels
        assert array is not None
        seen.append((trace.name, array.shape[1]))

    golden.run(network, random_images(network, 5), batch=3, observe=observe)
    names = [INPUT, *(layer.name for layer in network.layers)]
    assert seen == [(name, 3) for name in names] + [(name, 2) for name in names]


def test_a_temporal_input_with_the_wrong_number_of_frames_is_refused() -> None:
    network = random_network(2, static=False, timesteps=3)
    raw = np.zeros((2, 4, *network.input.shape), np.uint8)
    message = "raw input must have 3 frames per image, as many as the network has timesteps, not 4"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        golden.run(network, raw)


@pytest.mark.parametrize("seed", range(8))
def test_an_image_that_is_taken_in_parts_gives_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = random_network(seed)
    raw = random_images(network, 3)
    whole = golden.run(network, raw, keep="all")
    monkeypatch.setattr(exact, "MOST_BYTES", 0)
    monkeypatch.setattr(exact, "BLOCK_BYTES", 64)
    parts = golden.run(network, raw, keep="all")
    assert (parts.logits == whole.logits).all()
    for name, trace in whole.traces.items():
        for field in ("acc", "u", "v", "levels", "output"):
            wanted = getattr(trace, field)
            assert wanted is None or (getattr(parts.traces[name], field) == wanted).all()


def test_sums_beyond_float64_are_refused() -> None:
    network = one_layer()
    hidden = network.layers[0]
    wide = Path(source=INPUT, weight=np.full((1, 1, 1, 1), 3))
    # an identity may be as wide as a parameter, but no membrane holds it
    identity = Path(source=INPUT, weight=np.array([1 << 53]), exponent=10)
    beyond = replace(hidden, paths=(wide, identity))
    network = replace(network, layers=(beyond, network.layers[1]))
    message = "layer 'hidden': its membranes may not fit 64 bits"
    with pytest.raises(OverflowError, match=f"^{re.escape(message)}$"):
        golden.run(network, np.zeros((1, 1, 1, 1), np.uint8))


def test_a_path_that_no_float_sums_exactly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "path_bound", lambda *_: 1 << 53)
    message = (
        "layer 'hidden', path from 'input': a sum may reach 9007199254740992, "
        "beyond the 2**53 that float64 holds exactly"
    )
    with pytest.raises(OverflowError, match=f"^{re.escape(message)}$"):
        exact.plan(one_layer(timesteps=1))


@pytest.mark.parametrize(
    ("bound", "dtype"), [((1 << 24) - 1, "float32"), (1 << 24, "float64"), (1 << 40, "float64")]
)
def test_the_matrix_type_follows_the_proven_bound(
    bound: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "path_bound", lambda *_: bound)
    assert exact.plan(one_layer())[0].paths[0].matrix.dtype == dtype


def test_sums_near_the_float32_limit_are_exact() -> None:
    """4096 weights of 127 on pixels of 31: 16,125,952, just below 2**24."""
    weight = np.full((2, 4096, 1, 1), 127)
    weight[1, ::2] = -127
    weight[1, 0] = -126
    readout = Layer(
        name="logits",
        shape=(2, 1, 1),
        paths=(Path(source=INPUT, weight=weight),),
        bias=np.zeros(2, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    network = Network(
        name="limit",
        input=Input(shape=(4096, 1, 1), static=True, bits=5),
        timesteps=1,
        weight_bits=8,
        layers=(readout,),
    )
    assert exact.plan(network)[0].paths[0].matrix.dtype == np.float32
    raw = np.full((1, 4096, 1, 1), 31, np.uint8)
    assert golden.run(network, raw).logits.tolist() == [[4096 * 127 * 31, 31]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": "some"}, "keep must be 'logits', 'levels' or 'all', not 'some'"),
        ({"batch": 0}, "batch must be at least 1, not 0"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: dict[str, object], message: str) -> None:
    network = random_network(0)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        golden.run(network, random_images(network, 1), **arguments)  # pyright: ignore[reportArgumentType]
