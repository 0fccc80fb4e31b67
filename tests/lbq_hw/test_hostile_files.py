"""Files and packages from anywhere: each ends in one sentence and exit code 2, soon and small."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbq_hw import build, evaluate, file, package, plan, report, zoo
from lbq_hw.compiler import __main__ as compiler
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.file import FileError
from lbq_hw.host import __main__ as host
from lbq_hw.package import PackageError
from lbq_hw.report.__main__ import main as report_main
from lbq_hw.sim import board
from lbq_hw.sim import command as simulation
from tests.lbq_hw.forge import few_bits, forged, put, rename, repacked, with_header
from tests.lbq_hw.hostile import INVALID

ROOT = Path(__file__).parents[2]
DIGITS = zoo.find("digits").read_bytes()
HEADER = 8 + int.from_bytes(DIGITS[:8], "little")
SECONDS, MEMORY = 5.0, 1 << 30
"""What a command may take of a processor and of memory to refuse a file."""
MODEL_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "lbq_hw.evaluate": evaluate.main,
    "lbq_hw.compiler": compiler.main,
    "lbq_hw.plan": lambda arguments: plan.main(["--board", "icebreaker", *arguments]),
    "sim": simulation.main,
    "lbq_hw.build": lambda arguments: build.main(["--board", "icebreaker", *arguments]),
}
PACKAGE_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "lbq_hw.host": lambda arguments: host.main(["--port", "/nowhere", *arguments]),
    "sim.board": board.main,
}

IMPLIED = {"profile": "spread", "partial_words": 4, "partial_bits": 8}  # by external memory


def entry(name: str, **changes: Any) -> Callable[[dict[str, Any]], object]:
    """Change the header's entry of one tensor."""
    return lambda header: header[name].update(changes)


def deep_header() -> bytes:
    text = b'{"__metadata__":{"format":"lbq"' + 10_000 * b',"x":{"y":1}' + 20_000 * b"["
    return len(text).to_bytes(8, "little") + text


WEIGHT = "logits/path0/weight"


def with_last_byte(change: Callable[[int], int]) -> bytes:
    """The file of few bits with another last byte of its readout's weights."""
    data = bytearray(few_bits()[1])
    start = 8 + int.from_bytes(data[:8], "little")
    end = json.loads(data[8:start])[WEIGHT]["data_offsets"][1]
    data[start + end - 1] = change(data[start + end - 1])
    return bytes(data)


def too_many_weights() -> bytes:
    """Few bytes on disk, each of four weights: more of them than a file may have."""
    shape = [1 << 13, 1 << 13, 4, 2]
    weights = np.zeros(1 << 27, np.uint8)
    header = {
        "__metadata__": {
            "format": "lbq",
            "version": "2",
            "manifest": "{}",
            "digest": "",
            "packed": json.dumps({"w": {"bits": 2, "shape": shape}}),
        },
        "w": {"dtype": "U8", "shape": [weights.size], "data_offsets": [0, weights.size]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + weights.tobytes()


PACKED: dict[str, tuple[Callable[[], bytes], str]] = {
    "padding bits that are not zero": (
        lambda: with_last_byte(lambda byte: byte | 0x80),
        "the packed tensor 'logits/path0/weight' has bits after its last weight that are not 0",
    ),
    "a packed tensor of fewer weights": (
        lambda: repacked(lambda found: found[WEIGHT].update(shape=[1, 1, 1, 1])),
        "the packed tensor 'logits/path0/weight' must be U8 of shape [1], not U8 of [29]",
    ),
    "a packed tensor of more weights": (
        lambda: repacked(lambda found: found[WEIGHT].update(shape=[32768, 32768, 32768, 32768])),
        "the packed tensor 'logits/path0/weight' must be U8 of shape [432345564227567616], not U8 "
        "of [29]",
    ),
    "a packed tensor of no weights": (
        lambda: repacked(lambda found: found[WEIGHT].update(shape=[0, 1, 1, 1])),
        "packed['logits/path0/weight'].shape must be 1..32768 along every axis, not [0, 1, 1, 1]",
    ),
    "a packed tensor of bytes that are signed": (
        lambda: with_header(entry(WEIGHT, dtype="I8"), few_bits()[1]),
        "the packed tensor 'logits/path0/weight' must be U8 of shape [29], not I8 of [29]",
    ),
    "a packed tensor that is not there": (
        lambda: repacked(lambda found: found.update(none=found[WEIGHT])),
        "packed names the tensor 'none', which the file lacks",
    ),
    "a packed tensor that nobody names": (
        lambda: repacked(lambda found: found.pop(WEIGHT)),
        "tensor 'logits/path0/weight' must not be of type U8",
    ),
    "packed to 8 bits": (
        lambda: repacked(lambda found: found[WEIGHT].update(bits=8)),
        "packed['logits/path0/weight'].bits must be 2..4, not 8",
    ),
    "packed, but not said so": (
        lambda: with_header(lambda header: header["__metadata__"].pop("packed"), few_bits()[1]),
        "packed must be a string, not None",
    ),
    "packed in the first version": (
        lambda: with_header(
            lambda header: header["__metadata__"].update(version="1"), few_bits()[1]
        ),
        "tensor 'layer0/path0/weight' must not be of type U8",
    ),
    "more weights than a file may have": (
        too_many_weights,
        "its tensors unpack to 536870912 bytes, the most are 268435456",
    ),
}


CONTAINERS: dict[str, Callable[[], bytes]] = {
    "huge shape, tiny tensor": lambda: with_header(entry("logits/bias", shape=[1 << 40])),
    "shape whose product wraps": lambda: with_header(
        entry("logits/bias", shape=[1 << 32, 1 << 32, 10])
    ),
    "empty shape with a huge side": lambda: with_header(entry("logits/bias", shape=[0, 1 << 62])),
    "negative shape": lambda: with_header(entry("logits/bias", shape=[-1, -10])),
    "shape of text": lambda: with_header(entry("logits/bias", shape="10")),
    "type of pixels": lambda: with_header(entry("logits/bias", dtype="U8")),
    "type of nothing": lambda: with_header(entry("logits/bias", dtype="X9")),
    "overlapping tensors": lambda: with_header(entry("logits/bias", data_offsets=[0, 10])),
    "tensors beyond the end": lambda: with_header(entry("logits/bias", data_offsets=[0, 1 << 62])),
    "tensors before the start": lambda: with_header(entry("logits/bias", data_offsets=[-10, 0])),
    "offsets of text": lambda: with_header(entry("logits/bias", data_offsets="00")),
    "offsets of 10^400": lambda: with_header(entry("logits/bias", data_offsets=[0, 10**400])),
    "infinite offsets": lambda: with_header(entry("logits/bias", data_offsets=[0, 1e999])),
    "entry of nothing": lambda: with_header(lambda header: header.update({"logits/bias": None})),
    "tensor twice": lambda: (
        DIGITS[:8] + DIGITS[8:].replace(b'"logits/bias":{', b'"logits/scale":{', 1)
    ),
    "metadata of a list": lambda: with_header(lambda header: header.update({"__metadata__": []})),
    "a header of 2^63 bytes": lambda: (1 << 63).to_bytes(8, "little") + DIGITS[8:],
    "a header 10,000 deep": deep_header,
    "a manifest of 100 MB": lambda: with_header(
        lambda header: header["__metadata__"].update(manifest="[" * 100_000_000)
    ),
    "a manifest of a list": lambda: with_header(
        lambda header: header["__metadata__"].update(manifest=[])
    ),
    "a manifest of a lone surrogate": lambda: with_header(
        lambda header: header["__metadata__"].update(manifest="\ud800")
    ),
    "a digest of a list": lambda: with_header(
        lambda header: header["__metadata__"].update(digest=[])
    ),
    "nothing": lambda: b"",
} | {name: data for name, (data, _reason) in PACKED.items()}


def made(name: str) -> bytes:
    """A hostile file by its name."""
    return INVALID[name].data() if name in INVALID else CONTAINERS[name]()


def refusal(data: bytes) -> str:
    """The sentence with which data is refused, after a check that it is one and came soon."""
    began = time.process_time()
    with pytest.raises(FileError) as caught:
        file.loads(data, source="net.lbq")
    assert time.process_time() - began < SECONDS
    text = str(caught.value)
    assert text.startswith("net.lbq ")
    assert text.isprintable()
    assert len(text) < 500
    return text


@pytest.mark.parametrize("whole", [DIGITS, few_bits()[1]], ids=["digits", "packed"])
def test_one_flipped_bit_is_noticed_or_leaves_the_same_network(whole: bytes) -> None:
    """300 flips, half of them in the header."""
    drawn, wanted = random.Random(0), file.digest(file.loads(whole))
    header = 8 + int.from_bytes(whole[:8], "little")
    for number in range(300):
        position = drawn.randrange(header if number % 2 else len(whole))
        data = bytearray(whole)
        data[position] ^= 1 << drawn.randrange(8)
        try:
            network = file.loads(bytes(data))
        except FileError:
            assert refusal(bytes(data))
        else:
            assert file.digest(network) == wanted


def test_a_file_that_was_cut_off_anywhere_is_refused() -> None:
    drawn = random.Random(0)
    for size in [
        0,
        7,
        8,
        HEADER,
        len(DIGITS) - 1,
        *(drawn.randrange(len(DIGITS)) for _ in range(45)),
    ]:
        assert " is truncated (" in refusal(DIGITS[:size])


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_that_lies_is_refused(name: str) -> None:
    assert re.fullmatch(
        r"net\.lbq (is not an \.lbq file: make one with `lbq export` or lbq_hw\.save\(\.\.\.\)"
        r"|is truncated \(.+\): export or copy it again"
        r"|was altered after it was written \(its digest does not match\): export or copy it again"
        r"|is damaged \(.+\): export or copy it again)",
        refusal(CONTAINERS[name]()),
    )


@pytest.mark.parametrize("name", PACKED)
def test_packed_weights_that_lie_are_refused_with_the_reason(name: str) -> None:
    data, reason = PACKED[name]
    assert refusal(data()) == f"net.lbq is damaged ({reason}): export or copy it again"


@pytest.mark.parametrize("name", INVALID)
def test_a_forged_network_is_refused_with_its_reason(name: str) -> None:
    reason = INVALID[name].reason
    message = f"net.lbq describes no valid network ({reason}): export or copy it again"
    assert refusal(made(name)) == message


def pack(folder: Path, data: bytes, **changes: Any) -> Path:
    """A package of any file as its network."""
    folder.mkdir()
    (folder / "net.lbq").write_bytes(data)
    facts: dict[str, Any] = {
        "format": "lbq-package",
        "version": package.VERSION,
        "board": "sim",
        "config": {},
        "clock_hz": 1_000_000,
        "baud": 115_200,
        "baked": False,
        "model": "net.lbq",
        "bitstream": None,
        "sha256": {"net.lbq": hashlib.sha256(data).hexdigest()},
    }
    (folder / "package.json").write_text(json.dumps(facts | changes), encoding="utf-8")
    return folder


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed: one line on stderr."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err[:-1].isprintable()
    return err


@pytest.mark.parametrize("name", [*INVALID, *CONTAINERS])
def test_every_command_refuses_a_forged_file_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "a" / "b" / "home"
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    data = made(name)
    model = tmp_path / "net.lbq"
    model.write_bytes(data)
    packed = pack(tmp_path / "package", data)
    for command in MODEL_COMMANDS.values():
        assert command(["--model", str(model)]) == 2
        assert str(model) in one_line(capsys)
    for command in PACKAGE_COMMANDS.values():
        assert command(["--package", str(packed)]) == 2
        assert str(packed / "net.lbq") in one_line(capsys)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    files = {"net.lbq", "package", "package/net.lbq", "package/package.json"}
    assert left == files | {"a", "a/b", "a/b/home"}


@pytest.mark.parametrize(
    "changes",
    [
        {"board": "[/x]"},
        {"board": "\x1b[31m"},
        {"model": "../package/net.lbq", "sha256": {"../package/net.lbq": ""}},
        {"model": "/dev/zero", "sha256": {"/dev/zero": ""}},
        {"model": "package.json", "sha256": {"package.json": ""}},
        {"model": ".", "sha256": {".": ""}},
        {"bitstream": "none.bin", "sha256": {"none.bin": "", "net.lbq": ""}},
        {"sha256": {"net.lbq": 5}},
        {"sha256": {"net.lbq": "", "/dev/zero": ""}},
        {"tape": "net.lbq"},
        {"tape": "../tape.bin", "sha256": {"../tape.bin": "", "net.lbq": ""}},
        {"tape": "/dev/zero", "sha256": {"/dev/zero": "", "net.lbq": ""}},
        {"tape": "net.lbq", "config": {"lanes": 16, "word": 16, "external": 16, **IMPLIED}},
        {"config": {"lanes": 16, "word": 16, "external": 16, **IMPLIED}},
        {"tape": 5},
        {"clock_hz": 0},
        {"clock_hz": 10**30},
        {"clock_hz": 1.5},
        {"baud": -1},
        {"baud": 10**12},
        {"config": {"lanes": 1 << 62}},
        {"config": {"lanes": [4]}},
        {"config": {"lanes": 256, "word": 256, "weight_rows": 1 << 21, "weight_bits": 16}},
        {"config": {"\x1b[31m": 1}},
        {"version": "\x1b[31m"},
        {"\x1b[31m": 1},
        {"x" * 1000: "y" * 1000},
    ],
    ids=repr,
)
def test_every_command_refuses_a_forged_package_in_one_line(
    changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = pack(tmp_path / "package", DIGITS, **changes)
    for command in PACKAGE_COMMANDS.values():
        assert command(["--package", str(packed)]) == 2
        text = one_line(capsys)
        assert str(packed) in text
        assert len(text) < 700


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "9" * 5_000,
        '{"a": ' + "9" * 5_000 + "}",
        "\ud800",
        "[]",
        "1",
        " " * (1 << 21),
    ],
    ids=["deep", "digits", "digits inside", "no text", "a list", "a number", "blank"],
)
def test_a_package_that_is_no_object_is_refused(text: str, tmp_path: Path) -> None:
    packed = pack(tmp_path / "package", DIGITS)
    (packed / "package.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(PackageError) as caught:
        package.read(packed)
    assert str(caught.value).startswith(f"{packed / 'package.json'} ")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "9" * 5_000,
        "NaN",
        "[]",
        "{}",
        '{"name": "\x1b"}',
        '{"layers": 1}',
        "",
        "1e999",
    ],
    ids=["deep", "digits", "nan", "a list", "an object", "escape", "layers", "nothing", "infinite"],
)
def test_a_forged_report_is_refused_in_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("board", "model", "cycles"):
        (tmp_path / f"{part}.json").write_text(text, encoding="utf-8")
    assert report_main([str(tmp_path)]) == 2
    assert str(tmp_path) in one_line(capsys)
    assert not (tmp_path / report.PAGE).exists()
    assert report_main(["--markdown", str(tmp_path / "board.json")]) == 2
    assert str(tmp_path) in one_line(capsys)


@pytest.mark.parametrize("name", ["[/y]", "[bold]x[/bold]", "a\\", "[link=http://x]y", "blöck/ 2"])
def test_a_name_that_looks_like_markup_is_shown_as_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "[net].lbq"
    model.write_bytes(forged(rename(1, name)))
    for command, *options in (
        (evaluate.main, "--limit", "2"),
        (plan.main, "--board", "icebreaker", "--images", "1"),
        (compiler.main,),
    ):
        assert command(["--model", str(model), *options]) == 0
        out, err = capsys.readouterr()
        assert name in out or repr(name) in out
        assert err == ""
    assert evaluate.main(["--model", str(model), "--limit", "1"]) == 0
    assert "[net].lbq on digits" in capsys.readouterr().out.replace("\n", "")


def test_a_network_of_many_timesteps_compiles_soon() -> None:
    network = file.loads(forged(put("timesteps", value=1000)))
    began = time.process_time()
    for lanes in (8, 16, 32):
        compile_network(network, smallest_for(network, lanes=lanes))
    assert time.process_time() - began < SECONDS


def test_a_core_that_a_network_asks_too_much_of_is_named_before_it_is_made() -> None:
    network = file.loads(forged(put("timesteps", value=4096)))
    with pytest.raises(ValueError, match="needs 4096 timesteps, the core has 16"):
        compile_network(network, CoreConfig())


def sparse(path: Path, size: int) -> Path:
    """A file of zeros that takes no room."""
    with path.open("wb") as stream:
        stream.truncate(size)
    return path


# A process that is started begins with the peak memory of the process that starts it, so a small
# process starts the command.
_MEASURED = f"""
import json, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024], file)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("lbq_hw.evaluate", "T of 10^5"),
        ("lbq_hw.evaluate", "too many layers"),
        ("lbq_hw.evaluate", "a manifest of 100 MB"),
        ("lbq_hw.compiler", "levels without end"),
        ("lbq_hw.plan", "meta 10,000 deep"),
        ("lbq_hw.build", "name climbs out of the folder"),
        ("sim", "huge padding"),
        ("sim.board", "bias of -2^63"),
        ("lbq_hw.host", "theta of 2^62"),
        ("lbq_hw.evaluate", "more weights than a file may have"),
        ("lbq_hw.evaluate", "zeros"),
    ],
)
def test_a_real_command_refuses_within_time_and_memory(
    module: str, name: str, tmp_path: Path
) -> None:
    """A process of its own; time is the processor's, so that a busy machine does not count."""
    model = tmp_path / "net.lbq"
    if name == "zeros":
        sparse(model, 1 << 34)
    else:
        model.write_bytes(made(name))
    arguments = ["--model", str(model)]
    if module in PACKAGE_COMMANDS:
        arguments = ["--package", str(pack(tmp_path / "package", model.read_bytes()))]
    arguments += {"lbq_hw.host": ["--port", "/nowhere"], "lbq_hw.build": ["--board", "sim"]}.get(
        module, []
    )
    used = tmp_path / "used.json"
    process = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(used), sys.executable, "-m", module, *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert process.stdout.count("\n") == 1
    assert "net.lbq" in process.stdout
    if name in INVALID:
        assert INVALID[name].reason in process.stdout
    seconds, memory = json.loads(used.read_text(encoding="utf-8"))
    assert seconds < SECONDS
    assert memory < MEMORY
    assert not (tmp_path / "build").exists()
