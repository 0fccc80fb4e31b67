from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tapes import drawn

from lbq_hw import file, package, zoo
from lbq_hw.chips import ULX3S
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.isa import tape
from lbq_hw.isa.tape import TapeItem
from lbq_hw.package import ExternalMemory, Package, PackageError


def packed(folder: Path, **changes: Any) -> Package:
    facts: dict[str, Any] = {
        "board": "sim",
        "config": CoreConfig(lanes=8),
        "model": zoo.find("digits"),
        "clock_hz": 12_000_000,
        "baud": 3_000_000,
        "baked": False,
        "bitstream": None,
    }
    return package.write(folder, **facts | changes)


def edit(folder: Path, **changes: Any) -> None:
    manifest = folder / "package.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | changes), "utf-8")


def refused(folder: Path, text: str) -> None:
    with pytest.raises(PackageError, match=f"^{re.escape(text)}$"):
        package.read(folder)


def test_a_package_survives_writing(tmp_path: Path) -> None:
    bits = tmp_path / "top.bin"
    bits.write_bytes(b"bits")
    written = packed(tmp_path / "a", board="icebreaker", baked=True, bitstream=bits)
    found = package.read(tmp_path / "a")
    assert file.digest(found.network) == file.digest(file.load(zoo.find("digits")))
    for name in ("board", "config", "clock_hz", "baud", "baked", "bitstream", "folder"):
        assert getattr(found, name) == getattr(written, name)
    assert (found.board, found.config, found.baked) == ("icebreaker", CoreConfig(lanes=8), True)
    assert (found.clock_hz, found.baud) == (12_000_000, 3_000_000)
    assert found.bitstream == tmp_path / "a" / "icebreaker.bin"
    assert found.bitstream.read_bytes() == b"bits"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "top.bin"]


def test_a_package_names_the_classes_of_its_model(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    facts = json.loads((tmp_path / "a" / "package.json").read_text("utf-8"))
    assert facts["class_names"] == list("0123456789")
    edit(tmp_path / "a", class_names=list("9876543210"))
    refused(
        tmp_path / "a",
        f"{tmp_path / 'a' / 'package.json'} names other classes than its model: build it again",
    )


def test_a_package_is_replaced_whole(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    assert packed(tmp_path / "a", baud=1_000_000).baud == 1_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_leaves_the_package_that_was_there(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    model = tmp_path / "no.lbq"
    model.write_bytes(b"nothing")
    with pytest.raises(PackageError):
        packed(tmp_path / "a", model=model)
    with pytest.raises(PackageError, match=r"gone.lbq must be a file to be packed$"):
        packed(tmp_path / "a", model=tmp_path / "gone.lbq")
    assert package.read(tmp_path / "a").baud == 3_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "no.lbq"]


def test_a_move_that_fails_brings_the_old_package_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(tmp_path / "a")
    rename, target = Path.rename, tmp_path / "a"

    def fail_once(self: Path, to: Path) -> Path:
        if to == target and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_once)
    text = f"{target} cannot be written (No space left on device): choose a folder with room"
    with pytest.raises(PackageError, match=f"^{re.escape(text)}$"):
        packed(target, baud=1_000_000)
    assert package.read(target).baud == 3_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_is_no_package_is_kept(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    with pytest.raises(PackageError, match=r"precious exists and is not a package: choose another"):
        packed(tmp_path / "precious")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_what_is_missing_or_altered_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    refused(
        folder,
        f"there is no {folder}: lbq build makes it; a build that was stopped by --until has none",
    )
    folder.mkdir()
    refused(folder, f"{folder} is not a package: it has no package.json")
    folder.rmdir()
    packed(folder)
    model = folder / "net.lbq"
    data = model.read_bytes()
    model.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
    refused(folder, f"{model} is not the file that was packed: build it again")
    model.unlink()
    refused(folder, f"{model} is missing: build it again")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "zip"}, "{} does not describe a package: build it again"),
        ({"version": 4}, "{} must have version 3, not 4: build it again"),
        ({"version": 0}, "{} must have version 3, not 0: build it again"),
        ({"size": 1}, "{}: package has the unknown key 'size': build it again"),
        ({"baud": "9"}, "{}: package.baud must be an integer, not '9': build it again"),
        ({"clock_hz": True}, "{}: package.clock_hz must be an integer, not True: build it again"),
        (
            {"sha256": {}},
            "{} must give the sha256 of its model, its bitstream, its self-test and its tape, and "
            "of nothing else: build it again",
        ),
        ({"baud": 0}, "{} has baud = 0, which is not possible: build it again"),
        (
            {"clock_hz": 10**10},
            "{} has clock_hz = 10000000000, which is not possible: build it again",
        ),
        ({"board": "[/x]"}, "{} has board = '[/x]', which is not possible: build it again"),
        ({"model": "../a"}, "{} has model = '../a', which is not possible: build it again"),
        (
            {"bitstream": "/dev/zero"},
            "{} has bitstream = '/dev/zero', which is not possible: build it again",
        ),
    ],
)
def test_a_manifest_that_is_not_ours_is_told(
    tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    packed(tmp_path / "a")
    edit(tmp_path / "a", **changes)
    refused(tmp_path / "a", text.format(tmp_path / "a" / "package.json"))


def test_a_core_that_makes_no_sense_is_told(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    edit(tmp_path / "a", config={"lanes": 3})
    manifest = tmp_path / "a" / "package.json"
    refused(tmp_path / "a", f"{manifest}: lanes must be between 4 and 256, not 3: build it again")


def test_a_manifest_that_is_no_json_is_told(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    manifest = tmp_path / "a" / "package.json"
    manifest.write_text("{", "utf-8")
    refused(tmp_path / "a", f"{manifest} cannot be read (not JSON): build it again")
    manifest.write_text('{"baud": 1, "baud": 2}', "utf-8")
    refused(tmp_path / "a", f"{manifest} cannot be read (a key comes twice): build it again")
    manifest.unlink()
    os.mkfifo(manifest)
    refused(tmp_path / "a", f"{manifest} cannot be read (not JSON): build it again")


def test_a_pipe_in_the_place_of_a_network_is_told(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    model = tmp_path / "a" / "net.lbq"
    model.unlink()
    os.mkfifo(model)
    refused(tmp_path / "a", f"{model} must be a file of at most {file.MAX_BYTES} bytes")
    with pytest.raises(file.FileError, match=r"cannot be read \(not a plain file\): "):
        file.load(model)


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Program]:
    """A network file, and its program for a core with external memory."""
    program = compile_network(*drawn(3))
    model = tmp_path_factory.mktemp("model") / "net.lbq"
    file.save(drawn(3)[0], model)
    return model, program


OLD_PLL = "in bitstreams of that version the PLL of an ECP5 does not start"
OLD_CORE = "cores of that version do not tell how they read their external memory"


NO_PROFILE = "cores of that version have no profile, which tells their timing"


@pytest.mark.parametrize(
    ("version", "bitstream", "tape", "why"),
    [
        (1, "top.bit", False, OLD_PLL), (1, "top.bit", True, OLD_PLL),
        (1, "top.fs", True, OLD_CORE),
        (1, "top.bin", False, NO_PROFILE), (1, None, False, NO_PROFILE),
        (2, "top.bit", False, NO_PROFILE), (2, "top.fs", True, NO_PROFILE),
    ],
)  # fmt: skip
def test_an_older_package_is_refused_with_the_reason(
    tmp_path: Path,
    taped: tuple[Path, Program],
    version: int,
    bitstream: str | None,
    tape: bool,
    why: str,
) -> None:
    folder, file = tmp_path / "a", tmp_path / str(bitstream)
    file.write_bytes(b"bits")
    changes = {"bitstream": file if bitstream else None}
    _ = on_tape(folder, taped, **changes) if tape else packed(folder, **changes)
    edit(folder, version=version)
    manifest = folder / "package.json"
    refused(folder, f"{manifest} has version {version}, and {why}: build it again")


def on_tape(folder: Path, taped: tuple[Path, Program], **changes: Any) -> Package:
    model, program = taped
    return packed(
        folder, **{"model": model, "config": program.config, "tape": program.tape} | changes
    )


def test_a_package_says_which_memory_its_tape_is_for_and_how_large(
    tmp_path: Path, taped: tuple[Path, Program]
) -> None:
    written = on_tape(tmp_path / "a", taped, chip=ULX3S)
    size = len(taped[1].tape)
    wanted = {"chip": "ULX3S", "bytes": 32 << 20, "tape_bytes": size}
    assert json.loads((tmp_path / "a" / "package.json").read_text("utf-8"))["memory"] == wanted
    assert written.memory == ExternalMemory(**wanted)
    assert on_tape(tmp_path / "b", taped).memory is None


def test_a_package_describes_a_chip_of_ones_own(
    tmp_path: Path, taped: tuple[Path, Program]
) -> None:
    chip = replace(ULX3S, name="W9825G6KH", rfc=60_000)
    on_tape(tmp_path / "a", taped, chip=chip)
    memory = package.read(tmp_path / "a").memory
    assert memory is not None
    assert memory.described() == chip
    facts = json.loads((tmp_path / "a" / "package.json").read_text("utf-8"))["memory"]
    edit(tmp_path / "a", memory=facts | {"own": facts["own"] | {"rfc": 0}})
    manifest = tmp_path / "a" / "package.json"
    what = "memory.chip = 'W9825G6KH', which is not possible: build it again"
    refused(tmp_path / "a", f"{manifest} has {what}")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"chip": "DDR3"}, "memory.chip = 'DDR3'"),
        ({"bytes": 100, "tape_bytes": 101}, "memory.tape_bytes = 101"),
        ({"tape_bytes": 0}, "memory.tape_bytes = 0"),
        ({"bytes": 1000}, "memory.bytes = 1000"),
        ({"bytes": 32 << 20}, "memory.tape_bytes = 10"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(
    change: dict[str, Any], text: str, tmp_path: Path, taped: tuple[Path, Program]
) -> None:
    folder = tmp_path / "a"
    on_tape(folder, taped, chip=ULX3S)
    edit(folder, memory={"chip": "ULX3S", "bytes": 1000, "tape_bytes": 10} | change)
    manifest = folder / "package.json"
    refused(folder, f"{manifest} has {text}, which is not possible: build it again")


def test_a_package_carries_its_tape(tmp_path: Path, taped: tuple[Path, Program]) -> None:
    on_tape(tmp_path / "a", taped)
    assert package.read(tmp_path / "a").tape == taped[1].tape
    assert (tmp_path / "a" / "tape.bin").read_bytes() == taped[1].tape
    manifest = json.loads((tmp_path / "a" / "package.json").read_text("utf-8"))
    assert manifest["tape"] == "tape.bin"
    assert manifest["sha256"]["tape.bin"] == hashlib.sha256(taped[1].tape).hexdigest()
    assert packed(tmp_path / "b").tape == b""


def test_a_tape_is_there_where_the_core_reads_one_and_else_not(
    tmp_path: Path, taped: tuple[Path, Program]
) -> None:
    def refused_by(what: str, **changes: Any) -> None:
        text = rf"package.json describes a core with {what}: build it again$"
        with pytest.raises(PackageError, match=text):
            on_tape(tmp_path / "a", taped, **changes)

    refused_by("external memory and no tape", tape=b"")
    refused_by("a tape and no external memory", config=CoreConfig(lanes=8))


def changed_tape(folder: Path, data: bytes) -> None:
    """Another tape, whose digest is right."""
    (folder / "tape.bin").write_bytes(data)
    digests = json.loads((folder / "package.json").read_text("utf-8"))["sha256"]
    edit(folder, sha256=digests | {"tape.bin": hashlib.sha256(data).hexdigest()})


def test_a_tape_that_is_missing_altered_or_not_of_this_core_is_told(
    tmp_path: Path, taped: tuple[Path, Program]
) -> None:
    folder, program = tmp_path / "a", taped[1]
    on_tape(folder, taped)
    path = folder / "tape.bin"
    path.write_bytes(program.tape[:-4])
    refused(folder, f"{path} is not the file that was packed: build it again")
    path.unlink()
    refused(folder, f"{path} is missing: build it again")
    other = program.config.with_(weight_rows=program.config.weight_rows + 8)
    slices = int.from_bytes(program.tape[16:20], "little")
    for data, reason in (
        (tape.encode(other, []), "the tape is for another core"),
        (program.tape[: 4 * slices - 4], f"END must end at slice {slices}"),
        (b"", "the tape ends within the item at byte 0"),
        (program.tape[:3], "the tape ends within the item at byte 0"),
        (b"\1" + program.tape[1:], "the item at byte 0 has a wrong CRC"),
        (TapeItem(address=tape.PASS).encode(), "HEAD must be the first item, and no other"),
        (TapeItem(address=tape.HEAD).encode(), "the tape is for another core"),
        (program.tape + b"\1\0\0\0", f"after END, from slice {slices} on, all slices must be 0"),
        (tape.encode(program.config, []), "the tape ends before a pass that is marked last"),
        (tape.head(program.config, 0).encode(), "END must end at slice 0"),
        (tape.head(program.config, (1 << 32) - 1).encode(), "END must end at slice 4294967295"),
    ):
        changed_tape(folder, data)
        refused(folder, f"{path} is not a tape for this core ({reason}): build it again")
    assert len(program.tape) > 4 * slices - 4


def test_a_tape_that_no_memory_holds_is_not_even_read(
    tmp_path: Path, taped: tuple[Path, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_tape(tmp_path / "a", taped)
    monkeypatch.setattr("lbq_hw.isa.regions.MEMORY_SLICES", 100)
    path = tmp_path / "a" / "tape.bin"
    reason = "it has more than 400 bytes"
    refused(tmp_path / "a", f"{path} is not a tape for this core ({reason}): build it again")
