from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import file, package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.package import Package, PackageError


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
    with pytest.raises(PackageError, match=r"precious exists and is no package: choose another"):
        packed(tmp_path / "precious")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_what_is_missing_or_altered_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    refused(folder, f"{folder} is no package: it has no package.json")
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
        ({"version": 2}, "{} must have version 1, not 2: build it again"),
        ({"size": 1}, "{}: package has the unknown key 'size': build it again"),
        ({"baud": "9"}, "{}: package.baud must be an integer, not '9': build it again"),
        ({"clock_hz": True}, "{}: package.clock_hz must be an integer, not True: build it again"),
        (
            {"sha256": {}},
            "{} must give the sha256 of its model, its bitstream, its self-test and its tape, and "
            "of nothing else: build it again",
        ),
        ({"baud": 0}, "{} has baud = 0, which it cannot be: build it again"),
        ({"clock_hz": 10**10}, "{} has clock_hz = 10000000000, which it cannot be: build it again"),
        ({"board": "[/x]"}, "{} has board = '[/x]', which it cannot be: build it again"),
        ({"model": "../a"}, "{} has model = '../a', which it cannot be: build it again"),
        (
            {"bitstream": "/dev/zero"},
            "{} has bitstream = '/dev/zero', which it cannot be: build it again",
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
