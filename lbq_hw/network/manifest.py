"""The manifest of an `.lbq` file: a network as JSON text that names its tensors, and back.

The fields are documented in docs/lbq-format.md. Equal networks give equal text and equal tensors.
Any other text is refused with a `NetworkError` that names the place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.decode import (
    DecodeError,
    boolean,
    integer,
    list_of,
    number,
    of_kind,
    optional,
    record,
    require,
    string,
)
from lbq_hw.network import HeldOut, Input, Layer, Network, NetworkError, Neuron, Path, Window
from lbq_hw.network.neuron import RULES

DTYPES = {
    "I8": np.dtype("<i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}
Tensors = dict[str, NDArray[Any]]

MAX_META_DEPTH = 16
"""Nesting depth of lists and objects in a network's meta."""
MAX_INTEGER = 1 << 63
"""Magnitude of an integer, also in meta."""
_INTEGER_DIGITS = 20  # Python itself would convert thousands of digits


def compact_json(value: Any) -> str:
    """JSON in a canonical form, so that equal values give equal bytes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a duplicate key is an error, since readers differ in which value they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise NetworkError(f"an object has the key {twice!r} twice")
    return found


def describe(network: Network) -> tuple[str, Tensors]:
    """The manifest of `network`, and the tensors that it names; `build` is the inverse."""
    network.check_ranges()
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
        }
        | _given(full_scale=network.input.full_scale),
        "timesteps": int(network.timesteps),
        "weight_bits": int(network.weight_bits),
        "layers": [_describe_layer(layer, tensors) for layer in network.layers],
        "meta": _plain(network.meta),
    } | _given(
        class_names=list(network.class_names) or None,
        held_out=network.held_out and _describe_held_out(network.held_out),
    )
    return compact_json(manifest), tensors


def convolution_bits(network: Network) -> dict[str, int]:
    """Weight bits of convolutions, by the names of their tensors."""
    return {
        f"{layer.name}/{_weight_name(index)}": network.layer_bits(layer)
        for layer in network.layers
        for index, path in enumerate(layer.paths)
        if not path.is_identity
    }


def _weight_name(index: int) -> str:
    return f"path{index}/weight"


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
                "weight": integers(_weight_name(index), path.weight),
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
        }
        | {
            rule.name: integers(rule.name, neuron.vectors[rule.name]) if rule.per_channel else True
            for rule in neuron.rules
            if rule.optional
        },
        "pool": _describe_window(layer.pool),
        "scale": None if layer.scale is None else put("scale", np.asarray(layer.scale, "<f8")),
        "gamma": None if layer.gamma is None else float(layer.gamma),
    } | _given(weight_bits=layer.weight_bits)


def _given(**entries: Any) -> dict[str, Any]:
    """Entries without empty values: older versions do not know these keys."""
    return {key: value for key, value in entries.items() if value is not None}


def _describe_held_out(held_out: HeldOut) -> dict[str, Any]:
    return {
        "data": held_out.data,
        "count": int(held_out.count),
        "indices": _ints(held_out.indices),
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
    """`meta` with sorted keys; a value that a file would not preserve is refused."""
    with _as_network_error():
        _meta(meta, "network meta")
    try:
        plain = json.loads(json.dumps(dict(meta), sort_keys=True, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise NetworkError(f"network meta must be JSON values ({error})") from error
    if plain != meta:
        raise NetworkError("network meta must be JSON values: string keys, lists and no tuples")
    return plain


def _check_meta(value: Any, depth: int = 0) -> None:
    """Refuse values that cannot be written, at any depth: meta that was read is written again."""
    if depth > MAX_META_DEPTH:
        raise NetworkError(f"network meta must be at most {MAX_META_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for key, part in value.items():
            _check_meta(key, depth)
            _check_meta(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_meta(part, depth + 1)
    elif isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise NetworkError(f"network meta must be Unicode text, not {value!r}")
    elif isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise NetworkError("integers of network meta must fit 64 bits")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NetworkError(f"manifest numbers must be finite, not {text}")
    return value


def _whole(text: str) -> int:
    value = int(text) if len(text) <= _INTEGER_DIGITS else MAX_INTEGER
    if not -MAX_INTEGER <= value < MAX_INTEGER:
        raise NetworkError("manifest integers must fit 64 bits")
    return value


def _true(value: Any, place: str) -> bool:
    """A flag that is only present if it is true, so that equal networks give equal text."""
    require(value is True, place, "true, or left out", value)
    return True


def _names(value: Any, place: str) -> tuple[str, ...]:
    """Names of classes; the key is left out if there are none."""
    names = list_of(string)(value, place)
    require(bool(names), place, "one name per class, or left out", value)
    return names


def _meta(value: Any, place: str) -> Mapping[str, Any]:
    meta = of_kind("an object", Mapping)(value, place)
    _check_meta(meta)
    for key, read in (("dataset", string), ("float_accuracy", number)):  # shown by commands
        optional(read)(meta.get(key), f"{place}.{key}")
    return meta


_window = record(
    Window,
    {"kernel": list_of(integer, 2), "stride": list_of(integer, 2), "padding": list_of(integer, 2)},
)
_input = record(
    Input,
    {
        "shape": list_of(integer, 3),
        "static": boolean,
        "bits": integer,
        "shift": integer,
        "border": integer,
        "border_value": list_of(integer),
        "full_scale": integer,
    },
    optional=("full_scale",),
)
_held_out = record(HeldOut, {"data": string, "count": integer, "indices": list_of(integer)})


def build(manifest: str, tensors: Tensors) -> Network:
    """The network that `manifest` describes; it must use all `tensors`, and each weight once.

    Its integers are proven to fit the types that compute them.
    """
    used: set[str] = set()

    def tensor(value: Any, place: str) -> NDArray[Any]:
        if not isinstance(value, str) or value not in tensors:
            raise NetworkError(f"{place} must name a tensor of the file, not {value!r}")
        used.add(value)
        return tensors[value]

    def weight(value: Any, place: str) -> NDArray[Any]:
        # Each path copies its weights: a thousand paths of one tensor would fill the memory.
        if isinstance(value, str) and value in used:
            raise NetworkError(f"{place} must name a tensor of its own, not {value!r} again")
        return tensor(value, place)

    def reals(value: Any, place: str) -> NDArray[np.float64]:
        array = tensor(value, place)
        if array.dtype != DTYPES["F64"]:
            raise NetworkError(f"{place} must be F64, not {CODES[array.dtype]}")
        return array

    path = {
        "source": string,
        "weight": weight,
        "stride": list_of(integer, 2),
        "padding": list_of(integer, 2),
        "exponent": integer,
        "pool": optional(_window),
    }
    spare_rules = [rule for rule in RULES if rule.optional]
    neuron = {
        "capacity": integer,
        "theta": tensor,
        "reset": tensor,
        "decay": integer,
        "decay_bits": integer,
    } | {rule.name: tensor if rule.per_channel else _true for rule in spare_rules}
    layer = {
        "name": string,
        "shape": list_of(integer, 3),
        "paths": list_of(record(Path, path)),
        "bias": tensor,
        "fraction_bits": integer,
        "neuron": optional(record(Neuron, neuron, optional=[r.name for r in spare_rules])),
        "pool": optional(_window),
        "scale": optional(reals),
        "gamma": optional(number),
        "weight_bits": integer,
    }
    network = {
        "name": string,
        "input": _input,
        "timesteps": integer,
        "weight_bits": integer,
        "layers": list_of(record(Layer, layer, optional=["weight_bits"])),
        "meta": _meta,
        "class_names": _names,
        "held_out": _held_out,
    }
    spare = ("class_names", "held_out")
    with _as_network_error():
        made: Network = record(Network, network, optional=spare)(_parse(manifest), "manifest")
    if unused := sorted(set(tensors) - used):
        raise NetworkError(f"the manifest does not use the tensor {unused[0]!r}")
    made.check_ranges()
    return made


@contextmanager
def _as_network_error() -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        raise NetworkError(str(error)) from None


def _parse(manifest: str) -> Any:
    try:
        return json.loads(
            manifest,
            parse_float=_finite,
            parse_constant=_finite,
            parse_int=_whole,
            object_pairs_hook=unique,
        )
    except RecursionError:
        raise NetworkError("the lists of the manifest are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NetworkError(f"the manifest is not JSON at character {error.pos}") from None
