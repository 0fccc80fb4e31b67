"""The code in the documentation runs and does what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from lbq_hw import file, golden, numeric, zoo
from lbq_hw.network import HeldOut, Input, Layer, Network, Neuron, Path, Window, limits, manifest
from lbq_hw.sim.drawn.networks import random_network

FORMAT = FilePath(__file__).parents[1] / "docs" / "lbq-format.md"


@pytest.fixture(scope="module")
def documented() -> dict[str, Any]:
    """What the Python blocks of the format's page define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", FORMAT.read_text("utf-8"), re.M | re.S):
        exec(block, names)
    return names


def network(*, static: bool, to_zero: bool = False, floor: bool = False) -> Network:
    """Every feature of the format, with weights that make all levels occur."""
    rng = np.random.default_rng(3)
    codes = [rng.integers(-7, 8, shape) for shape in ((4, 2, 3, 3), (4, 4, 3, 1), (3, 4, 1, 1))]
    spiking = {
        "bias": rng.integers(-40, 40, 4),
        "fraction_bits": 3,
        "neuron": Neuron(
            capacity=5,
            theta=rng.integers(60, 90, 4),
            reset=rng.integers(60, 90, 4) * (not to_zero),
            decay=3,
            decay_bits=2,
            to_zero=to_zero,
            floor=-rng.integers(0, 40, 4) if floor else None,
        ),
    }
    stem = Path(source="input", weight=codes[0], stride=(1, 2), padding=(1, 0))
    first = Layer(
        name="stem",
        shape=(4, 8, 4),
        paths=(stem,),
        pool=Window(kernel=(3, 2), stride=(2, 1), padding=(1, 0)),
        scale=np.array([0.5, 0.25, 0.1, 1.0]),
        gamma=0.3,
        **spiking,
    )
    second = Layer(
        name="block",
        shape=first.output_shape,
        paths=(
            Path(source="stem", weight=codes[1], padding=(1, 0), exponent=1),
            Path(source="stem", weight=np.array([300, -5, 9, 14])),
        ),
        **spiking,
    )
    average = Window(kernel=second.shape[1:], stride=(1, 1))
    readout = Layer(
        name="fc",
        shape=(3, 1, 1),
        paths=(Path(source="block", weight=codes[2], pool=average),),
        bias=np.array([3, -1, 0]),
        fraction_bits=1,
        neuron=None,
    )
    border = Input(shape=(2, 6, 7), static=static, bits=4, shift=3, border=1, border_value=(7, 3))
    return Network(
        name="documented",
        input=border,
        timesteps=3,
        weight_bits=4,
        layers=(first, second, readout),
        meta={"note": "süß"},
    )


def test_the_documented_reader_finds_every_tensor_and_the_manifest(
    documented: dict[str, Any], tmp_path: FilePath
) -> None:
    saved = network(static=True)
    file.save(saved, tmp_path / "net.lbq")
    manifest, tensors = documented["read_lbq"](tmp_path / "net.lbq")
    expected: dict[str, Any] = {"stem/scale": saved.layers[0].scale}
    for layer in saved.layers:
        expected[f"{layer.name}/bias"] = layer.bias
        for index, path in enumerate(layer.paths):
            expected[f"{layer.name}/path{index}/weight"] = path.weight
        if layer.neuron is not None:
            expected[f"{layer.name}/theta"] = layer.neuron.theta
            expected[f"{layer.name}/reset"] = layer.neuron.reset
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, expected[name])
        assert tensor.shape == expected[name].shape
    assert manifest["name"] == "documented"
    assert manifest["meta"] == {"note": "süß"}
    assert [layer["name"] for layer in manifest["layers"]] == ["stem", "block", "fc"]


def test_the_documented_reader_takes_about_twenty_lines() -> None:
    block = FORMAT.read_text("utf-8").split("```python\n")[1].split("```")[0]
    assert sum(bool(line.strip()) for line in block.splitlines()) <= 22


def test_the_documented_reader_shows_what_a_user_means(
    documented: dict[str, Any], tmp_path: FilePath
) -> None:
    said = {
        "class_names": ("cat", "dog", "süß"),
        "held_out": HeldOut(data=64 * "0", count=9, indices=(1, 8)),
    }
    plain = network(static=True)
    saved = replace(plain, input=replace(plain.input, full_scale=100), **said)
    file.save(saved, tmp_path / "net.lbq")
    manifest, _ = documented["read_lbq"](tmp_path / "net.lbq")
    assert manifest["input"]["full_scale"] == 100
    assert manifest["class_names"] == ["cat", "dog", "süß"]
    assert manifest["held_out"] == {"data": 64 * "0", "count": 9, "indices": [1, 8]}
    assert documented["lbq_digest"](tmp_path / "net.lbq") == file.digest(saved)


def test_the_documented_digest_is_that_of_the_file(
    documented: dict[str, Any], tmp_path: FilePath
) -> None:
    file.save(network(static=True), tmp_path / "net.lbq")
    assert documented["lbq_digest"](tmp_path / "net.lbq") == file.digest(network(static=True))


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_the_documented_reader_and_digest_know_weights_of_every_width(
    documented: dict[str, Any], tmp_path: FilePath, bits: int
) -> None:
    saved = random_network(bits, weight_bits=bits)
    file.save(saved, tmp_path / "net.lbq")
    tensors = documented["read_lbq"](tmp_path / "net.lbq")[1]
    _, expected = manifest.describe(saved)
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, expected[name], strict=True)
    assert documented["lbq_digest"](tmp_path / "net.lbq") == file.digest(saved)


@pytest.mark.parametrize("floor", [False, True], ids=["free", "clamped"])
@pytest.mark.parametrize("to_zero", [False, True], ids=["by subtraction", "to zero"])
@pytest.mark.parametrize("static", [True, False], ids=["static", "temporal"])
def test_the_documented_arithmetic_equals_the_golden_model(
    documented: dict[str, Any], tmp_path: FilePath, static: bool, to_zero: bool, floor: bool
) -> None:
    saved = network(static=static, to_zero=to_zero, floor=floor)
    file.save(saved, tmp_path / "net.lbq")
    manifest, tensors = documented["read_lbq"](tmp_path / "net.lbq")
    shape = (8, 2, 6, 7) if static else (8, 3, 2, 6, 7)
    raw = np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)
    result = golden.run(saved, raw, keep="levels")
    frames = np.repeat(raw[:, None], 3, axis=1) if static else raw
    logits = [documented["run"](manifest, tensors, sample) for sample in frames]
    np.testing.assert_array_equal(logits, result.logits)
    for name in ("stem", "block"):  # else the comparison would show little
        levels = result.traces[name].levels
        assert levels is not None
        assert set(levels.flat) == set(range(6))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * name.startswith("cifar10-resnet20"))
        for name in zoo.names()
    ],
)
def test_the_documented_code_runs_every_network_of_the_zoo(
    documented: dict[str, Any], name: str
) -> None:
    saved = file.load(zoo.find(name))
    manifest, tensors = documented["read_lbq"](zoo.find(name))
    frames = () if saved.input.static else (saved.timesteps,)
    shape = (1, *frames, *saved.input.shape)
    raw = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)
    sample = [raw[0]] * saved.timesteps if saved.input.static else raw[0]
    logits = documented["run"](manifest, tensors, sample)
    np.testing.assert_array_equal(logits, golden.run(saved, raw).logits[0])


@pytest.mark.parametrize(
    ("line", "bounds"),
    [
        ("| `name` | string of 1 to {} of the characters", [limits.MAX_NAME]),
        ("| `name` | string of 1 to {} printable characters", [limits.MAX_NAME]),
        ("| `timesteps` | T, 1 to {} |", [limits.MAX_TIMESTEPS]),
        ("| `weight_bits` | 2 to {}:", [numeric.MAX_WEIGHT_BITS]),
        ("in execution order, {} at most;", [limits.MAX_LAYERS]),
        ("at most {} levels deep;", [manifest.MAX_META_DEPTH]),
        ("| `paths` | list of 1 to {} synaptic paths", [limits.MAX_PATHS]),
        ("| `fraction_bits` | F, 0 to {}:", [limits.MAX_FRACTION_BITS]),
        ("| `exponent` | x, 0 to {}:", [limits.MAX_EXPONENT]),
        ("| `capacity` | N, 1 to {}:", [numeric.MAX_CAPACITY]),
        ("0 <= m <= 2^B, B up to {}:", [limits.MAX_DECAY_BITS]),
        ("| `border` | pixels added on each of the four sides, 0 to {} |", [limits.MAX_SIDE]),
        ("| bytes of a file, of its header | {}, {} |", [file.MAX_BYTES, file.MAX_HEADER]),
        ("| bytes of all tensors, a packed weight counted as one | {} |", [file.MAX_BYTES]),
        ("| channels of a shape | {} |", [limits.MAX_CHANNELS]),
        ("kernel, stride and padding of a path or window | {} |", [limits.MAX_SIDE]),
        ("threshold, reset or identity's weight | {} |", [limits.MAX_PARAMETER]),
        ("the padding of its readers included | {} |", [limits.MAX_LEVELS]),
        ("were every level a number | {} |", [limits.MAX_WORK]),
        ("the user's data, those held out | {}, {} |", [limits.MAX_IMAGES, limits.MAX_HELD_OUT]),
        ("the order of the logits, each 1 to {} printable", [limits.MAX_NAME]),
    ],
)
def test_the_bounds_on_the_page_are_those_that_are_checked(line: str, bounds: list[int]) -> None:
    page = FORMAT.read_text("utf-8")
    powers = [f"2^{bound.bit_length() - 1}" for bound in bounds]
    assert line.format(*bounds) in page or line.format(*powers) in page
