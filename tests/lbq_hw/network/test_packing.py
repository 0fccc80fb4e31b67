"""Packed weights: every code of every width comes back, and equal networks have equal files."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw import file, golden, zoo
from lbq_hw.decode import DecodeError
from lbq_hw.network import Network, packing
from lbq_hw.network.manifest import convolution_bits, describe
from lbq_hw.network.packing import Packed
from lbq_hw.sim.drawn.networks import random_network, with_narrow_layers


def header_of(data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size])


def naive(codes: list[int], bits: int) -> bytes:
    """The bits of all codes as one integer, which has its lowest byte first."""
    total = sum(code % (1 << bits) << (index * bits) for index, code in enumerate(codes))
    return total.to_bytes(-(-len(codes) * bits // 8), "little")


@pytest.mark.parametrize("bits", [2, 3, 4])
@given(data=st.data())
def test_codes_lie_one_behind_the_other_lowest_bits_first(bits: int, data: st.DataObject) -> None:
    code = st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    codes = data.draw(st.lists(code, min_size=1, max_size=40))
    array = np.array(codes, np.int8)
    stored = packing.pack(array, bits)
    assert stored.tobytes() == naive(codes, bits)
    back = packing.unpack(stored, Packed(bits=bits, shape=(len(codes), 1, 1, 1)))
    assert back.dtype == np.int8
    assert back.reshape(-1).tolist() == codes


def test_the_first_of_two_four_bit_weights_lies_in_the_low_half_of_the_byte() -> None:
    assert packing.pack(np.array([1, -1, 7], np.int8), 4).tobytes() == b"\xf1\x07"


def test_unpacked_weights_cannot_be_changed_so_that_nobody_copies_them() -> None:
    codes = packing.unpack(np.array([0x21], np.uint8), Packed(bits=4, shape=(2, 1, 1, 1)))
    assert not codes.flags.writeable
    assert isinstance(codes.base, np.ndarray)
    assert not codes.base.flags.writeable


@pytest.mark.parametrize("size", [0, 1, 3])
def test_bytes_of_another_number_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"^{size} bytes for 5 weights of 3 bits$"):
        packing.unpack(np.zeros(size, np.uint8), Packed(bits=3, shape=(5, 1, 1, 1)))


@pytest.mark.parametrize("last", [0x80, 0xFF])
def test_bits_behind_the_last_weight_are_refused(last: int) -> None:
    data, five = np.array([0, last], np.uint8), Packed(bits=3, shape=(5, 1, 1, 1))
    with pytest.raises(ValueError, match=r"^bits after its last weight that are not 0$"):
        packing.unpack(data, five)
    data[1] &= 0x7F
    assert packing.unpack(data, five).shape == five.shape


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "packed must be a string, not None"),
        ("{", "packed must be JSON in which no key comes twice"),
        ('{"w": 1, "w": 2}', "packed must be JSON in which no key comes twice"),
        ("[" * 100_000, "packed must be JSON in which no key comes twice"),
        ("9" * 5_000, "packed must be JSON in which no key comes twice"),
        ("[]", "packed must be an object, not []"),
        ('{"w": 4}', "packed['w'] must be an object, not 4"),
        ('{"w": {"bits": 4}}', "packed['w'] lacks the key 'shape'"),
        (
            '{"w": {"bits": 4, "shape": [1, 1, 1, 1], "type": 1}}',
            "packed['w'] has the unknown key 'type'",
        ),
        ('{"w": {"bits": 5, "shape": [1, 1, 1, 1]}}', "packed['w'].bits must be 2..4, not 5"),
        ('{"w": {"bits": 1, "shape": [1, 1, 1, 1]}}', "packed['w'].bits must be 2..4, not 1"),
        (
            '{"w": {"bits": true, "shape": [1, 1, 1, 1]}}',
            "packed['w'].bits must be an integer, not True",
        ),
        ('{"w": {"bits": 4, "shape": [1]}}', "packed['w'].shape must be a list of 4, not [1]"),
        (
            '{"w": {"bits": 4, "shape": [0, 1, 1, 1]}}',
            "packed['w'].shape must be 1..32768 along every axis, not [0, 1, 1, 1]",
        ),
        (
            '{"w": {"bits": 4, "shape": [32769, 1, 1, 1]}}',
            "packed['w'].shape must be 1..32768 along every axis, not [32769, 1, 1, 1]",
        ),
    ],
)
def test_a_list_of_packed_tensors_that_makes_no_sense_is_refused(text: Any, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        packing.read(text)
    assert str(caught.value) == reason


def as_version_1(network: Network) -> bytes:
    """The file of a network without packing, as the first version has it."""
    return file._container(*describe(network))[0]


def subtracting(network: Network) -> Network:
    """The same, but all neurons reset by subtraction alone: the first version knows no other."""
    layers = [
        replace(layer, neuron=layer.neuron and replace(layer.neuron, to_zero=False, floor=None))
        for layer in network.layers
    ]
    return replace(network, layers=tuple(layers))


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("seed", range(20))
def test_a_random_network_comes_back_from_both_versions_with_one_digest(
    seed: int, bits: int
) -> None:
    network = subtracting(random_network(seed, weight_bits=bits))
    new, old = file.dumps(network), as_version_1(network)
    assert header_of(new)["__metadata__"]["version"] == "2"
    assert header_of(old)["__metadata__"]["version"] == "1"
    for data in (new, old):
        loaded = file.loads(data)
        assert file.digest(loaded) == file.digest(network)
        assert file.dumps(loaded) == new  # equal networks have equal files, wherever they come from
        for layer, wanted in zip(loaded.layers, network.layers, strict=True):
            for path, other in zip(layer.paths, wanted.paths, strict=True):
                np.testing.assert_array_equal(path.weight, other.weight, strict=True)


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_the_weights_of_all_convolutions_are_packed_and_nothing_else(bits: int) -> None:
    network = random_network(7, weight_bits=bits)
    assert any(path.is_identity for layer in network.layers for path in layer.paths)
    header = header_of(file.dumps(network))
    packed = json.loads(header.pop("__metadata__")["packed"])
    assert sorted(packed) == sorted(convolution_bits(network))
    assert {name for name, entry in header.items() if entry["dtype"] == "U8"} == set(packed)
    for name, one in packed.items():
        assert one["bits"] == bits
        assert header[name]["shape"] == [-(-math.prod(one["shape"]) * bits // 8)]


@pytest.mark.parametrize("seed", range(5))
def test_layers_of_fewer_bits_are_packed_to_their_own(seed: int) -> None:
    network = with_narrow_layers(random_network(seed), seed)
    data = file.dumps(network)
    header = header_of(data)
    metadata = header.pop("__metadata__")
    packed = json.loads(metadata["packed"])
    few = {name: bits for name, bits in convolution_bits(network).items() if bits <= 4}
    assert metadata["version"] == "4"
    assert {name: one["bits"] for name, one in packed.items()} == few
    loaded = file.loads(data)
    assert [layer.weight_bits for layer in loaded.layers] == [
        layer.weight_bits for layer in network.layers
    ]
    assert file.dumps(loaded) == data


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bits", [5, 8])
def test_wider_weights_are_stored_as_version_1_stores_them(seed: int, bits: int) -> None:
    network = subtracting(random_network(seed, weight_bits=bits))
    assert file.dumps(network) == as_version_1(network)


@pytest.mark.parametrize("name", ["digits", "mnist", "mnist-4bit", "nmnist"])
def test_a_shipped_file_is_what_would_be_written_today(name: str) -> None:
    assert file.dumps(file.load(zoo.find(name))) == zoo.find(name).read_bytes()


def test_the_first_version_of_a_shipped_file_still_reads() -> None:
    """Its SHA-256 is that of the file that shipped before there was packing."""
    network = file.load(zoo.find("mnist-4bit"))
    old = as_version_1(network)
    assert (
        hashlib.sha256(old).hexdigest()
        == "8cad15c0ddd5dd77d572705f7de37ef58d388121a858a3eed29a094a44da7d80"
    )
    raw = np.random.default_rng(1).integers(0, 256, (2, *network.input.shape), dtype=np.uint8)
    wanted = golden.run(network, raw).logits
    np.testing.assert_array_equal(golden.run(file.loads(old), raw).logits, wanted)
    assert len(old) - len(file.dumps(network)) > 8_000
