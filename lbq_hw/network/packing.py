"""Weights of few bits as bytes: how an `.lbq` file of version 2 stores them.

Codes are stored one after the other along the flattened tensor, each with its lowest bit first, in
two's complement: code i has the bits `i * bits` up to `(i + 1) * bits` of a string in which byte b
holds the bits 8b (its lowest) to 8b + 7. Every width is packed without padding: a field of four
bits for three would waste a quarter, and a file is read as a whole, so single weights need no
addresses. The bits after the last code are 0, so that equal weights give equal bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.decode import DecodeError, check_keys, integer, list_of, require, string
from lbq_hw.network import limits
from lbq_hw.network.manifest import compact_json, unique

MAX_BITS = 4
"""The widest weights that are packed: wider ones fill most of their bytes anyway."""
_MIN_BITS = 2
_GROUP = 8  # codes that fill whole bytes, whatever their width


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A packed tensor: the `bits` of each code and the `shape` that the codes have."""

    bits: int
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the packed tensor."""
        return -(-self.count * self.bits // 8)


def write(packed: Mapping[str, Packed]) -> str:
    """The text of a file's `packed` entry: which tensors are packed, and how."""
    return compact_json(
        {name: {"bits": one.bits, "shape": list(one.shape)} for name, one in packed.items()}
    )


def read(text: Any) -> dict[str, Packed]:
    """Parse the text of `write`; DecodeError for any other text."""
    text = string(text, "packed")
    try:
        found = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise DecodeError("packed must be JSON in which no key comes twice") from None
    require(isinstance(found, dict), "packed", "an object", found)
    return {name: _read_one(value, f"packed[{name!r}]") for name, value in found.items()}


def _read_one(value: Any, place: str) -> Packed:
    check_keys(value, place, ("bits", "shape"))
    bits = integer(value["bits"], f"{place}.bits")
    require(_MIN_BITS <= bits <= MAX_BITS, f"{place}.bits", f"{_MIN_BITS}..{MAX_BITS}", bits)
    shape = list_of(integer, 4)(value["shape"], f"{place}.shape")
    most = limits.MAX_CHANNELS
    fits = all(1 <= side <= most for side in shape)
    require(fits, f"{place}.shape", f"1..{most} along every axis", list(shape))
    return Packed(bits=bits, shape=shape)


def pack(codes: NDArray[np.int8], bits: int) -> NDArray[np.uint8]:
    """The bytes of `codes`, each of which must fit `bits` bits."""
    groups = np.zeros((-(-codes.size // _GROUP), _GROUP), np.uint8)
    groups.reshape(-1)[: codes.size] = codes.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    rows = np.zeros((len(groups), bits), np.uint8)
    for place in range(_GROUP):
        byte, shift = divmod(place * bits, 8)
        word = groups[:, place].astype(np.uint16) << shift
        rows[:, byte] |= (word & 255).astype(np.uint8)
        if shift + bits > 8:
            rows[:, byte + 1] |= (word >> 8).astype(np.uint8)
    return rows.reshape(-1)[: -(-codes.size * bits // 8)]


def unpack(data: NDArray[np.uint8], packed: Packed) -> NDArray[np.int8]:
    """The codes in the bytes `data`, read-only. ValueError if `pack` cannot write these bytes."""
    if data.size != packed.bytes:
        raise ValueError(f"{data.size} bytes for {packed.count} weights of {packed.bits} bits")
    used = packed.count * packed.bits % 8
    if used and data[-1] >> used:
        raise ValueError("bits after its last weight that are not 0")
    rows = np.zeros((-(-packed.count // _GROUP), packed.bits), np.uint8)
    rows.reshape(-1)[: data.size] = data
    codes = np.empty((len(rows), _GROUP), np.int8)
    for place in range(_GROUP):
        byte, shift = divmod(place * packed.bits, 8)
        word = rows[:, byte].astype(np.uint16)
        if shift + packed.bits > 8:
            word |= rows[:, byte + 1].astype(np.uint16) << 8
        top = (word >> shift).astype(np.uint8) << (8 - packed.bits)
        codes[:, place] = top.view(np.int8) >> (8 - packed.bits)  # the highest bit is the sign
    codes.flags.writeable = False
    return codes.reshape(-1)[: packed.count].reshape(packed.shape)
