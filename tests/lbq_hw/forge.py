"""Hostile `.lbq` files: what anybody could write who knows the format, with a right digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from lbq_hw import file, zoo
from lbq_hw.network import Network
from lbq_hw.network.manifest import Tensors, convolution_bits, describe
from lbq_hw.network.packing import Packed
from lbq_hw.sim.drawn.networks import random_network

Change = Callable[[dict[str, Any], Tensors], object]


def digits() -> tuple[dict[str, Any], Tensors]:
    """The manifest and the tensors of the zoo's digits, to be changed."""
    text, tensors = describe(file.load(zoo.find("digits")))
    return json.loads(text), tensors


def forged(change: Change) -> bytes:
    """The zoo's digits after a change of manifest and tensors, as our own writer puts it."""
    manifest, tensors = digits()
    change(manifest, tensors)
    return contained(json.dumps(manifest), tensors)


def contained(text: str, tensors: Tensors | None = None) -> bytes:
    """A file with this text as its manifest."""
    return file._container(text, digits()[1] if tensors is None else tensors)[0]


def few_bits() -> tuple[Network, bytes]:
    """A network of 3-bit weights and its file; the weights of its readout fill no whole byte."""
    network = random_network(2, weight_bits=3, layers=1)
    return network, file.dumps(network)


def with_header(change: Callable[[dict[str, Any]], object], data: bytes | None = None) -> bytes:
    """A file, the zoo's digits if none is given, with another header and the digest of before."""
    data = zoo.find("digits").read_bytes() if data is None else data
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def put(*keys: str | int, value: Any) -> Change:
    """Set one entry of the manifest."""

    def change(manifest: Any, _tensors: Tensors) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


def tensor(*keys: str | int, value: Any) -> Change:
    """Replace the tensor that an entry of the manifest names."""

    def change(manifest: Any, tensors: Tensors) -> None:
        for key in keys:
            manifest = manifest[key]
        tensors[manifest] = value

    return change


def number(*keys: str | int, value: int) -> Change:
    """Set the first number of the tensor that an entry of the manifest names."""

    def change(manifest: Any, tensors: Tensors) -> None:
        for key in keys:
            manifest = manifest[key]
        wide = tensors[manifest].astype("<i8")
        wide.flat[0] = value
        tensors[manifest] = wide

    return change


def rename(index: int, name: str) -> Change:
    """Give a layer another name, where it is read too."""

    def change(manifest: Any, _tensors: Tensors) -> None:
        old, manifest["layers"][index]["name"] = manifest["layers"][index]["name"], name
        for layer in manifest["layers"]:
            for path in layer["paths"]:
                if path["source"] == old:
                    path["source"] = name

    return change


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def both(*changes: Change) -> Change:
    """Several changes."""

    def change(manifest: Any, tensors: Tensors) -> None:
        for each in changes:
            each(manifest, tensors)

    return change


def zeros(*shape: int, kind: str = "<i1") -> Any:
    return np.zeros(shape, kind)


def repacked(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The file of few bits after a change of what it says of its packed tensors."""

    def change_text(header: dict[str, Any]) -> None:
        metadata = header["__metadata__"]
        found = json.loads(metadata["packed"])
        change(found)
        metadata["packed"] = json.dumps(found)

    return with_header(change_text, few_bits()[1])


def narrower() -> bytes:
    """A right digest and right tensors, but weights of 4 bits that are packed to 3."""
    text, tensors = describe(few_bits()[0])
    manifest = json.loads(text) | {"weight_bits": 4}
    names = list(convolution_bits(few_bits()[0]))
    few = {name: Packed(bits=3, shape=tensors[name].shape) for name in names}
    return file._container(json.dumps(manifest), tensors, few)[0]


def altered(old: str, new: str) -> bytes:
    """The zoo's digits with another text in its manifest."""
    text = json.dumps(digits()[0])
    assert text.count(old) == 1
    return contained(text.replace(old, new))
