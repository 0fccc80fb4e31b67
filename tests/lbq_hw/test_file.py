"""`.lbq` files: what is written is read back, and nothing else is accepted."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import resource
import stat
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbq_hw import file
from lbq_hw.file import FileError
from lbq_hw.network import HeldOut, Input, Layer, Network, NetworkError, Neuron, Path, Window
from lbq_hw.network.manifest import describe


def vector(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def codes(*shape: int) -> Any:
    """Weights of every 4-bit code."""
    return (np.arange(math.prod(shape)) * 4 % 15 - 7).reshape(shape)


def example(**changes: Any) -> Network:
    """Every feature of the format in one small network."""
    first = Layer(
        name="conv1",
        shape=(3, 4, 6),
        paths=(
            Path(
                source="input",
                weight=codes(3, 2, 3, 3),
                stride=(2, 1),
                padding=(1, 0),
                exponent=2,
            ),
        ),
        bias=vector(-5, 0, 300),
        fraction_bits=4,
        neuron=Neuron(
            capacity=5,
            theta=vector(7, 8, 70_000),
            reset=vector(6, 8, 1 << 40),
            decay=3,
            decay_bits=2,
        ),
        pool=Window(kernel=(2, 2), stride=(2, 3), padding=(0, 1)),
        scale=np.array([0.1, 1 / 3, 5e-324]),
        gamma=0.1,
    )
    shape = first.output_shape
    second = Layer(
        name="blöck/2",
        shape=shape,
        paths=(
            Path(source="conv1", weight=codes(3, 3, 1, 1)),
            Path(source="conv1", weight=vector(-300, 0, 5)),
        ),
        bias=vector(0, 0, 0),
        fraction_bits=0,
        neuron=Neuron(
            capacity=1, theta=vector(1, 1, 1), reset=vector(0, 1, 2), decay=0, decay_bits=0
        ),
    )
    pool = Window(kernel=shape[1:], stride=(1, 1))
    readout = Layer(
        name="fc",
        shape=(2, 1, 1),
        paths=(Path(source="blöck/2", weight=codes(2, 3, 1, 1), pool=pool),),
        bias=vector(1, -1),
        fraction_bits=0,
        neuron=None,
    )
    fields: dict[str, Any] = {
        "name": "example",
        "input": Input(
            shape=(2, 5, 6), static=True, bits=4, shift=4, border=1, border_value=(7, 0)
        ),
        "timesteps": 2,
        "weight_bits": 4,
        "layers": (first, second, readout),
        "meta": {"epochs": [1, 2.5, None], "a": {"z": True, "b": "x"}},
    }
    return Network(**fields | changes)


def fields(value: Any) -> Any:
    """A comparable image of a network, types of arrays and numbers included."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if dataclasses.is_dataclass(value):
        return {
            field.name: fields(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        return tuple(fields(item) for item in value)
    return type(value), value


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def with_header(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_metadata(**changes: str | None) -> bytes:
    header, body = header_of(file.dumps(example()))
    header["__metadata__"] |= changes
    return with_header(header, body)


def with_manifest(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A file whose manifest was changed and whose digest is right all the same."""
    text, tensors = describe(example())
    manifest = json.loads(text)
    change(manifest)
    text = json.dumps(manifest)
    return with_metadata(manifest=text, digest=file._digest(text, tensors))


def error_of(data: bytes) -> str:
    with pytest.raises(FileError) as caught:
        file.loads(data, source="net.lbq")
    return str(caught.value)


def test_a_saved_network_loads_equal_in_every_field_and_digest(tmp_path: FilePath) -> None:
    network = example()
    file.save(network, tmp_path / "net.lbq")
    loaded = file.load(tmp_path / "net.lbq")
    assert fields(loaded) == fields(network)
    assert file.digest(loaded) == file.digest(network)


def test_defaults_and_a_temporal_input_survive_the_round_trip() -> None:
    plain = example(input=Input(shape=(2, 7, 8), static=False, bits=8), meta={})
    assert fields(file.loads(file.dumps(plain))) == fields(plain)


def test_the_same_network_saved_twice_gives_identical_files(tmp_path: FilePath) -> None:
    file.save(example(meta={"a": 1, "b": 2}), tmp_path / "one.lbq")
    file.save(example(meta={"b": 2, "a": 1}), tmp_path / "two.lbq")
    assert (tmp_path / "one.lbq").read_bytes() == (tmp_path / "two.lbq").read_bytes()


def test_the_digest_in_the_file_is_that_of_the_network() -> None:
    header, _ = header_of(file.dumps(example()))
    assert header["__metadata__"]["digest"] == file.digest(example())


def test_the_digest_changes_with_the_name_a_scalar_and_a_tensor() -> None:
    layers = example().layers
    changed = dataclasses.replace(layers[-1], bias=vector(1, 0))
    networks = [
        example(),
        example(name="other"),
        example(timesteps=3),
        example(layers=(*layers[:-1], changed)),
    ]
    assert len({file.digest(network) for network in networks}) == len(networks)


def test_the_digest_is_pinned_so_that_a_change_of_format_is_noticed() -> None:
    assert (
        file.digest(example()) == "05ab12ba1ce9e95e041da4bb9e785fcac4fdbeb5b48a62feaf22da67beb4f3ae"
    )


def test_integers_are_stored_in_the_narrowest_type_and_every_tensor_is_aligned() -> None:
    header, body = header_of(file.dumps(example()))
    del header["__metadata__"]
    assert {name: entry["dtype"] for name, entry in header.items()} == {
        "conv1/scale": "F64",
        "conv1/reset": "I64",
        "conv1/theta": "I32",
        "blöck/2/path1/weight": "I16",
        "conv1/bias": "I16",
        "blöck/2/bias": "I8",
        "blöck/2/path0/weight": "U8",
        "blöck/2/reset": "I8",
        "blöck/2/theta": "I8",
        "conv1/path0/weight": "U8",
        "fc/bias": "I8",
        "fc/path0/weight": "U8",
    }
    assert (len(file.dumps(example())) - len(body)) % 8 == 0
    for entry in header.values():
        assert entry["data_offsets"][0] % (int(entry["dtype"][1:]) // 8) == 0


def test_saving_over_a_file_replaces_it_and_leaves_nothing_else(tmp_path: FilePath) -> None:
    target = tmp_path / "net.lbq"
    target.write_bytes(b"old")
    file.save(example(), target)
    assert file.load(target).name == "example"
    assert os.listdir(tmp_path) == ["net.lbq"]


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path: FilePath) -> None:
    (tmp_path / "other").touch()
    file.save(example(), tmp_path / "net.lbq")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: FilePath,
) -> None:
    target = tmp_path / "net.lbq"
    target.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(FileError) as caught:
            file.save(example(), target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == (
        f"{target} cannot be written (File too large): choose a folder that exists and has room"
    )
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["net.lbq"]


def test_saving_into_a_folder_that_does_not_exist_is_one_sentence(tmp_path: FilePath) -> None:
    target = tmp_path / "none" / "net.lbq"
    message = (
        f"{target} cannot be written (No such file or directory): "
        "choose a folder that exists and has room"
    )
    with pytest.raises(FileError, match=f"^{re.escape(message)}$"):
        file.save(example(), target)


def test_loading_a_file_that_does_not_exist_is_one_sentence(tmp_path: FilePath) -> None:
    path = tmp_path / "net.lbq"
    with pytest.raises(FileError) as caught:
        file.load(path)
    assert str(caught.value) == f"{path} does not exist: give the path of an .lbq file"


def test_loading_a_folder_is_one_sentence(tmp_path: FilePath) -> None:
    with pytest.raises(FileError) as caught:
        file.load(tmp_path)
    message = f"{tmp_path} cannot be read (Is a directory): give a readable .lbq file"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "data",
    [
        b"hello world, this is a text",
        b"\0" * 100,
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        with_header({"__metadata__": {"format": "pt"}}, b""),
        with_header({"__metadata__": {"format": "lbq"}, "x": {"data_offsets": [0]}}, b""),
        b"\x40\x9c\0\0\0\0\0\0" + b"[" * 40_000,
    ],
    ids=["text", "zeros", "no metadata", "no object", "other", "no offsets", "deep"],
)
def test_another_kind_of_file_is_named_as_such(data: bytes) -> None:
    message = "net.lbq is not an .lbq file: make one with `lbq export` or lbq_hw.save(...)"
    assert error_of(data) == message


@pytest.mark.parametrize("size", [0, 5, 8, 30, 100])
def test_a_file_cut_off_in_its_header_is_truncated(size: int) -> None:
    message = f"net.lbq is truncated ({size} bytes): export or copy it again"
    assert error_of(file.dumps(example())[:size]) == message


def test_a_file_cut_off_in_its_data_is_truncated() -> None:
    data = file.dumps(example())
    message = (
        f"net.lbq is truncated ({len(data) - 1} of {len(data)} bytes): export or copy it again"
    )
    assert error_of(data[:-1]) == message


def test_a_file_of_a_newer_version_asks_for_an_update() -> None:
    assert error_of(with_metadata(version="5")) == (
        "net.lbq was written by a newer lbq-hw (version 5, this one reads 4): update lbq-hw"
    )


def resetting_to_zero() -> Network:
    net = example()
    first = net.layers[0]
    assert first.neuron is not None
    cell = dataclasses.replace(first.neuron, to_zero=True, reset=0 * first.neuron.reset)
    first = dataclasses.replace(first, neuron=cell)
    return dataclasses.replace(net, layers=(first, *net.layers[1:]))


@pytest.mark.parametrize("bits", [4, 8])
def test_a_reset_to_zero_makes_a_file_of_version_3(bits: int) -> None:
    saved = dataclasses.replace(resetting_to_zero(), weight_bits=bits)
    data = file.dumps(saved)
    assert header_of(data)[0]["__metadata__"]["version"] == "3"
    assert fields(file.loads(data)) == fields(saved)
    assert file.digest(saved) != file.digest(dataclasses.replace(example(), weight_bits=bits))


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_reset_to_zero_in_a_file_of_an_older_version_is_refused(version: str) -> None:
    saved = dataclasses.replace(resetting_to_zero(), weight_bits=8)
    header, body = header_of(file.dumps(saved))
    header["__metadata__"] |= {"version": version} | ({"packed": "{}"} if version == "2" else {})
    assert error_of(with_header(header, body)) == (
        "net.lbq describes no valid network (neurons that reset to zero need version 3, and the "
        f"file has {version}): export or copy it again"
    )


def test_a_reset_to_zero_that_is_false_is_left_out() -> None:
    assert error_of(with_manifest(lambda m: m["layers"][0]["neuron"].update(to_zero=False))) == (
        "net.lbq describes no valid network (manifest.layers[0].neuron.to_zero must be true, or "
        "left out, not False): export or copy it again"
    )


def clamped() -> Network:
    net = example()
    first = net.layers[0]
    assert first.neuron is not None
    floor = -np.arange(first.shape[0])
    first = dataclasses.replace(first, neuron=dataclasses.replace(first.neuron, floor=floor))
    return dataclasses.replace(net, layers=(first, *net.layers[1:]))


def test_a_network_without_a_floor_is_written_as_before_there_were_floors() -> None:
    net, first = clamped(), clamped().layers[0]
    assert first.neuron is not None
    free = dataclasses.replace(first, neuron=dataclasses.replace(first.neuron, floor=None))
    without = dataclasses.replace(net, layers=(free, *net.layers[1:]))
    assert file.dumps(without) == file.dumps(example())
    assert b"floor" not in file.dumps(without)


FULL_SCALE = Input(
    shape=(2, 5, 6), static=True, bits=4, shift=4, border=1, border_value=(7, 0), full_scale=240
)


def narrow_layers() -> tuple[Layer, ...]:
    first, *others = example().layers
    paths = tuple(dataclasses.replace(p, weight=p.weight.clip(-3, 3)) for p in first.paths)
    return (dataclasses.replace(first, paths=paths, weight_bits=3), *others)


HELD_OUT = HeldOut(data=64 * "a", count=10, indices=(0, 3, 9))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"input": FULL_SCALE}, "a full_scale of the input needs"),
        ({"class_names": ("süß", "not süß")}, "class_names need"),
        ({"held_out": HELD_OUT}, "held_out needs"),
        ({"layers": clamped().layers}, "neurons whose membranes have a floor need"),
        ({"layers": narrow_layers()}, "weight_bits of layers need"),
    ],
)
def test_what_a_user_means_makes_a_file_of_version_4(
    bits: int, changes: dict[str, Any], what: str
) -> None:
    saved = dataclasses.replace(example(), weight_bits=bits, **changes)
    data = file.dumps(saved)
    header, body = header_of(data)
    assert header["__metadata__"]["version"] == "4"
    assert fields(file.loads(data)) == fields(saved)
    assert file.digest(saved) != file.digest(dataclasses.replace(example(), weight_bits=bits))
    header["__metadata__"]["version"] = "3"
    assert error_of(with_header(header, body)) == (
        f"net.lbq describes no valid network ({what} version 4, and the file has 3): "
        "export or copy it again"
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("class_names", [], "manifest.class_names must be one name per class, or left out, not []"),
        ("class_names", None, "manifest.class_names must be a list, not None"),
        ("class_names", ["a"], "class_names must be 2 names, one per class, not 1"),
        ("class_names", ["a", 1], "manifest.class_names[1] must be a string, not 1"),
        ("class_names", ["a", "a"], "two classes have the name 'a'"),
        (
            "class_names",
            ["a", "b\n"],
            "a class's name must be 1 to 200 printable characters, not 'b\\n'",
        ),
        ("class_names", ["a", ""], "a class's name must be 1 to 200 printable characters, not ''"),
        ("held_out", None, "manifest.held_out must be an object, not None"),
        (
            "held_out",
            {"data": "A" * 64, "count": 2, "indices": [0]},
            f"held_out data must be a SHA-256 in lower-case hexadecimal, not {64 * 'A'!r}",
        ),
        (
            "held_out",
            {"data": "a" * 64, "count": 0, "indices": [0]},
            "held_out count must be an integer of 1..16777216, not 0",
        ),
        (
            "held_out",
            {"data": "a" * 64, "count": 2, "indices": []},
            "held_out indices must be 1 to 1048576, not 0",
        ),
        *(
            (
                "held_out",
                {"data": "a" * 64, "count": 3, "indices": indices},
                "held_out indices must be integers of 0..2, in ascending order",
            )
            for indices in ([-1], [3], [1, 0], [1, 1])
        ),
    ],
)
def test_meanings_that_cannot_be_are_refused(key: str, value: Any, reason: str) -> None:
    assert error_of(with_manifest(lambda manifest: manifest.update({key: value}))) == (
        f"net.lbq describes no valid network ({reason}): export or copy it again"
    )


@pytest.mark.parametrize("value", [0, 256])
def test_a_full_scale_that_no_raw_value_has_is_refused(value: int) -> None:
    data = with_manifest(lambda manifest: manifest["input"].update(full_scale=value))
    assert error_of(data) == (
        "net.lbq describes no valid network (input full_scale must be an integer of 1..255, which "
        f"4 bits and a shift of 4 keep, not {value}): export or copy it again"
    )


def test_a_full_scale_that_is_saturated_is_refused() -> None:
    with pytest.raises(NetworkError) as caught:
        Input(shape=(1, 8, 8), static=True, bits=4, full_scale=16)
    assert str(caught.value) == (
        "input full_scale must be an integer of 1..15, which 4 bits and a shift of 0 keep, not 16"
    )


@pytest.mark.parametrize("version", [None, "", "0", "one", "1.5", "²"])
def test_a_version_that_is_no_number_is_damage(version: str | None) -> None:
    message = f"net.lbq is damaged (its version is {version!r}): export or copy it again"
    assert error_of(with_metadata(version=version)) == message


def test_what_a_reason_quotes_is_cut() -> None:
    shown = "its version is '" + 284 * "9"
    message = f"net.lbq is damaged ({shown}...): export or copy it again"
    assert error_of(with_metadata(version="9" * 5000)) == message


def test_a_missing_manifest_is_damage() -> None:
    message = "net.lbq is damaged (it has no manifest): export or copy it again"
    assert error_of(with_metadata(manifest=None)) == message


def test_bytes_after_the_last_tensor_are_damage() -> None:
    message = error_of(file.dumps(example()) + b"x")
    assert re.fullmatch(r"net\.lbq is damaged \(.+\): export or copy it again", message)


def test_a_tensor_type_that_the_format_does_not_know_is_damage() -> None:
    header, body = header_of(file.dumps(example()))
    header["fc/bias"]["dtype"] = "U8"
    assert error_of(with_header(header, body)) == (
        "net.lbq is damaged (tensor 'fc/bias' must not be of type U8): export or copy it again"
    )


def test_one_changed_weight_is_noticed() -> None:
    data = bytearray(file.dumps(example()))
    data[-1] ^= 1
    assert error_of(bytes(data)) == (
        "net.lbq was altered after it was written (its digest does not match): "
        "export or copy it again"
    )


def test_a_changed_manifest_is_noticed() -> None:
    data = file.dumps(example()).replace(rb"\"timesteps\":2", rb"\"timesteps\":3")
    assert "its digest does not match" in error_of(data)


def put(*keys: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("colour", value=1), "manifest has the unknown key 'colour'"),
        (
            put("layers", 0, "neuron", "leak", value=1),
            "manifest.layers[0].neuron has the unknown key 'leak'",
        ),
        (lambda manifest: manifest.pop("timesteps"), "manifest lacks the key 'timesteps'"),
        (put("input", value=[]), "manifest.input must be an object, not []"),
        (put("layers", value={}), "manifest.layers must be a list, not {}"),
        (put("timesteps", value=True), "manifest.timesteps must be an integer, not True"),
        (put("timesteps", value=2.0), "manifest.timesteps must be an integer, not 2.0"),
        (put("timesteps", value=0), "timesteps must be an integer of 1..4096, not 0"),
        (put("weight_bits", value=1), "weight bits must be between 2 and 16, not 1"),
        (put("input", "static", value=1), "manifest.input.static must be true or false, not 1"),
        (
            put("layers", 0, "pool", "kernel", value=[2]),
            "manifest.layers[0].pool.kernel must be a list of 2, not [2]",
        ),
        (
            put("layers", 0, "bias", value="conv1/none"),
            "manifest.layers[0].bias must name a tensor of the file, not 'conv1/none'",
        ),
        (
            put("layers", 0, "scale", value="conv1/bias"),
            "manifest.layers[0].scale must be F64, not I16",
        ),
        (
            put("layers", 0, "scale", value=None),
            "the manifest does not use the tensor 'conv1/scale'",
        ),
        (
            put("layers", 0, "gamma", value=math.inf),
            "manifest numbers must be finite, not Infinity",
        ),
        (
            put("layers", 1, "paths", 0, "source", value="conv9"),
            "layer 'blöck/2': reads 'conv9', which no earlier layer makes",
        ),
        (
            put("layers", 0, "bias", value="conv1/scale"),
            "layer 'conv1': bias must be integers, not float64",
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(change: Any, reason: str) -> None:
    assert error_of(with_manifest(change)) == (
        f"net.lbq describes no valid network ({reason}): export or copy it again"
    )


@pytest.mark.parametrize("meta", [{1: "a"}, {"a": (1, 2)}])
def test_meta_that_json_would_change_is_refused_when_saving(meta: Any) -> None:
    message = "network meta must be JSON values: string keys, lists and no tuples"
    with pytest.raises(NetworkError, match=f"^{re.escape(message)}$"):
        file.dumps(example(meta=meta))


@pytest.mark.parametrize("meta", [{"a": math.nan}, {"a": {1, 2}}])
def test_meta_that_json_cannot_hold_is_refused_when_saving(meta: Any) -> None:
    with pytest.raises(NetworkError, match=r"^network meta must be JSON values \(.+\)$"):
        file.dumps(example(meta=meta))


DATA = file.dumps(example())
HEADER = 8 + int.from_bytes(DATA[:8], "little")


@given(data=st.data())
def test_damaged_bytes_give_an_error_or_the_same_network(data: st.DataObject) -> None:
    end = data.draw(st.sampled_from([8, 200, HEADER, len(DATA)]), label="flips before")
    damaged = bytearray(DATA)
    flips = st.tuples(st.integers(0, end - 1), st.integers(1, 255))
    for position, mask in data.draw(st.lists(flips, max_size=3), label="flips"):
        damaged[position] ^= mask
    size = data.draw(st.just(len(DATA)) | st.integers(0, len(DATA)), label="size")
    try:
        network = file.loads(bytes(damaged[:size]))
    except FileError:
        return
    assert fields(network) == fields(example())


@given(data=st.binary(max_size=300))
def test_random_bytes_give_an_error(data: bytes) -> None:
    with pytest.raises(FileError):
        file.loads(data)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 1 << 63, "input", "fc/bias", "conv1/path0/weight"])
    | st.floats()
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(data=st.data())
def test_any_change_of_the_manifest_gives_an_error_or_a_network(data: st.DataObject) -> None:
    def change(value: Any) -> None:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(keys), label="key")
        if isinstance(value[key], dict | list) and value[key] and data.draw(st.booleans()):
            change(value[key])
        else:
            value[key] = data.draw(JSON, label="value")

    try:
        network = file.loads(with_manifest(change))
    except FileError:
        return
    assert isinstance(network, Network)
