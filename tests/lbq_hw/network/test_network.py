"""The integer network: what it refuses, what it derives, and the ranges it proves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.network import INPUT, Input, Layer, Network, NetworkError, Neuron, Path, Window
from lbq_hw.sim.drawn.networks import random_images, random_network


def neuron(channels: int = 2, **changes: Any) -> Neuron:
    fields: dict[str, Any] = {
        "capacity": 3,
        "theta": np.full(channels, 4),
        "reset": np.full(channels, 4),
        "decay": 1,
        "decay_bits": 1,
    }
    return Neuron(**fields | changes)


def hidden(**changes: Any) -> Layer:
    fields: dict[str, Any] = {
        "name": "hidden",
        "shape": (2, 4, 4),
        "paths": (Path(source=INPUT, weight=np.ones((2, 1, 3, 3), np.int64), padding=(1, 1)),),
        "bias": np.array([1, -1]),
        "fraction_bits": 2,
        "neuron": neuron(),
    }
    return Layer(**fields | changes)


def readout(**changes: Any) -> Layer:
    fields: dict[str, Any] = {
        "name": "logits",
        "shape": (3, 1, 1),
        "paths": (Path(source="hidden", weight=np.ones((3, 2, 4, 4), np.int64)),),
        "bias": np.zeros(3, np.int64),
        "fraction_bits": 0,
        "neuron": None,
    }
    return Layer(**fields | changes)


def network(*layers: Layer, **changes: Any) -> Network:
    fields: dict[str, Any] = {
        "name": "net",
        "input": Input(shape=(1, 4, 4), static=True, bits=2),
        "timesteps": 2,
        "weight_bits": 4,
        "layers": layers or (hidden(), readout()),
    }
    return Network(**fields | changes)


def conv(source: str = INPUT, shape: tuple[int, ...] = (2, 1, 3, 3), **options: Any) -> Path:
    return Path(source=source, weight=np.ones(shape, np.int64), **options)


def test_a_network_knows_its_sizes() -> None:
    net = network()
    assert net.classes == 3
    assert net.parameters == (18 + 3 * 2) + (96 + 3)
    assert net.source_shape(net.layers[1].paths[0]) == (2, 4, 4)
    assert net.source_capacity(net.layers[0].paths[0]) == 3
    assert net.is_static(net.layers[0])
    assert not net.is_static(net.layers[1])
    assert not replace(net, input=replace(net.input, static=False)).is_static(net.layers[0])


def test_weights_are_stored_narrow_and_read_only() -> None:
    path = Path(source=INPUT, weight=np.array([1, -300]))
    assert path.weight.dtype == np.int16
    with pytest.raises(ValueError, match="read-only"):
        path.weight[0] = 5


def test_weights_are_copied_unless_nobody_can_change_them() -> None:
    own = np.array([1, 2], np.int8)
    for view in (own, own[:]):
        view.flags.writeable = view is own
        path = Path(source=INPUT, weight=view)
        own[0] += 1
        assert path.weight.tolist() == [int(own[0]) - 1, 2]
    own.flags.writeable = False
    assert np.shares_memory(Path(source=INPUT, weight=own).weight, own)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: neuron(to_zero=True),
            "neuron reset must be 0 in all channels where a spike resets to zero",
        ),
        (
            lambda: neuron(floor=np.array([0, 1])),
            "neuron floor must be at most 0, where membranes begin",
        ),
        (
            lambda: hidden(neuron=neuron(floor=np.array([-1]))),
            "layer 'hidden': floor must have 2 entries, not (1,)",
        ),
        (
            lambda: network(hidden(), readout(name="hidden")),
            "layer 'hidden': another layer has this name",
        ),
        (
            lambda: network(hidden(name=INPUT), readout()),
            "layer 'input': another layer has this name",
        ),
        (
            lambda: network(hidden()),
            "layer 'hidden': the last layer, and only it, must have no neuron",
        ),
        (
            lambda: network(hidden(neuron=None), readout()),
            "layer 'hidden': the last layer, and only it, must have no neuron",
        ),
        (
            lambda: network(hidden(paths=(conv("logits"),)), readout()),
            "layer 'hidden': reads 'logits', which no earlier layer makes",
        ),
        (
            lambda: network(hidden(paths=(conv(shape=(2, 5, 3, 3)),)), readout()),
            "layer 'hidden': weight from 'input' needs 5 channels, the source has 1",
        ),
        (
            lambda: network(hidden(paths=(conv(),)), readout()),
            "layer 'hidden': the path from 'input' yields (2, 2, 2), the layer is (2, 4, 4)",
        ),
        (
            lambda: network(
                hidden(paths=(Path(source=INPUT, weight=np.array([1, 1])),)), readout()
            ),
            "layer 'hidden': identity from 'input' needs 2 channels, the source has 1",
        ),
        (
            lambda: network(weight_bits=2, layers=(hidden(paths=(heavy(),)), readout())),
            "layer 'hidden': weights from 'input' exceed the codes -1..1",
        ),
        (
            lambda: network(timesteps=0),
            "timesteps must be an integer of 1..4096, not 0",
        ),
        (lambda: network(layers=()), "a network needs at least one layer"),
        (lambda: hidden(paths=()), "layer 'hidden': needs at least one path"),
        (
            lambda: hidden(fraction_bits=17),
            "layer 'hidden': fraction_bits must be 0..16, not 17",
        ),
        (
            lambda: readout(pool=Window(kernel=(1, 1), stride=(1, 1))),
            "layer 'logits': a readout has no max-pool",
        ),
        (
            lambda: hidden(bias=np.zeros(3, np.int64)),
            "layer 'hidden': bias must have 2 entries, not (3,)",
        ),
        (
            lambda: hidden(neuron=neuron(3)),
            "layer 'hidden': theta must have 2 entries, not (3,)",
        ),
        (
            lambda: hidden(bias=np.zeros(2)),
            "layer 'hidden': bias must be integers, not float64",
        ),
        (lambda: neuron(capacity=32), "neuron capacity must be 1..31, not 32"),
        (lambda: neuron(theta=np.array([0, 1])), "neuron theta must be at least 1"),
        (
            lambda: neuron(decay=3, decay_bits=1),
            "neuron decay must be 0..2**decay_bits, not 3/2**1",
        ),
        (
            lambda: neuron(theta=np.ones((2, 2), np.int64)),
            "neuron theta must be a vector, not of shape (2, 2)",
        ),
        (
            lambda: Path(source="a", weight=np.ones((1, 1, 1, 1))),
            "path from 'a': weight must be signed integers, not float64",
        ),
        (
            lambda: conv("a", (2, 2)),
            "path from 'a': weight must be (C,) or (out, in, kh, kw)",
        ),
        (
            lambda: conv("a", stride=(0, 1)),
            "path from 'a': stride must be 1..4096, not (0, 1)",
        ),
        (
            lambda: conv("a", padding=(-1, 0)),
            "path from 'a': padding must be 0..4096, not (-1, 0)",
        ),
        (lambda: conv("a", exponent=16), "path from 'a': exponent must be 0..15, not 16"),
        (
            lambda: conv("a", (2,), stride=(2, 2)),
            "path from 'a': an identity has neither stride nor padding",
        ),
        (lambda: conv("a", (0,)), "path from 'a': weight must not be empty"),
        (
            lambda: Window(kernel=(2, 0), stride=(1, 1)),
            "window kernel must be 1..4096, not (2, 0)",
        ),
        (
            lambda: Window(kernel=(2, 2), stride=(1, 0)),
            "window stride must be 1..4096, not (1, 0)",
        ),
        (
            lambda: Window(kernel=(2, 2), stride=(1, 1), padding=(2, 0)),
            "window padding must be smaller than its kernel, not (2, 0)",
        ),
        (
            lambda: Input(shape=(1, 1, 1), static=True, bits=9),
            "input bits must be between 1 and 8, not 9",
        ),
        (
            lambda: Input(shape=(1, 1, 1), static=True, bits=1, shift=8),
            "input shift must be between 0 and 7, not 8",
        ),
        (
            lambda: Input(shape=(1, 1, 1), static=True, bits=1, border=-1),
            "input border must be 0..4096, not -1",
        ),
        (
            lambda: Input(shape=(1, 1, 1), static=True, bits=1, border=1, border_value=(2,)),
            "input border_value must be one level 0..1 per channel, and empty without a border, "
            "not (2,)",
        ),
        (
            lambda: network(
                hidden(paths=(conv(padding=(4, 4), pool=Window(kernel=(5, 5), stride=(1, 1))),)),
                readout(),
            ),
            "layer 'hidden': pooling 'input' leaves (1, 0, 0), which is empty",
        ),
        (
            lambda: network(
                hidden(
                    shape=(2, 0, 0),
                    paths=(conv(shape=(2, 1, 5, 5)),),
                    pool=Window(kernel=(2, 2), stride=(1, 1), padding=(1, 1)),
                ),
                readout(),
            ),
            "layer 'hidden': height and width must be 1..4096, not (2, 0, 0)",
        ),
        (
            lambda: readout(scale=np.array([1.0, 1.0, 2.0])),
            "layer 'logits': a readout must have one scale, since its classes compare",
        ),
        (
            lambda: network(timesteps=True),
            "timesteps must be an integer of 1..4096, not True",
        ),
    ],
)
def test_a_contradiction_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(NetworkError, match=f"^{re.escape(message)}$"):
        make()


def heavy() -> Path:
    return Path(source=INPUT, weight=np.full((2, 1, 3, 3), 2), padding=(1, 1))


def test_pixels_are_shifted_clipped_and_framed() -> None:
    source = Input(shape=(2, 1, 2), static=True, bits=3, shift=1, border=1, border_value=(5, 6))
    raw = np.array([[[[3, 255]], [[0, 14]]]], np.uint8)
    levels = source.quantize(raw)
    assert levels.dtype == np.uint8
    assert levels[0, 0, 0].tolist() == [[5, 5, 5, 5], [5, 1, 7, 5], [5, 5, 5, 5]]
    assert levels[0, 0, 1].tolist() == [[6, 6, 6, 6], [6, 0, 7, 6], [6, 6, 6, 6]]


def test_frames_become_time_major() -> None:
    source = Input(shape=(1, 1, 1), static=False, bits=8)
    raw = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1, 1)
    assert source.quantize(raw).reshape(3, 2).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_raw_input_of_another_kind_or_shape_is_refused() -> None:
    source = Input(shape=(1, 2, 2), static=True, bits=8)
    with pytest.raises(TypeError, match=r"^raw input must be uint8, not float64$"):
        source.quantize(np.zeros((1, 1, 2, 2)))  # pyright: ignore[reportArgumentType]
    message = "raw input must be (n, C, H, W) with (C, H, W) = (1, 2, 2), not (1, 2, 2)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        source.quantize(np.zeros((1, 2, 2), np.uint8))
    message = "raw input must be (n, T, C, H, W) with (C, H, W) = (1, 2, 2), not (3, 1, 2, 2)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(source, static=False).quantize(np.zeros((3, 1, 2, 2), np.uint8))


@pytest.mark.parametrize("seed", range(60))
def test_no_random_network_leaves_its_proven_ranges(seed: int) -> None:
    net = random_network(seed)
    traces = golden.run(net, random_images(net, 16), keep="all").traces
    for layer in net.layers:
        bounds, trace = net.bounds(layer), traces[layer.name]
        assert within(trace.acc, bounds.acc_low, bounds.acc_high)
        for values in (trace.u, trace.v):
            assert within(values, bounds.u_low, bounds.u_high)


def within(values: Any, low: Any, high: Any) -> bool:
    if values is None:
        return True
    channels = np.moveaxis(values, 2, -1)
    return bool(np.all(low <= channels) and np.all(channels <= high))


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("to_zero", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_proven_ranges_hold_for_every_sequence_of_two_inputs(
    seed: int, to_zero: bool, clamped: bool
) -> None:
    """Two pixels of 2 bits, one neuron, three timesteps: all 4096 recordings are tried."""
    random = np.random.default_rng(seed)
    cell = Neuron(
        capacity=int(random.integers(1, 4)),
        theta=random.integers(1, 20, 1),
        reset=random.integers(-5, 25, 1),
        decay=int(random.integers(0, 5)),
        decay_bits=2,
    )
    if to_zero:
        cell = replace(cell, to_zero=True, reset=0 * cell.reset)
    if clamped:
        cell = replace(cell, floor=random.integers(-12, 1, 1))
    weight = random.integers(-7, 8, (1, 1, 1, 2))
    layer = Layer(
        name="hidden",
        shape=(1, 1, 1),
        paths=(Path(source=INPUT, weight=weight, exponent=int(random.integers(0, 3))),),
        bias=random.integers(-9, 10, 1),
        fraction_bits=int(random.integers(0, 3)),
        neuron=cell,
    )
    last = Layer(
        name="logits",
        shape=(1, 1, 1),
        paths=(Path(source="hidden", weight=np.ones((1, 1, 1, 1), np.int64)),),
        bias=np.zeros(1, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    source = Input(shape=(1, 1, 2), static=False, bits=2)
    net = Network(name="n", input=source, timesteps=3, weight_bits=4, layers=(layer, last))
    raw = np.array(list(itertools.product(range(4), repeat=6)), np.uint8).reshape(-1, 3, 1, 1, 2)
    trace = golden.run(net, raw, keep="all").traces["hidden"]
    bounds = net.bounds(layer)
    assert trace.acc is not None
    assert (trace.acc.min(), trace.acc.max()) == (bounds.acc_low[0], bounds.acc_high[0])
    assert within(trace.u, bounds.u_low, bounds.u_high)
    assert within(trace.v, bounds.u_low, bounds.u_high)


def test_widths_of_a_layer_by_hand() -> None:
    """Nine weights of 1 on pixels of up to 3, and a fraction of two bits."""
    bounds = network().bounds(hidden())
    assert (bounds.acc_low.tolist(), bounds.acc_high.tolist()) == ([0, 0], [27, 27])
    assert bounds.acc_bits == 6
    # 27 * 4 + 1 = 109, then floor((109 - 4) / 2) more; at least -1, then floor(-1 / 2) more
    assert bounds.u_high.tolist() == [161, 158]
    assert bounds.u_low.tolist() == [0, -2]
    assert bounds.membrane_bits == 9


def test_bounds_that_would_wrap_are_refused() -> None:
    wide = Path(source=INPUT, weight=np.array([1 << 50]), exponent=13)
    layer = hidden(shape=(1, 4, 4), paths=(wide,), bias=np.array([0]), neuron=neuron(1))
    last = readout(paths=(conv("hidden", (3, 1, 4, 4)),))
    with pytest.raises(OverflowError, match=r"^layer 'hidden': its sums may pass 62 bits$"):
        network(layer, last).bounds(layer)


def test_a_leak_that_would_wrap_is_refused() -> None:
    """Membranes of 60 bits fit, but not once they are multiplied by 65535 for the leak."""
    layer = hidden(bias=np.full(2, 1 << 46), neuron=neuron(decay=65535, decay_bits=16))
    with pytest.raises(OverflowError, match=r"^layer 'hidden': its sums may pass 62 bits$"):
        network(layer, readout()).bounds(layer)
    message = "layer 'hidden': its sums may pass 62 bits"
    with pytest.raises(NetworkError, match=f"^{re.escape(message)}$"):
        network(layer, readout()).check_ranges()


def test_a_convolution_that_no_float_sums_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "path_bound", lambda *_: 1 << 53)
    message = (
        "layer 'hidden': a sum may reach 9007199254740992, beyond the 2**53 that float64 holds "
        "exactly"
    )
    with pytest.raises(NetworkError, match=f"^{re.escape(message)}$"):
        network().check_ranges()


@pytest.mark.parametrize("decay", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("reset", [-3, 0, 5, 40])
def test_ranges_of_many_timesteps_are_those_of_python_s_integers(decay: int, reset: int) -> None:
    """Timestep by timestep, where the proof stops once nothing changes any more."""
    cell = neuron(theta=np.array([9, 30]), reset=np.full(2, reset), decay=decay, decay_bits=2)
    layer = hidden(neuron=cell, bias=np.array([3, -60]))
    net = network(layer, readout(), timesteps=300)
    bounds = net.bounds(layer)
    for channel, theta in enumerate((9, 30)):
        low = high = 0
        lows, highs = [], []
        for _ in range(300):
            bias = int(layer.bias[channel])
            below, above = (decay * low >> 2) + bias, (decay * high >> 2) + 27 * 4 + bias
            low, high = below, above
            if above >= theta:
                low = min(below, max(below, theta) - reset)
                high = max(min(above, theta - 1), above - reset)
            lows += [below, low]
            highs += [above, high]
        assert (bounds.u_low[channel], bounds.u_high[channel]) == (min(lows), max(highs))


@pytest.mark.parametrize("decay", [0, 1, 2, 3, 4])
def test_ranges_of_a_reset_to_zero_are_those_of_python_s_integers(decay: int) -> None:
    cell = neuron(
        theta=np.array([9, 300]), reset=np.zeros(2, int), decay=decay, decay_bits=2, to_zero=True
    )
    layer = hidden(neuron=cell, bias=np.array([3, -60]))
    bounds = network(layer, readout(), timesteps=300).bounds(layer)
    for channel, theta in enumerate((9, 300)):
        low = high = 0
        lows, highs = [], []
        for _ in range(300):
            bias = int(layer.bias[channel])
            low, high = (decay * low >> 2) + bias, (decay * high >> 2) + 27 * 4 + bias
            highs.append(high)
            if high >= theta:
                low, high = min(low, 0), theta - 1
            lows.append(low)
        assert (bounds.u_low[channel], bounds.u_high[channel]) == (min(lows), max(highs))


@pytest.mark.parametrize("reset", [-3, 5, 400])
def test_ranges_of_a_floor_are_those_of_python_s_integers(reset: int) -> None:
    """The difference before the clamp counts too, since a core compares it with the floor."""
    cell = neuron(
        theta=np.array([9, 30]),
        reset=np.full(2, reset),
        decay=3,
        decay_bits=2,
        floor=np.array([-20, 0]),
    )
    layer = hidden(neuron=cell, bias=np.array([-50, -60]))
    bounds = network(layer, readout(), timesteps=300).bounds(layer)
    for channel, (theta, floor) in enumerate(((9, -20), (30, 0))):
        low = high = 0
        lows, highs = [], []
        for _ in range(300):
            bias = int(layer.bias[channel])
            low, high = (3 * low >> 2) + bias, (3 * high >> 2) + 27 * 4 + bias
            lows.append(low)
            highs.append(high)
            if high >= theta:
                low = min(low, max(low, theta) - reset)
                high = max(min(high, theta - 1), high - reset)
            lows.append(low)
            highs.append(high)
            low, high = max(low, floor), max(high, floor)
        assert (bounds.u_low[channel], bounds.u_high[channel]) == (min(lows), max(highs))


def test_a_floor_makes_the_membranes_of_many_timesteps_narrower() -> None:
    cell = neuron(decay=1, decay_bits=0)
    free = hidden(neuron=cell, bias=np.array([-70, -80]))
    clamped = replace(free, neuron=replace(cell, floor=np.array([-20, -1])))
    widths = [
        network(layer, readout(), timesteps=100).bounds(layer).membrane_bits
        for layer in (free, clamped)
    ]
    assert widths == [14, 13]  # 100 * -80; what is summed up above 0 stays


def test_what_was_proven_is_not_proven_again() -> None:
    net = network()
    first = net.bounds(net.layers[0])
    assert net.bounds(net.layers[0]) is first
    other = replace(net.layers[0], bias=np.array([100, 100]))  # of the same name
    assert net.bounds(other).u_high.tolist() != first.u_high.tolist()


def test_the_bound_of_a_path_counts_its_pool() -> None:
    net = network()
    assert net.path_bound(net.layers[0].paths[0]) == 27
    pool = Window(kernel=(2, 2), stride=(2, 2))
    pooled = conv("hidden", (3, 2, 2, 2), pool=pool)
    net = network(hidden(), readout(paths=(pooled,)))
    assert net.path_bound(net.layers[1].paths[0]) == 8 * 4 * 3
