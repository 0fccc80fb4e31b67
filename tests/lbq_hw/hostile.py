"""Networks that a hostile author would write, and the sentence with which each is refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lbq_hw.network.manifest import Tensors
from tests.lbq_hw.forge import (
    altered,
    both,
    contained,
    forged,
    narrower,
    nested,
    number,
    put,
    rename,
    tensor,
    zeros,
)


def hidden_padding(manifest: Any, _tensors: Tensors) -> None:
    """A padding of which a stride leaves nine pixels, but which must be laid out to be read."""
    layer = manifest["layers"][0]
    manifest["timesteps"], layer["shape"] = 4096, [8, 3, 3]
    layer["paths"][0] |= {"padding": [4096, 4096], "stride": [4096, 4096]}


def endless_work(manifest: Any, tensors: Tensors) -> None:
    """Few weights, few levels, a kernel over everything at every place."""
    layer = manifest["layers"][0]
    manifest["timesteps"], layer["shape"] = 128, [8, 255, 255]
    layer["paths"][0]["padding"] = [253, 253]
    tensors[layer["paths"][0]["weight"]] = zeros(8, 1, 260, 260)


def many_layers(manifest: Any, tensors: Tensors) -> None:
    """600 layers, each with weights of its own."""
    first = manifest["layers"][0]
    weight = first["paths"][0]["weight"]
    for index in range(600):
        layer = copy.deepcopy(first)
        layer["name"], layer["paths"][0]["weight"] = f"more{index}", f"more{index}"
        tensors[f"more{index}"] = tensors[weight]
        manifest["layers"].insert(0, layer)


def many_paths(manifest: Any, tensors: Tensors) -> None:
    """300 paths into one layer, each with weights of its own."""
    paths = manifest["layers"][0]["paths"]
    for index in range(300):
        tensors[f"more{index}"] = tensors[paths[0]["weight"]]
        paths.append(paths[0] | {"weight": f"more{index}"})


def no_readout(manifest: Any, tensors: Tensors) -> None:
    """All layers have neurons."""
    for name in [name for name in tensors if name.startswith("logits/")]:
        del tensors[name]
    manifest["layers"].pop()


def wrapping_leak(manifest: Any, tensors: Tensors) -> None:
    """Membranes that fit 64 bits, but not once they are multiplied by the leak."""
    neuron = manifest["layers"][0]["neuron"]
    neuron["decay"], neuron["decay_bits"] = 65535, 16
    tensors[manifest["layers"][0]["bias"]] = np.full(8, 1 << 46)


NETWORK_NAMES = {
    "name climbs out of the folder": "../../x",
    "name is a folder above": "..",
    "name is a path": "a/b",
    "name is empty": "",
    "name has a NUL": "a\0b",
    "name has an escape sequence": "\x1b[31mred",
    "name has a line break": "a\nb",
    "name is a lone surrogate": "\ud800",
    "name is hidden": ".net",
    "name is very long": "x" * 201,
}
LAYER_NAMES = {
    "layer without a name": "",
    "layer with an escape sequence": "\x1b]0;title\x07",
    "layer with a line break": "a\nb",
    "layer with a NUL": "a\0",
    "layer with a lone surrogate": "\ud800",
    "layer written from right to left": "a\u202eb",
    "layer with a very long name": "x" * 201,
}
# fmt: off
CHANGES = {
    "name is a number": (put("name", value=5), "manifest.name must be a string, not 5"),
    "two layers of one name": (
        rename(1, "layers.0.neuron"),
        "layer 'layers.0.neuron': another layer has this name",
    ),
    "a layer named like the input": (
        rename(0, "input"),
        "layer 'input': another layer has this name",
    ),
    "bias of -2^63": (
        number("layers", 0, "bias", value=-(1 << 63)),
        "layer 'layers.0.neuron': bias must be within -2**53..2**53, not -9223372036854775808",
    ),
    "reset of -2^63": (
        number("layers", 0, "neuron", "reset", value=-(1 << 63)),
        "neuron reset must be within -2**53..2**53, not -9223372036854775808",
    ),
    "theta of 2^62": (
        number("layers", 0, "neuron", "theta", value=1 << 62),
        "neuron theta must be within -2**53..2**53, not 4611686018427387904",
    ),
    "theta of 0": (
        number("layers", 0, "neuron", "theta", value=0),
        "neuron theta must be at least 1",
    ),
    "identity weight of -2^63": (
        number("layers", 2, "paths", 1, "weight", value=-(1 << 63)),
        "path from 'layers.1.neuron': weight must be within -2**53..2**53, not "
        "-9223372036854775808",
    ),
    "weight beyond its bits": (
        number("layers", 0, "paths", 0, "weight", value=128),
        "layer 'layers.0.neuron': weights from 'input' exceed the codes -127..127",
    ),
    "T of 10^5": (
        put("timesteps", value=10**5),
        "timesteps must be an integer of 1..4096, not 100000",
    ),
    "T of 10^30": (put("timesteps", value=10**30), "manifest integers must fit 64 bits"),
    "T of 0": (put("timesteps", value=0), "timesteps must be an integer of 1..4096, not 0"),
    "T below 0": (put("timesteps", value=-1), "timesteps must be an integer of 1..4096, not -1"),
    "T as text": (put("timesteps", value="2"), "manifest.timesteps must be an integer, not '2'"),
    "T not a number": (
        put("timesteps", value=math.nan),
        "manifest numbers must be finite, not NaN",
    ),
    "T infinite": (
        put("timesteps", value=math.inf),
        "manifest numbers must be finite, not Infinity",
    ),
    "T null": (put("timesteps", value=None), "manifest.timesteps must be an integer, not None"),
    "huge padding": (
        put("layers", 0, "paths", 0, "padding", value=[10**9, 10**9]),
        "path from 'input': padding must be 0..4096, not (1000000000, 1000000000)",
    ),
    "padding below 0": (
        put("layers", 0, "paths", 0, "padding", value=[-1, 1]),
        "path from 'input': padding must be 0..4096, not (-1, 1)",
    ),
    "stride of 0": (
        put("layers", 0, "paths", 0, "stride", value=[0, 1]),
        "path from 'input': stride must be 1..4096, not (0, 1)",
    ),
    "stride of 10^30": (
        put("layers", 0, "paths", 0, "stride", value=[10**30, 1]),
        "manifest integers must fit 64 bits",
    ),
    "exponent of 10^9": (
        put("layers", 0, "paths", 0, "exponent", value=10**9),
        "path from 'input': exponent must be 0..15, not 1000000000",
    ),
    "exponent below 0": (
        put("layers", 0, "paths", 0, "exponent", value=-1),
        "path from 'input': exponent must be 0..15, not -1",
    ),
    "capacity of 2^40": (
        put("layers", 0, "neuron", "capacity", value=1 << 40),
        "neuron capacity must be 1..31, not 1099511627776",
    ),
    "capacity of 0": (
        put("layers", 0, "neuron", "capacity", value=0),
        "neuron capacity must be 1..31, not 0",
    ),
    "fraction of 10^6 bits": (
        put("layers", 0, "fraction_bits", value=10**6),
        "layer 'layers.0.neuron': fraction_bits must be 0..16, not 1000000",
    ),
    "decay of 10^6 bits": (
        put("layers", 0, "neuron", "decay_bits", value=10**6),
        "neuron decay_bits must be 0..16, not 1000000",
    ),
    "decay of less than 0 bits": (
        put("layers", 0, "neuron", "decay_bits", value=-1),
        "neuron decay_bits must be 0..16, not -1",
    ),
    "decay above 1": (
        put("layers", 0, "neuron", "decay", value=3),
        "neuron decay must be 0..2**decay_bits, not 3/2**1",
    ),
    "weights of 10^9 bits": (
        put("weight_bits", value=10**9),
        "weight bits must be between 2 and 16, not 1000000000",
    ),
    "pixels of 64 bits": (
        put("input", "bits", value=64),
        "input bits must be between 1 and 8, not 64",
    ),
    "pixels shifted back": (
        put("input", "shift", value=-1),
        "input shift must be between 0 and 7, not -1",
    ),
    "border of 10^9": (
        both(put("input", "border", value=10**9), put("input", "border_value", value=[0])),
        "input border must be 0..4096, not 1000000000",
    ),
    "a border value without a border": (
        put("input", "border_value", value=[0]),
        "input border_value must be one level 0..31 per channel, and empty without a border, not "
        "(0,)",
    ),
    "huge input": (
        put("input", "shape", value=[1 << 40, 1 << 40, 1 << 40]),
        "input: a shape must have 1..32768 channels, a height and a width, not (1099511627776, "
        "1099511627776, 1099511627776)",
    ),
    "empty input": (
        put("input", "shape", value=[1, 0, 8]),
        "input: height and width must be 1..4096, not (1, 0, 8)",
    ),
    "huge layer": (
        put("layers", 0, "shape", value=[8, 1 << 62, 1 << 62]),
        "layer 'layers.0.neuron': height and width must be 1..4096, not (8, 4611686018427387904, "
        "4611686018427387904)",
    ),
    "layer of another shape": (
        put("layers", 0, "shape", value=[8, 7, 8]),
        "layer 'layers.0.neuron': the path from 'input' yields (8, 8, 8), the layer is (8, 7, 8)",
    ),
    "levels without end": (
        both(put("timesteps", value=4096), put("input", "shape", value=[1, 4096, 4096])),
        "input: 68719476736 levels over all timesteps are more than 268435456",
    ),
    "a window without end": (
        put("layers", 0, "pool",
            value={"kernel": [10**9] * 2, "stride": [1, 1], "padding": [10**9 - 1] * 2}),
        "window kernel must be 1..4096, not (1000000000, 1000000000)",
    ),
    "a window of nothing": (
        put("layers", 0, "pool", value={"kernel": [0, 0], "stride": [1, 1], "padding": [0, 0]}),
        "window kernel must be 1..4096, not (0, 0)",
    ),
    "a sum-pool larger than its source": (
        put("layers", 1, "paths", 0, "pool",
            value={"kernel": [9, 9], "stride": [1, 1], "padding": [0, 0]}),
        "layer 'layers.1.neuron': pooling 'layers.0.neuron' leaves (8, 0, 0), which is empty",
    ),
    "a kernel larger than its source": (
        tensor("layers", 0, "paths", 0, "weight", value=zeros(8, 1, 11, 11)),
        "layer 'layers.0.neuron': the path from 'input' yields (8, 0, 0), the layer is (8, 8, 8)",
    ),
    "a layer that reads itself": (
        put("layers", 0, "paths", 0, "source", value="layers.0.neuron"),
        "layer 'layers.0.neuron': reads 'layers.0.neuron', which no earlier layer makes",
    ),
    "a layer that reads a later one": (
        put("layers", 0, "paths", 0, "source", value="residual.neuron"),
        "layer 'layers.0.neuron': reads 'residual.neuron', which no earlier layer makes",
    ),
    "no layer": (put("layers", value=[]), "a network needs at least one layer"),
    "sums beyond 62 bits": (
        both(
            number("layers", 2, "paths", 1, "weight", value=1 << 53),
            put("layers", 2, "paths", 1, "exponent", value=15),
        ),
        "layer 'residual.neuron': its sums may pass 62 bits",
    ),
    "weights of floats": (
        tensor("layers", 0, "paths", 0, "weight", value=zeros(8, 1, 3, 3, kind="<f8")),
        "path from 'input': weight must be signed integers, not float64",
    ),
    "weights of no size": (
        tensor("layers", 0, "paths", 0, "weight", value=zeros(0, 1, 3, 3)),
        "path from 'input': weight must not be empty",
    ),
    "weights of two axes": (
        tensor("layers", 0, "paths", 0, "weight", value=zeros(8, 9)),
        "path from 'input': weight must be (C,) or (out, in, kh, kw)",
    ),
    "weights of another path": (
        put("layers", 1, "paths", 0, "weight", value="layers.0.neuron/path0/weight"),
        "manifest.layers[1].paths[0].weight must name a tensor of its own, not "
        "'layers.0.neuron/path0/weight' again",
    ),
    "weights that are a list": (
        put("layers", 0, "paths", 0, "weight", value=[]),
        "manifest.layers[0].paths[0].weight must name a tensor of the file, not []",
    ),
    "a bias of floats": (
        tensor("layers", 0, "bias", value=zeros(8, kind="<f8")),
        "layer 'layers.0.neuron': bias must be integers, not float64",
    ),
    "a bias for too few channels": (
        tensor("layers", 0, "bias", value=zeros(7)),
        "layer 'layers.0.neuron': bias must have 8 entries, not (7,)",
    ),
    "a scale of integers": (
        tensor("layers", 0, "scale", value=zeros(8)),
        "manifest.layers[0].scale must be F64, not I8",
    ),
    "a scale that is not a number": (
        tensor("layers", 0, "scale", value=np.full(8, math.nan)),
        "layer 'layers.0.neuron': scale must be finite",
    ),
    "an unknown key": (put("exec", value="rm -rf"), "manifest has the unknown key 'exec'"),
    "meta 500 deep": (
        put("meta", "x", value=nested(500)),
        "network meta must be at most 16 levels deep",
    ),
    "meta with a lone surrogate": (
        put("meta", "x", value=["\ud800"]),
        "network meta must be Unicode text, not '\\ud800'",
    ),
    "meta that is a list": (put("meta", value=[]), "manifest.meta must be an object, not []"),
    "a dataset that is a list": (
        put("meta", "dataset", value=["digits"]),
        "manifest.meta.dataset must be a string, not ['digits']",
    ),
    "an accuracy that is text": (
        put("meta", "float_accuracy", value="[/x]"),
        "manifest.meta.float_accuracy must be a number, not '[/x]'",
    ),
    "padding that a stride hides": (
        hidden_padding,
        "layer 'layers.0.neuron', path from 'input': 275415040000 levels over all timesteps are "
        "more than 268435456",
    ),
    "work without end": (
        endless_work,
        "layer 'layers.0.neuron': with it, an image takes 4501186560000 multiplications, more than "
        "2**42",
    ),
    "too many layers": (many_layers, "604 layers are more than 512"),
    "too many paths": (many_paths, "layer 'layers.0.neuron': 301 paths are more than 256"),
    "no readout": (
        no_readout,
        "layer 'residual.neuron': the last layer, and only it, must have no neuron",
    ),
    "a leak that wraps": (wrapping_leak, "layer 'layers.0.neuron': its sums may pass 62 bits"),
}
TEXTS = {
    "T of 10^5000": (
        lambda: altered('"timesteps": 2, "weight', '"timesteps": 1' + 5000 * "0" + ', "weight'),
        "manifest integers must fit 64 bits",
    ),
    "T of 1e400": (
        lambda: altered('"timesteps": 2, "weight', '"timesteps": 1e400, "weight'),
        "manifest numbers must be finite, not 1e400",
    ),
    "a key twice": (
        lambda: altered('"timesteps": 2, "weight', '"timesteps": 2, "timesteps": 9, "weight'),
        "an object has the key 'timesteps' twice",
    ),
    "meta 10,000 deep": (
        lambda: altered('"meta": {', '"meta": {"x": ' + 10_000 * "[" + 10_000 * "]" + ", "),
        "the lists of the manifest are nested too deeply",
    ),
    "meta with an integer of 5,000 digits": (
        lambda: altered('"meta": {', '"meta": {"x": ' + 5_000 * "9" + ", "),
        "manifest integers must fit 64 bits",
    ),
    "a manifest of a number": (lambda: contained("1"), "manifest must be an object, not 1"),
    "a manifest that is no JSON": (
        lambda: contained("{"),
        "the manifest is not JSON at character 1",
    ),
    "packed to fewer bits than the weights have": (
        narrower,
        "tensor 'layer0/path0/weight' is packed to 3 bits, the weights are of 4",
    ),
}
# fmt: on


class Hostile(NamedTuple):
    """A file with a right digest that describes no valid network, and why it does not."""

    data: Callable[[], bytes]
    reason: str


def _invalid() -> dict[str, Hostile]:
    found = {
        name: Hostile(partial(forged, change), reason) for name, (change, reason) in CHANGES.items()
    }
    found |= {name: Hostile(data, reason) for name, (data, reason) in TEXTS.items()}
    for name, text in NETWORK_NAMES.items():
        reason = (
            "a network's name must be 1 to 200 of the characters A-Z, a-z, 0-9, '.', '_', '+' and "
            f"'-', the first a letter or a digit, not {text!r}"
        )
        found[name] = Hostile(partial(forged, put("name", value=text)), cut(reason))
    for name, text in LAYER_NAMES.items():
        reason = (
            "a layer's name must be 1 to 200 printable characters, no space first or last, "
            f"not {text!r}"
        )
        found[name] = Hostile(partial(forged, rename(0, text)), cut(reason))
    return found


def cut(reason: str) -> str:
    """As much of a reason as is shown."""
    return reason if len(reason) <= 300 else f"{reason[:300]}..."


INVALID = _invalid()
