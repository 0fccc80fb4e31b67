# amaranth: UnusedElaboratable=no
"""A model of Writer, the address arithmetic of the activation memory, and random levels for it."""

from __future__ import annotations

import random

from lbq_hw.config import Profile, granule_bits
from lbq_hw.core.memory.writer import CompactWriter, Writer
from lbq_hw.core.payload import LayerInfo, WriteInfo

PLANE_BITS = 10


def build(*, lanes: int, word: int, planes: int, profile: Profile = Profile.STANDARD) -> Writer:
    write, layer = layouts(lanes=lanes, word=word, planes=planes)
    kind = CompactWriter if profile is Profile.COMPACT else Writer
    return kind(lanes=lanes, word=word, plane_bits=PLANE_BITS, write=write, layer=layer)


def layouts(*, lanes: int, word: int, planes: int) -> tuple[WriteInfo, LayerInfo]:
    bits = PLANE_BITS + 1
    layer = LayerInfo(
        lanes=lanes, planes=planes, address_bits=bits, update_bits=1, decay_bits=0, shift_bits=1
    )
    return WriteInfo(lanes=lanes, word=word, address_bits=bits), layer


def random_planes(
    source: random.Random, count: int, *, lanes: int, word: int, planes: int
) -> tuple[dict[str, int], list[dict]]:
    """A layer, and chunks for all its positions; further timesteps follow some of them."""
    granule = granule_bits(lanes)
    granules = 1 << source.randrange((lanes // granule).bit_length())
    layer = {"granules": granules, "planes": source.randrange(1, planes + 1)}
    layer["stride"] = source.randrange(20)
    payloads: list[dict] = []
    write: dict = {}
    for i in range(count):
        restart = int(i == 0 or source.randrange(3) == 0)
        if restart:
            place = source.randrange(0, word // granule, granules)
            write = {"place": place, "first": int(place == 0)}
            write["addr"] = source.randrange(1 << PLANE_BITS - 1)
        levels = [source.getrandbits(lanes) for _ in range(planes)]
        payloads.append({"planes": levels, "restart": restart, "write": write})
    return layer, payloads


def golden(
    layer: dict[str, int], payloads: list[dict], lanes: int
) -> list[tuple[int, int, int, int, int]]:
    """Word, bit offset, length, bits and first flag of every write."""
    granule = granule_bits(lanes)
    writes = []
    frame = 0
    for payload in payloads:
        write = payload["write"]
        frame = 0 if payload["restart"] else frame + 1
        length = layer["granules"] * granule
        for k in range(layer["planes"]):
            addr = write["addr"] + (frame * layer["planes"] + k) * layer["stride"]
            bits = payload["planes"][k] % (1 << length)
            place = write["place"] * granule
            writes.append((addr % (1 << PLANE_BITS), place, length, bits, write["first"]))
    return writes


def decode(write: dict, lanes: int) -> tuple[int, int, int, int, int]:
    """A write in the form of `golden`."""
    granule = granule_bits(lanes)
    enabled = [i for i in range(write["enable"].bit_length()) if write["enable"] >> i & 1]
    assert enabled == list(range(enabled[0], enabled[-1] + 1))
    place, length = enabled[0] * granule, len(enabled) * granule
    bits = (write["data"] >> place) % (1 << length)
    return write["addr"], place, length, bits, write["first"]
