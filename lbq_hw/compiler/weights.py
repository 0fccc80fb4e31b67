"""Weight rows, each the P weights that one event reads, in the order in which runs use them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.config import CoreConfig
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import row_slices, weight_slice_bits
from lbq_hw.numeric import Integers


def tile_count(channels: int, lanes: int) -> int:
    return -(-channels // lanes)


def conv_rows(weight: NDArray[Any], *, lanes: int, pitch: int, row_rows: int) -> Integers:
    """``(out, in, kh, kw)`` -> ``(tiles * kh * row_rows, lanes)``.

    A kernel row takes `row_rows` rows: kw pixels of `pitch` channels, then padding. Channels that
    pad the pitch have rows of zeros: their bits are never set, but a run counts these rows.
    """
    outputs, inputs, height, width = weight.shape
    tiles = tile_count(outputs, lanes)
    full = np.zeros((tiles * lanes, height, width, pitch), np.int64)
    full[:outputs, ..., :inputs] = np.moveaxis(weight, 1, -1)
    rows = np.zeros((tiles, height, row_rows, lanes), np.int64)
    kernel_rows = full.reshape(tiles, lanes, height, width * pitch)
    rows[:, :, : width * pitch] = np.moveaxis(kernel_rows, 1, -1)
    return rows.reshape(-1, lanes)


def limbs(weight: NDArray[Any], *, lanes: int, weight_bits: int) -> list[tuple[int, Integers]]:
    """Identity weights ``(C,)`` as ``(exponent, rows (tiles, lanes))``, zero limbs left out.

    ``weight = sum of 2**exponent * limb``. Limbs are cut from the top, so that their exponents stay
    low and cost few doublings. A limb has the sign of its weight, so that no partial sum is larger
    in magnitude than the whole. All weights 0 still make one limb.
    """
    padded = np.zeros(tile_count(len(weight), lanes) * lanes, np.int64)
    padded[: len(weight)] = weight
    signs, rest = np.sign(padded), np.abs(padded)
    found = []
    while not found or rest.any():
        exponent = max(0, int(rest.max()).bit_length() - (weight_bits - 1))
        found.append((exponent, (signs * (rest >> exponent)).reshape(-1, lanes)))
        rest &= (1 << exponent) - 1
    return found


def slices(rows: Integers, config: CoreConfig, bits: int) -> NDArray[np.uint32]:
    """Weight rows ``(rows, P)`` as 32-bit slices ``(rows, slices)``: the lowest `bits` of each
    weight, packed without gaps into as many bits of a slice as rows of the core use.
    """
    used, count = weight_slice_bits(config), row_slices(config, bits)
    places = np.arange(bits, dtype=np.int16)
    ones = (rows.astype(np.int16)[..., None] >> places & 1).astype(np.uint8)
    ones = ones.reshape(len(rows), -1)
    ones = np.pad(ones, ((0, 0), (0, count * used - ones.shape[1]))).reshape(-1, count, used)
    whole = np.pad(ones, ((0, 0), (0, 0), (0, SLICE - used)))
    return np.packbits(whole, axis=2, bitorder="little").view("<u4")[..., 0].astype(np.uint32)
