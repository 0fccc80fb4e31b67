from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.compiler.patches import Patches, rewrite
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Pair, Path, Window
from lbq_hw.sim.drawn.networks import random_images, random_network

WIDE = CoreConfig(lanes=16, word=256)


def network(*paths: Path, source: Input, timesteps: int = 2) -> Network:
    """A layer of these paths and a readout."""
    shape = paths[0].output_shape(source.tensor_shape)
    random = np.random.default_rng(5)
    first = Layer(
        name="first",
        shape=shape,
        paths=paths,
        bias=random.integers(-20, 20, shape[0]),
        fraction_bits=1,
        neuron=Neuron(
            capacity=7,
            theta=random.integers(20, 60, shape[0]),
            reset=random.integers(20, 60, shape[0]),
            decay=3,
            decay_bits=2,
        ),
    )
    last = Layer(
        name="logits",
        shape=(3, 1, 1),
        paths=(Path(source="first", weight=random.integers(-7, 8, (3, *shape))),),
        bias=np.zeros(3, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="gathered", input=source, timesteps=timesteps, weight_bits=4, layers=(first, last)
    )


def conv(*shape: int, stride: Pair = (1, 1), padding: Pair = (0, 0)) -> Path:
    weight = np.random.default_rng(6).integers(-7, 8, shape)
    return Path(source=INPUT, weight=weight, stride=stride, padding=padding)


def assert_same(original: Network, config: CoreConfig) -> Patches:
    """Gathered or not, the logits and the levels of every layer are the same."""
    [form] = rewrite(original, config)
    patches = form.patches
    assert patches is not None
    raw = random_images(original, 3)
    levels = original.input.quantize(raw)
    gathered = np.stack([patches.gather(levels[:, i]) for i in range(3)], axis=1)
    frames = gathered[0] if original.input.static else gathered.swapaxes(0, 1)
    wanted = golden.run(original, raw, keep="levels")
    found = golden.run(form.network, frames, keep="levels")
    assert np.array_equal(found.logits, wanted.logits)
    for layer in original.layers[:-1]:
        assert np.array_equal(found.traces[layer.name].output, wanted.traces[layer.name].output)
    return patches


def assert_plain(original: Network, config: CoreConfig) -> None:
    """The network is the only form of itself."""
    [form] = rewrite(original, config)
    assert form.network is form.source is original
    assert form.patches is None


@pytest.mark.parametrize("seed", range(40))
def test_windows_of_any_kind_give_the_same_when_they_are_gathered(seed: int) -> None:
    random = np.random.default_rng(seed)
    bits, border = int(random.integers(1, 9)), int(random.integers(0, 3))
    channels, height, width = (int(size) for size in random.integers((1, 3, 3), (4, 8, 8)))
    source = Input(
        shape=(channels, height, width),
        static=bool(random.integers(2)),
        bits=bits,
        shift=int(random.integers(0, 9 - bits)) % 8,
        border=border,
        border_value=tuple(random.integers(0, 1 << bits, channels * (border > 0)).tolist()),
    )
    kernel = [int(size) for size in random.integers(1, 5, 2)]
    kernel[0] += kernel == [1, 1]
    padding = (int(random.integers(1, 3)), int(random.integers(1, 3)))
    stride = (int(random.integers(1, 4)), int(random.integers(1, 4)))
    outputs = int(random.integers(1, 6))
    path = conv(outputs, channels, *kernel, stride=stride, padding=padding)
    patches = assert_same(network(path, source=source), WIDE)
    taps = channels * kernel[0] * kernel[1]
    assert patches.kernel == tuple(kernel)
    assert taps <= patches.channels < 2 * taps
    assert patches.channels & (patches.channels - 1) == 0


def test_random_networks_give_the_same_where_they_are_gathered() -> None:
    drawn = [random_network(seed) for seed in range(100)]
    gathered = [original for original in drawn if rewrite(original, WIDE)[0].patches is not None]
    assert len(gathered) > 20
    for original in gathered:
        assert_same(original, WIDE)


def test_a_channel_of_a_gathered_pixel_is_a_tap() -> None:
    levels = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(1, 2, 3, 4) + 1
    patches = Patches(kernel=(2, 3), stride=(2, 1), padding=(1, 0), channels=16)
    gathered = patches.gather(levels)
    assert gathered.shape == (1, 16, 2, 2)
    assert gathered.dtype == np.uint8
    padded = np.pad(levels, ((0, 0), (0, 0), (1, 1), (0, 0)))
    wanted = np.zeros_like(gathered)
    for y, x, ky, kx, c in np.ndindex(2, 2, 2, 3, 2):
        wanted[0, (ky * 3 + kx) * 2 + c, y, x] = padded[0, c, 2 * y + ky, x + kx]
    assert np.array_equal(gathered, wanted)


def test_two_paths_with_one_window_are_gathered_together() -> None:
    first = conv(4, 2, 3, 3, padding=(1, 1))
    second = replace(first, weight=-first.weight[:, ::-1], exponent=1)
    source = Input(shape=(2, 5, 5), static=False, bits=3)
    original = network(first, second, source=source)
    assert_same(original, WIDE)
    [form] = rewrite(original, WIDE)
    assert [path.weight.shape for path in form.network.layers[0].paths] == [(4, 32, 1, 1)] * 2


def test_a_program_packs_what_golden_was_given() -> None:
    original = network(
        conv(4, 2, 3, 3, stride=(2, 2)), source=Input(shape=(2, 5, 5), static=True, bits=3)
    )
    program = compile_network(original, smallest_for(original, lanes=8))
    assert program.patches is not None
    raw = random_images(original, 1)
    tensor = program.tensors[INPUT]
    levels = program.patches.gather(original.input.quantize(raw)[:, 0])
    assert tensor.shape == levels.shape[1:] == (32, 2, 2)
    assert np.array_equal(tensor.unpack(program.input_bits(raw[0])), levels)


SOURCE = Input(shape=(2, 5, 5), static=True, bits=3)
SAME = conv(2, 2, 3, 3, padding=(1, 1))


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param((SAME, Path(source=INPUT, weight=np.array([5, 9]))), id="identity"),
        pytest.param((SAME, conv(2, 2, 5, 5, padding=(2, 2))), id="two-kernels"),
        pytest.param(
            (conv(2, 2, 3, 3, stride=(2, 2)), conv(2, 2, 3, 3, stride=(3, 3), padding=(1, 1))),
            id="two-strides-and-paddings",
        ),
        pytest.param((conv(2, 2, 1, 1),), id="1x1"),
        pytest.param((replace(SAME, pool=Window(kernel=(2, 2), stride=(1, 1))),), id="sum-pool"),
    ],
)
def test_input_that_is_read_otherwise_stays_as_it_is(paths: tuple[Path, ...]) -> None:
    original = network(*paths, source=SOURCE)
    assert_plain(original, WIDE)
    assert compile_network(original, smallest_for(original, lanes=8)).patches is None


def test_a_later_layer_that_reads_the_input_otherwise_keeps_it_as_it_is() -> None:
    original = network(SAME, source=SOURCE)
    late = replace(original.layers[0], name="late", paths=(conv(2, 2, 1, 1),))
    readout = replace(
        original.layers[1], paths=(replace(original.layers[1].paths[0], source="late"),)
    )
    original = replace(original, layers=(original.layers[0], late, readout))
    assert_plain(original, WIDE)


def test_a_window_wider_than_a_word_stays_as_it_is() -> None:
    original = network(SAME, source=SOURCE)  # 18 taps: 32 bits
    assert_plain(original, CoreConfig(lanes=16, word=16))
    patches = rewrite(original, CoreConfig(lanes=16, word=32))[0].patches
    assert patches == Patches(kernel=(3, 3), stride=(1, 1), padding=(1, 1), channels=32)
