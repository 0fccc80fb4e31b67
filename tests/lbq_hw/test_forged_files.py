"""`.lbq` files whose structure was changed at random, with a right digest: refused, or true."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbq_hw import evaluate, file, golden
from lbq_hw.file import FileError
from lbq_hw.network import HeldOut, Network
from lbq_hw.network.manifest import DTYPES, Tensors, convolution_bits, describe
from lbq_hw.network.packing import MAX_BITS, Packed
from lbq_hw.sim.drawn.networks import random_images, random_network, with_narrow_layers
from tests.forged import assert_a_line, assert_both, bounded, change, counts, read_or_refused

NETWORKS = 20
SMALL = 10**8
"""Multiplications of an image that are done to see that an accepted network runs."""
TENSORS = ("weight", "bias", "scale", "theta", "reset", "floor")
NUMBERS = (0, 1, -1, 127, -128, 1 << 15, 1 << 31, 1 << 53, -(1 << 63), (1 << 63) - 1)


@cache
def honest(seed: int) -> Network:
    """A random network that says all that a manifest can say."""
    network = random_network(seed)
    if seed % 3 == 0:
        network = with_narrow_layers(network, seed)
    if seed % 2:
        full_scale = network.input.capacity << network.input.shift
        network = replace(
            network,
            input=replace(network.input, full_scale=min(full_scale, 255)),
            class_names=tuple(f"class {index}" for index in range(network.classes)),
            held_out=HeldOut(data=64 * "0", count=9, indices=(1, 4)),
            meta={"dataset": "digits", "float_accuracy": 0.5, "more": [{"a": None}, "b"]},
        )
    first, *rest = network.layers
    scaled = replace(first, scale=np.linspace(0.5, 1, first.shape[0]), gamma=0.5)
    return replace(network, layers=(scaled, *rest))


def change_tensors(draw: random.Random, tensors: Tensors) -> None:
    """Give a tensor other numbers, another type, shape or name; or take one more, or one less."""
    name, other = draw.choice(sorted(tensors)), draw.choice(sorted(tensors))
    found = tensors[name]
    kind = draw.choice(("number", "number", "type", "shape", "swap", "gone", "more"))
    if kind == "number":
        tensors[name] = found.astype("<i8")
        tensors[name].flat[draw.randrange(max(found.size, 1))] = draw.choice(NUMBERS)
    elif kind == "type":
        tensors[name] = found.astype(draw.choice(sorted(DTYPES.values(), key=str)))
    elif kind == "shape":
        shapes = (found.reshape(-1), found[None], found[:0], found[:1], found.T, found.sum())
        tensors[name] = np.ascontiguousarray(draw.choice(shapes), found.dtype)
    elif kind == "swap":
        tensors[name], tensors[other] = tensors[other], found
    elif kind == "gone":
        del tensors[name]
    else:
        tensors[draw.choice((f"{name}2", "", "\x1b[31m"))] = found


def forge(draw: random.Random) -> tuple[bytes, dict[str, Any], Tensors]:
    """A file as our own writer puts it, and the manifest and the tensors in it."""
    network = honest(draw.randrange(NETWORKS))
    text, tensors = describe(network)
    manifest, whole = json.loads(text), dict(tensors)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if draw.random() < 0.3:
            change_tensors(draw, tensors)
        else:
            change(draw, manifest)
    packed = {
        name: Packed(bits=bits, shape=tensors[name].shape)
        for name, bits in convolution_bits(network).items()
        if bits <= MAX_BITS and tensors.get(name) is whole[name]
    }
    version = draw.choice((file.VERSION, file.VERSION, file.VERSION, 3, 2, 1))
    data, _ = file._container(json.dumps(manifest), tensors, packed, version=version)
    return data, manifest, tensors


def meaning(manifest: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """A manifest with the numbers of its tensors in the place of their names."""

    def resolved(value: Any, key: str = "") -> Any:
        if key in TENSORS and isinstance(value, str):
            return tensors[value].tolist()
        if isinstance(value, dict):
            return {name: resolved(part, name) for name, part in value.items()}
        return [resolved(part) for part in value] if isinstance(value, list) else value

    return manifest | {"layers": resolved(manifest["layers"])}


def assert_means(network: Network, manifest: dict[str, Any], tensors: Tensors) -> None:
    """What was read is what was written, can be written again, and runs."""
    text, described = describe(network)
    assert meaning(json.loads(text), described) == meaning(manifest, tensors)
    assert file.digest(file.loads(file.dumps(network))) == file.digest(network)
    work = network.timesteps * sum(
        math.prod(layer.shape[1:]) * path.weight.size
        for layer in network.layers
        for path in layer.paths
    )
    if work <= SMALL:
        logits = golden.run(network, random_images(network, 1)).logits
        assert logits.shape == (1, network.classes)


@counts(60)
def test_a_forged_structure_is_refused_in_a_line_or_means_what_it_says(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: Counter[str] = Counter()
    path = tmp_path / "net.lbq"
    for seed in range(count):
        data, manifest, tensors = forge(random.Random(seed))
        path.write_bytes(data)
        network = read_or_refused(lambda: file.load(path), FileError, path, ends)
        if network is not None:
            assert_means(network, manifest, tensors)
            continue
        with bounded():
            assert evaluate.main(["--model", str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert_a_line(err.removesuffix("\n"), path)
    assert_both(ends, count)
