"""Reads and writes `.lbq` files: one integer network in a safetensors container.

The format is documented in docs/lbq-format.md. This module has the container;
`lbq_hw.network.manifest` turns a network into its contents, and `lbq_hw.network.packing` packs
weights of few bits into bytes. Equal networks give equal bytes. A file that was cut off, altered,
or written by a newer version is refused with a `FileError` of one sentence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray

from lbq_hw.decode import printable
from lbq_hw.network import Network, NetworkError, packing
from lbq_hw.network.manifest import (
    CODES,
    DTYPES,
    Tensors,
    build,
    compact_json,
    convolution_bits,
    describe,
    unique,
)
from lbq_hw.network.neuron import RULES, Rule
from lbq_hw.network.packing import Packed

FORMAT = "lbq"
VERSION = 4
"""The newest version. A file has the oldest version that supports its contents: 2 if weights are
packed, later versions for the features in `_NEEDS`."""
MAX_BYTES = 1 << 28
"""Limit of a file's bytes, and of its tensors' bytes after unpacking: the largest core holds less.
"""
MAX_HEADER = 1 << 24
"""Limit of the bytes of a file's header, including the manifest."""

PACKED_CODE = "U8"
"""The type of packed tensors; no other tensor has it."""

_AGAIN = "export or copy it again"
_REASON = 300  # characters of a reason, which may quote the file
_START = b'{"__metadata__":{"format":"lbq"'


def _follows(rule: Rule) -> Callable[[Network], bool]:
    """Whether neurons of a network follow a rule."""
    return lambda network: any(
        layer.neuron is not None and rule.holds(layer.neuron) for layer in network.layers
    )


_NEEDS: tuple[tuple[str, int, Callable[[Network], bool]], ...] = (
    *((f"{rule.neurons} need", rule.version, _follows(rule)) for rule in RULES if rule.optional),
    ("a full_scale of the input needs", 4, lambda network: network.input.full_scale is not None),
    ("class_names need", 4, lambda network: bool(network.class_names)),
    ("held_out needs", 4, lambda network: network.held_out is not None),
    ("weight_bits of layers need", 4, lambda network: bool(network.narrow_bits)),
)
"""Features that need a version of the format: text, version, and whether a network has it."""


class FileError(ValueError):
    """A file cannot be read or written; the message names it and says what to do."""


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write `network` to `path`, completely or not at all: a failure keeps the old file."""
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
            with contextlib.suppress(OSError):  # already renamed if all went well
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
        found = path.stat()  # before it is opened: a pipe would wait for a writer
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise ValueError("not a plain file")
        if found.st_size <= MAX_BYTES:
            return loads(path.read_bytes(), source=str(path))
    except FileNotFoundError:
        raise FileError(f"{path} does not exist: give the path of an .lbq file") from None
    except FileError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read ({reason}): give a readable .lbq file") from error
    raise FileError(
        f"{path} is too large ({found.st_size} bytes, the most are {MAX_BYTES}): "
        "give a readable .lbq file"
    )


def digest(network: Network) -> str:
    """SHA-256 (hex) of everything that defines `network`; it does not depend on packing."""
    return _digest(*describe(network))


def dumps(network: Network) -> bytes:
    """The bytes of the file that `save` writes."""
    manifest, tensors = describe(network)
    packed = {
        name: Packed(bits=bits, shape=tensors[name].shape)
        for name, bits in convolution_bits(network).items()
        if bits <= packing.MAX_BITS
    }
    version = max((needed for _, needed, has in _NEEDS if has(network)), default=1)
    data, size = _container(manifest, tensors, packed, version=version)
    most = max(len(data), sum(tensor.nbytes for tensor in tensors.values()))
    if size > MAX_HEADER or most > MAX_BYTES:
        raise FileError(
            f"network {network.name!r} is too large for a file ({most} bytes, the most are "
            f"{MAX_BYTES}, and {size} of header, the most are {MAX_HEADER}): make it smaller"
        )
    return data


def _container(
    manifest: str,
    tensors: Tensors,
    packed: Mapping[str, Packed] | None = None,
    *,
    version: int = 1,
) -> tuple[bytes, int]:
    """The bytes of a file, and the length of its header. `packed` tensors are packed, which needs
    version 2; `version` is the version that the manifest needs.
    """
    packed = packed or {}
    metadata = {
        "format": FORMAT,
        "version": str(max(version, 2 if packed else 1)),
        "manifest": manifest,
        "digest": _digest(manifest, tensors),
    }
    if packed:
        metadata["packed"] = packing.write(packed)
    header: dict[str, Any] = {"__metadata__": metadata}
    stored = tensors | {name: packing.pack(tensors[name], packed[name].bits) for name in packed}
    blobs, offset = [], 0
    for name in sorted(stored, key=lambda name: (-stored[name].itemsize, name)):  # all aligned
        blob = stored[name].tobytes()
        header[name] = {
            "dtype": PACKED_CODE if name in packed else CODES[stored[name].dtype],
            "shape": list(stored[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = compact_json(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blobs), len(text)


def loads(data: bytes, *, source: str = "the data") -> Network:
    """The network in the bytes of a file; `source` names them in errors."""
    metadata, length = _parse_header(data, source)
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version)):
        raise FileError(f"{source} is damaged ({_cut(f'its version is {version!r}')}): {_AGAIN}")
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
        packs = version == "2" or (int(version) > 2 and "packed" in metadata)
        packed = packing.read(metadata.get("packed")) if packs else {}
        tensors = _parse_tensors(data, packed)
        actual = _digest(manifest, tensors)
    except (safetensors.SafetensorError, ValueError) as error:
        raise FileError(f"{source} is damaged ({_cut(str(error))}): {_AGAIN}") from error
    if actual != metadata.get("digest"):
        raise FileError(
            f"{source} was altered after it was written (its digest does not match): {_AGAIN}"
        )
    try:
        network = build(manifest, tensors)
        _check_widths(packed, network)
        _check_version(int(version), network)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise FileError(
            f"{source} describes no valid network ({_cut(str(error))}): {_AGAIN}"
        ) from error
    return network


def _check_widths(packed: Mapping[str, Packed], network: Network) -> None:
    wanted = convolution_bits(network)
    for name, one in packed.items():
        if one.bits != (bits := wanted.get(name, network.weight_bits)):
            raise NetworkError(
                f"tensor {name!r} is packed to {one.bits} bits, the weights are of {bits}"
            )


def _check_version(version: int, network: Network) -> None:
    for what, needed, has in _NEEDS:
        if version < needed and has(network):
            raise NetworkError(f"{what} version {needed}, and the file has {version}")


def _cut(reason: str) -> str:
    """A reason as one line of printable characters, cut if too long: it may quote the file."""
    shown = reason if len(reason) <= _REASON else f"{reason[:_REASON]}..."
    return printable(shown)


def _parse_header(data: bytes, source: str) -> tuple[dict[str, Any], int]:
    """The metadata, and the number of bytes that the file must have according to its header."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 + size and _START.startswith(data[8 : 8 + len(_START)]):
        raise FileError(f"{source} is truncated ({len(data)} bytes): {_AGAIN}")
    try:
        if size > MAX_HEADER:
            raise ValueError("a header beyond all bounds")
        header = json.loads(data[8 : 8 + size], object_pairs_hook=unique)
        metadata = header.pop("__metadata__")
        if metadata["format"] != FORMAT:
            raise ValueError("another format")
        ends = [int(entry["data_offsets"][1]) for entry in header.values()]
        if not all(0 <= end < 1 << 63 for end in ends):
            raise ValueError("tensors beyond all bounds")
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise FileError(
            f"{source} is not an .lbq file: make one with `lbq export` or lbq_hw.save(...)"
        ) from None
    return metadata, 8 + size + max(ends, default=0)


def _parse_tensors(data: bytes, packed: Mapping[str, Packed]) -> Tensors:
    """The tensors of a file, unpacked. Their total size is checked before the first is unpacked."""
    found = dict(safetensors.deserialize(data))
    for name, one in packed.items():
        if name not in found:
            raise ValueError(f"packed names the tensor {name!r}, which the file lacks")
        dtype, shape = found[name]["dtype"], found[name]["shape"]
        if dtype != PACKED_CODE or shape != [one.bytes]:
            raise ValueError(
                f"the packed tensor {name!r} must be {PACKED_CODE} of shape [{one.bytes}], not "
                f"{dtype} of {shape}"
            )
    unpacked = sum(
        packed[name].count if name in packed else len(entry["data"])
        for name, entry in found.items()
    )
    if unpacked > MAX_BYTES:
        raise ValueError(f"its tensors unpack to {unpacked} bytes, the most are {MAX_BYTES}")
    return {name: _parse_tensor(name, found[name], packed.get(name)) for name in sorted(found)}


def _parse_tensor(name: str, entry: Mapping[str, Any], packed: Packed | None) -> NDArray[Any]:
    if packed is not None:
        try:
            return packing.unpack(np.frombuffer(entry["data"], np.uint8), packed)
        except ValueError as error:
            raise ValueError(f"the packed tensor {name!r} has {error}") from None
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"tensor {name!r} must not be of type {entry['dtype']}")
    if len(entry["shape"]) > 4:
        raise ValueError(f"tensor {name!r} must have at most 4 axes")
    flat = np.frombuffer(entry["data"], DTYPES[entry["dtype"]])
    flat.flags.writeable = False
    return flat.reshape(entry["shape"])


def _digest(manifest: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """The digest over tensors as version 1 stores them: packing does not change the network."""
    sha = hashlib.sha256(f"{FORMAT} 1\n{manifest}\n".encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{compact_json([name, CODES[tensor.dtype], list(tensor.shape)])}\n".encode())
        sha.update(np.ascontiguousarray(tensor).data)
    return sha.hexdigest()
