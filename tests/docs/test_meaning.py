"""What the pages say of range and classes: every sentence stands there, and is so."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nir
import numpy as np
import pytest

from lbq_hw import datasets, file, package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import mapping, meaning
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.evaluate import main as evaluate
from lbq_hw.network import Network
from lbq_hw.report import collect
from lbq_hw.train.data import InputSpec
from lbq_hw.train.nir.__main__ import main as read_nir
from lbq_hw.train.settings import config
from tests.digit_pictures import DIGITS, WORDS, write

DOCS = Path(__file__).parents[2] / "docs"
Check = Callable[[Path, pytest.CaptureFixture[str]], None]


def digits(**changes: object) -> Network:
    return replace(file.load(zoo.find("digits")), **changes)


def images() -> np.ndarray:
    return datasets.load("digits", split="test").images


def npz(folder: Path, pixels: np.ndarray, **entries: Any) -> str:
    labels = datasets.load("digits", split="test").labels
    np.savez(folder / "mine.npz", images=pixels, labels=labels, **entries)
    return str(folder / "mine.npz")


def full_scales(*_: object) -> None:
    found = {name: meaning.full_scale(file.load(zoo.find(name))) for name in zoo.names()}
    assert found.pop("digits") == found.pop("digits-vgg") == 16
    assert found.pop("nmnist") is found.pop("nmnist-stream") is found.pop("fsdd") is None
    assert set(found.values()) == {255}


def pictures_are_mapped(folder: Path, _: object) -> None:
    found = load_dataset(digits(), "images", str(write(folder / "a")))
    drawn = datasets.load("images", folder / "a", split="test", shape=(1, 8, 8)).images
    assert found.images.tolist() == np.floor(drawn / 255 * 16 + 0.5).astype(int).tolist()


def training_has_a_full_scale(*_: object) -> None:
    chosen = config.load("digits", [])
    assert chosen.data.spec((1, 8, 8), static=True).white == 16
    assert (chosen.data.bits, chosen.data.full_scale) == (5, 16)
    shifted = ["data.bits=4", "data.shift=4", "data.full_scale=0"]
    assert config.load("digits", shifted).data.spec((1, 8, 8), static=True).white == 255


def arrays_are_taken_as_they_are(folder: Path, _: object) -> None:
    pixels = images()
    assert load_dataset(digits(), "npz", npz(folder, pixels)).images.tolist() == pixels.tolist()
    found = load_dataset(digits(), "npz", npz(folder, pixels, full_scale=32)).images
    assert found.tolist() == np.floor(pixels / 2 + 0.5).astype(int).tolist()


def ranges_are_warned_about(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for factor, said in (
        (2, "are above 16, the network's full scale"),
        (0, "the largest pixel is"),
    ):
        path = npz(folder, images() * np.uint8(factor))
        capsys.readouterr()
        assert evaluate(["--dataset", "npz", "--data", path, "--json"]) == 0
        printed = capsys.readouterr()
        (note,) = json.loads(printed.out)["notes"]
        assert said in note
        assert printed.err == f"warning: {note}\n"
    assert (mapping.MOST_SATURATED, mapping.LEAST_RANGE) == (0.01, 8)


def classes_have_names(folder: Path, _: object) -> None:
    pictures = datasets.load("images", write(folder / "a", WORDS), split="test", shape=(1, 8, 8))
    assert pictures.class_names == tuple(sorted(WORDS))
    path = npz(folder, images(), class_names=np.array(WORDS))
    assert datasets.load("npz", path, split="test").class_names == WORDS


def names_are_kept(folder: Path, _: object) -> None:
    network = digits(class_names=WORDS)
    file.save(network, folder / "net.lbq")
    assert file.load(folder / "net.lbq").class_names == WORDS
    core = {"board": "sim", "config": CoreConfig(lanes=8), "clock_hz": 10**6, "baud": 10**6}
    package.write(folder / "package", model=folder / "net.lbq", baked=False, bitstream=None, **core)
    facts = json.loads((folder / "package" / "package.json").read_text("utf-8"))
    assert tuple(facts["class_names"]) == WORDS
    assert collect.model(network).class_names == WORDS


def names_are_mapped_or_refused(folder: Path, _: object) -> None:
    root = str(write(folder / "a", WORDS))
    found = load_dataset(digits(class_names=WORDS), "images", root)
    assert (
        np.bincount(found.labels).tolist()
        == np.bincount(datasets.load("digits", split="test").labels).tolist()
    )
    with pytest.raises(ValueError, match="where the model has '0', '1', '2', '3', '4' and 5 more"):
        load_dataset(digits(), "images", root)


def one_side_is_named(folder: Path, _: object) -> None:
    found = load_dataset(digits(class_names=WORDS), "npz", npz(folder, images()))
    assert found.notes[0].endswith("0 = 'zero', 1 = 'one', 2 = 'two', 3 = 'three', 4 = 'four', ...")


def folders_of_the_system(folder: Path, _: object) -> None:
    write(folder / "a")
    for name in ("__MACOSX", ".hidden"):
        (folder / "a" / name).mkdir()
    data = datasets.load("images", folder / "a", split="test", shape=(1, 8, 8))
    assert data.class_names == DIGITS


def answers_are_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.save(digits(class_names=WORDS), folder / "net.lbq")
    np.save(folder / "raw.npy", images()[:1])
    words = ["--model", str(folder / "net.lbq"), "--raw", str(folder / "raw.npy")]
    assert evaluate(words) == 0
    label = datasets.load("digits", split="test").labels[0]
    assert f": classes {WORDS[label]}, T" in capsys.readouterr().out


def graph(folder: Path) -> str:
    rng = np.random.default_rng(0)
    nodes = nir.NIRGraph.from_list(
        nir.Input(input_type={"input": np.array([64])}),
        nir.Linear(weight=rng.normal(0, 0.3, (10, 64))),
        nir.IF(r=np.ones(10), v_threshold=np.ones(10)),
        type_check=False,
    )
    nir.write(folder / "net.nir", nodes)
    return str(folder / "net.nir")


def imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = images() * np.uint8(15)
    pixels[0, 0, 0, 0] = 255
    words = [graph(folder), "--dataset", "npz", "--data", npz(folder, pixels), "--timesteps", "4"]
    words += ["--most-different", "1", "--board-images", "0", "--json"]
    capsys.readouterr()
    assert read_nir([*words, "--input-bits", "4"]) == 0
    few = json.loads(capsys.readouterr().out)
    network = file.load(folder / "net.lbq")
    assert (network.input.bits, network.input.shift, network.input.full_scale) == (4, 4, 255)
    assert read_nir(words) == 0
    whole = json.loads(capsys.readouterr().out)
    assert few["graph_accuracy"] == whole["graph_accuracy"]
    assert file.load(folder / "net.lbq").input.bits == 8
    assert {"float", "integer", "simulated"} < few["accuracies"].keys()


def what_is_1_to_a_graph(folder: Path, _: object) -> None:
    """A graph whose neuron of class 1 fires once, where the brightest pixel is 1 to it."""
    weight = np.zeros((2, 64))
    weight[1, 0] = 1
    nodes = nir.NIRGraph.from_list(
        nir.Input(input_type={"input": np.array([64])}),
        nir.Linear(weight=weight),
        nir.IF(r=np.ones(2), v_threshold=np.full(2, 0.9)),
        type_check=False,
    )
    nir.write(folder / "net.nir", nodes)
    pixels = np.zeros((40, 8, 8), np.uint8)
    pixels[20:, 0, 0] = 100
    arrays = {"images": pixels, "labels": np.repeat([0, 1], 20)}
    words = [str(folder / "net.nir"), "--dataset", "npz", "--data", str(folder / "a.npz")]
    words += ["--timesteps", "1", "--most-different", "1", "--test", "40", "--board-images", "0"]
    for entries, options, white, fires in (
        ({}, [], 100, True),
        ({}, ["--full-scale", "100"], 100, True),
        ({}, ["--full-scale", "200"], 200, False),
        ({"full_scale": 200}, [], 200, False),
        ({"full_scale": 200}, ["--full-scale", "100"], 200, True),
    ):
        np.savez(folder / "a.npz", **arrays, **entries)
        capture = folder / "facts.json"
        with capture.open("w") as stream, contextlib.redirect_stdout(stream):
            assert read_nir([*words, *options, "--json"]) == 0
        facts = json.loads(capture.read_text("utf-8"))
        assert facts["graph_accuracy"] == facts["network_accuracy"] == (1.0 if fires else 0.5)
        assert file.load(folder / "net.lbq").input.full_scale == white


def imported_names(folder: Path, _: object) -> None:
    words = [graph(folder), "--dataset", "digits", "--timesteps", "4", "--most-different", "1"]
    assert read_nir([*words, "--test", "0"]) == 0
    assert file.load(folder / "net.lbq").class_names == DIGITS


def saturated_specs(*_: object) -> None:
    with pytest.raises(ValueError, match="full_scale must be at most 15, the largest of 4 bits"):
        InputSpec(shape=(1, 8, 8), static=True, bits=4, full_scale=16)


CHECKS: dict[str, tuple[tuple[str, Check], ...]] = {
    "own-data.md": (
        (
            "Every network has a raw value for full scale, which is white in a picture: 255 in "
            "most networks, 16 in the zoo's `digits`.",
            full_scales,
        ),
        (
            "Every picture that is read is mapped to this range: 0 to 255 becomes `round(value "
            "* full_scale / 255)`.",
            pictures_are_mapped,
        ),
        (
            "In training, full scale is the largest raw value that becomes 1.0.",
            training_has_a_full_scale,
        ),
        (
            "Arrays are taken as they are, unless their file has an integer entry "
            "`full_scale`: then they are mapped from that range.",
            arrays_are_taken_as_they_are,
        ),
        (
            "If more than 1 % of the pixels are above full scale, or the largest is below an "
            "eighth of it, a warning says so, which JSON has in `notes`.",
            ranges_are_warned_about,
        ),
        (
            "**Classes** have the names of their folders. A file names its classes in the "
            "entry `class_names`: strings in the order of labels.",
            classes_have_names,
        ),
        (
            "The names go into the run, the `.lbq` file, the package and the report.",
            names_are_kept,
        ),
        (
            "If data and network have the same names, in any order, labels are mapped by name. "
            "If the names differ, the data is refused, and the error says which names differ.",
            names_are_mapped_or_refused,
        ),
        (
            "If only one of them has names, classes are taken in their order, and a warning "
            "says which class is which.",
            one_side_is_named,
        ),
        (
            "Hidden folders and folders that an operating system makes, such as `__MACOSX`, "
            "are not classes.",
            folders_of_the_system,
        ),
        ("They print the classes by name.", answers_are_names),
    ),
    "import.md": (
        (
            "If full scale has more bits, the network sees the upper bits: with 4 bits, pixels "
            "of 0 to 255 are shifted by 4, and nothing is saturated. The graph is tested on "
            "whole pixels.",
            imported,
        ),
        ("Classes have the names from the dataset.", imported_names),
        ("JSON has this table as `accuracies`.", imported),
        (
            "A pixel of the value `--full-scale` is 1 to the graph. The default is the "
            "dataset's full scale, or the largest training pixel of arrays without a full "
            "scale.",
            what_is_1_to_a_graph,
        ),
        (
            "`full_scale` is the value that becomes 1.0, at most `2**bits - 1`: a spec that "
            "would saturate it is refused.",
            saturated_specs,
        ),
    ),
}


@pytest.mark.parametrize(
    ("page", "sentence", "check"),
    [(page, *pair) for page, pairs in CHECKS.items() for pair in pairs],
)
def test_a_sentence_of_the_page_is_so(
    page: str,
    sentence: str,
    check: Check,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sentence in " ".join((DOCS / page).read_text("utf-8").split())
    check(tmp_path, capsys)
