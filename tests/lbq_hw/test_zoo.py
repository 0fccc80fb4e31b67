"""The zoo: models found by name or path, and what ships in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbq_hw import file, zoo
from lbq_hw.file import FileError


@pytest.fixture
def zoo_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    for name in ("mnist", "mnist-4bit", "digits"):
        (folder / f"{name}.lbq").touch()
    monkeypatch.setattr(zoo, "_FOLDER", folder)
    return folder


def test_a_zoo_name_finds_its_file(zoo_folder: Path) -> None:
    assert zoo.find("digits") == zoo_folder / "digits.lbq"
    assert zoo.names() == ["digits", "mnist", "mnist-4bit"]


def test_a_path_to_a_file_is_found_before_the_zoo(
    zoo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert zoo_folder.is_dir()
    monkeypatch.chdir(tmp_path)
    Path("digits").touch()
    Path("mnist").mkdir()
    assert zoo.find("digits") == Path("digits")
    assert zoo.find(tmp_path / "digits") == tmp_path / "digits"
    assert zoo.find("mnist") == zoo_folder / "mnist.lbq"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("digit", "; did you mean 'digits'?"),
        ("runs/mnst.lbq", "; did you mean 'mnist'?"),
        ("x", ""),
    ],
)
def test_an_unknown_model_lists_the_zoo_and_the_nearest(
    zoo_folder: Path, name: str, hint: str
) -> None:
    assert zoo_folder.is_dir()
    with pytest.raises(FileError) as caught:
        zoo.find(name)
    assert str(caught.value) == (
        f"no model {name!r}: give the path of an .lbq file or a name of the zoo "
        f"(digits, mnist, mnist-4bit){hint}"
    )


def test_every_network_of_the_zoo_loads_and_is_small() -> None:
    for name in zoo.names():
        path = zoo.find(name)
        assert path.stat().st_size < 200_000
        assert file.load(path).classes == 10
