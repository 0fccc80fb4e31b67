"""Reads and writes `.lbq` files: one integer network in a safetensors container.

The format is documented in docs/lbq-format.md. Equal networks give equal bytes; a file that was cut
off, altered, or written by a newer version is refused with a `FileError` of one sentence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.network import Input, Layer, Network, NetworkError, Neuron, Path, Window

FORMAT = "lbq"
VERSION = 1

_AGAIN = "export or copy it again"
_START = b'{"__metadata__":{"format":"lbq"'
_DTYPES = {
    "I8": np.dtype("<i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

Tensors = dict[str, NDArray[Any]]


class FileError(ValueError):
    """A file that cannot be read or written; the message names it and says what to do."""


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write `network` to `path`, whole or not at all: a failure leaves what was there before."""
    path = FilePath(path)
    data = dumps(network)
    partial = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    try:
        try:
            with open(partial, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            with contextlib.suppress(OSError):  # gone already when all went well
                partial.unlink()
    except OSError as error:
        reason = error.strerror or error
        raise FileError(
            f"{path} cannot be written ({reason}): choose a folder that exists and has room"
        ) from error


def load(path: str | os.PathLike[str]) -> Network:
    """Read, verify and check the network in `path`."""
    path = FilePath(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path} does not exist: give the path of an .lbq file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read ({reason}): give a readable .lbq file") from error
    return loads(data, source=str(path))


def digest(network: Network) -> str:
    """SHA-256 (hex) of everything that defines `network`: what `save` writes into the file."""
    return _digest(*_describe(network))


def dumps(network: Network) -> bytes:
    """The bytes of the file that `save` writes."""
    manifest, tensors = _describe(network)
    header: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "version": str(VERSION),
            "manifest": manifest,
            "digest": _digest(manifest, tensors),
        }
    }
    blobs, offset = [], 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):  # all aligned
        blob = tensors[name].tobytes()
        header[name] = {
            "dtype": _CODES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = _json(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blobs)


def loads(data: bytes, *, source: str = "the data") -> Network:
    """The network in the bytes of a file; `source` names them in errors."""
    metadata, length = _parse_header(data, source)
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version)):
        raise FileError(f"{source} is damaged (its version is {version!r}): {_AGAIN}")
    if int(version) > VERSION:
        raise FileError(
            f"{source} was written by a newer lbq-hw (version {version}, this one reads "
            f"{VERSION}): update lbq-hw"
        )
    if len(data) < length:
        raise FileError(f"{source} is truncated ({len(data)} of {length} bytes): {_AGAIN}")
    manifest = metadata.get("manifest")
    if not isinstance(manifest, str):
        raise FileError(f"{source} is damaged (it has no manifest): {_AGAIN}")
    try:
        tensors = _parse_tensors(data)
        actual = _digest(manifest, tensors)
    except (safetensors.SafetensorError, ValueError) as error:
        raise FileError(f"{source} is damaged ({error}): {_AGAIN}") from error
    if actual != metadata.get("digest"):
        raise FileError(
            f"{source} was altered after it was written (its digest does not match): {_AGAIN}"
        )
    try:
        return _build(manifest, tensors)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise FileError(f"{source} describes no valid network ({error}): {_AGAIN}") from error


def _parse_header(data: bytes, source: str) -> tuple[dict[str, Any], int]:
    """The metadata, and how many bytes the file must have by its header."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 + size and _START.startswith(data[8 : 8 + len(_START)]):
        raise FileError(f"{source} is truncated ({len(data)} bytes): {_AGAIN}")
    try:
        header = json.loads(data[8 : 8 + size])
        metadata = header.pop("__metadata__")
        if metadata["format"] != FORMAT:
            raise ValueError("another format")
        ends = [int(entry["data_offsets"][1]) for entry in header.values()]
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise FileError(
            f"{source} is not an .lbq file: make one with `python -m train.export`"
        ) from None
    return metadata, 8 + size + max(ends, default=0)


def _parse_tensors(data: bytes) -> Tensors:
    tensors: Tensors = {}
    for name, entry in safetensors.deserialize(data):
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"tensor {name!r} must not be of type {entry['dtype']}")
        flat = np.frombuffer(entry["data"], _DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def _digest(manifest: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    sha = hashlib.sha256(f"{FORMAT} {VERSION}\n{manifest}\n".encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{_json([name, _CODES[tensor.dtype], list(tensor.shape)])}\n".encode())
        sha.update(tensor.tobytes())
    return sha.hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# Writing: network -> manifest text and tensors -----------------------------------------------


def _describe(network: Network) -> tuple[str, Tensors]:
    tensors: Tensors = {}
    manifest = {
        "name": network.name,
        "input": {
            "shape": _ints(network.input.shape),
            "static": bool(network.input.static),
            "bits": int(network.input.bits),
            "shift": int(network.input.shift),
            "border": int(network.input.border),
            "border_value": _ints(network.input.border_value),
        },
        "timesteps": int(network.timesteps),
        "weight_bits": int(network.weight_bits),
        "layers": [_describe_layer(layer, tensors) for layer in network.layers],
        "meta": _plain(network.meta),
    }
    return _json(manifest), tensors


def _describe_layer(layer: Layer, tensors: Tensors) -> dict[str, Any]:
    def integers(name: str, values: NDArray[Any]) -> str:
        return put(name, values.astype(numeric.smallest_integer_dtype(values).newbyteorder("<")))

    def put(name: str, values: NDArray[Any]) -> str:
        tensors[f"{layer.name}/{name}"] = values
        return f"{layer.name}/{name}"

    neuron = layer.neuron
    return {
        "name": layer.name,
        "shape": _ints(layer.shape),
        "paths": [
            {
                "source": path.source,
                "weight": integers(f"path{index}/weight", path.weight),
                "stride": _ints(path.stride),
                "padding": _ints(path.padding),
                "exponent": int(path.exponent),
                "pool": _describe_window(path.pool),
            }
            for index, path in enumerate(layer.paths)
        ],
        "bias": integers("bias", layer.bias),
        "fraction_bits": int(layer.fraction_bits),
        "neuron": neuron
        and {
            "capacity": int(neuron.capacity),
            "theta": integers("theta", neuron.theta),
            "reset": integers("reset", neuron.reset),
            "decay": int(neuron.decay),
            "decay_bits": int(neuron.decay_bits),
        },
        "pool": _describe_window(layer.pool),
        "scale": None if layer.scale is None else put("scale", np.asarray(layer.scale, "<f8")),
        "gamma": None if layer.gamma is None else float(layer.gamma),
    }


def _describe_window(window: Window | None) -> dict[str, Any] | None:
    return window and {
        "kernel": _ints(window.kernel),
        "stride": _ints(window.stride),
        "padding": _ints(window.padding),
    }


def _ints(values: tuple[int, ...]) -> list[int]:
    return [int(value) for value in values]


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    """`meta` with its keys in order, refusing what would not come back from a file as it was."""
    try:
        plain = json.loads(json.dumps(dict(meta), sort_keys=True, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise NetworkError(f"network meta must be JSON values ({error})") from error
    if plain != meta:
        raise NetworkError("network meta must be JSON values: string keys, lists and no tuples")
    return plain


# Reading: manifest text and tensors -> network -----------------------------------------------

_Reader = Callable[[Any, str], Any]


def _kind(expected: str, *kinds: type) -> _Reader:
    def read(value: Any, place: str) -> Any:
        # bool is a subclass of int, and no number
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise NetworkError(f"{place} must be {expected}, not {value!r}")
        return value

    return read


def _optional(read: _Reader) -> _Reader:
    return lambda value, place: None if value is None else read(value, place)


def _list(read: _Reader, length: int | None = None) -> _Reader:
    def read_list(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or length not in (None, len(value)):
            count = "" if length is None else f" of {length}"
            raise NetworkError(f"{place} must be a list{count}, not {value!r}")
        return tuple(read(item, f"{place}[{index}]") for index, item in enumerate(value))

    return read_list


def _record(build: Callable[..., Any], fields: dict[str, _Reader]) -> _Reader:
    """An object with exactly these fields, handed to `build` as keywords."""

    def read_record(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise NetworkError(f"{place} must be an object, not {value!r}")
        for key in value:
            if key not in fields:
                raise NetworkError(f"{place} has the unknown key {key!r}")
        for key in fields:
            if key not in value:
                raise NetworkError(f"{place} lacks the key {key!r}")
        return build(**{key: read(value[key], f"{place}.{key}") for key, read in fields.items()})

    return read_record


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NetworkError(f"manifest numbers must be finite, not {text}")
    return value


_string = _kind("a string", str)
_integer = _kind("an integer", int)
_number = _kind("a number", int, float)
_boolean = _kind("true or false", bool)
_window = _record(
    Window,
    {"kernel": _list(_integer, 2), "stride": _list(_integer, 2), "padding": _list(_integer, 2)},
)
_input = _record(
    Input,
    {
        "shape": _list(_integer, 3),
        "static": _boolean,
        "bits": _integer,
        "shift": _integer,
        "border": _integer,
        "border_value": _list(_integer),
    },
)


def _build(manifest: str, tensors: Tensors) -> Network:
    used: set[str] = set()

    def tensor(value: Any, place: str) -> NDArray[Any]:
        if not isinstance(value, str) or value not in tensors:
            raise NetworkError(f"{place} must name a tensor of the file, not {value!r}")
        used.add(value)
        return tensors[value]

    def reals(value: Any, place: str) -> NDArray[np.float64]:
        array = tensor(value, place)
        if array.dtype != _DTYPES["F64"]:
            raise NetworkError(f"{place} must be F64, not {_CODES[array.dtype]}")
        return array

    path = {
        "source": _string,
        "weight": tensor,
        "stride": _list(_integer, 2),
        "padding": _list(_integer, 2),
        "exponent": _integer,
        "pool": _optional(_window),
    }
    neuron = {
        "capacity": _integer,
        "theta": tensor,
        "reset": tensor,
        "decay": _integer,
        "decay_bits": _integer,
    }
    layer = {
        "name": _string,
        "shape": _list(_integer, 3),
        "paths": _list(_record(Path, path)),
        "bias": tensor,
        "fraction_bits": _integer,
        "neuron": _optional(_record(Neuron, neuron)),
        "pool": _optional(_window),
        "scale": _optional(reals),
        "gamma": _optional(_number),
    }
    network = _record(
        Network,
        {
            "name": _string,
            "input": _input,
            "timesteps": _integer,
            "weight_bits": _integer,
            "layers": _list(_record(Layer, layer)),
            "meta": _kind("an object", dict),
        },
    )(json.loads(manifest, parse_float=_finite, parse_constant=_finite), "manifest")
    if unused := sorted(set(tensors) - used):
        raise NetworkError(f"the manifest does not use the tensor {unused[0]!r}")
    return network
