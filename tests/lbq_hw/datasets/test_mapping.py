"""Data in the numbers of a network: its range of values, and its classes by name."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lbq_hw import datasets, file, golden, zoo
from lbq_hw.datasets import DatasetError, mapping
from lbq_hw.datasets.fitting import load_dataset, load_samples
from lbq_hw.evaluate import main as evaluate
from lbq_hw.network import Network
from tests.digit_pictures import DIGITS, WORDS, whitened, write

RIGHT = 100 * 357 / 359
"""Percent of the embedded test digits that the zoo's network has right."""
ANIMALS = ("ape", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
LABELS = np.arange(10)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("digits") / "pictures")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    capsys.readouterr()
    assert evaluate([*words, "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert evaluate(list(words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def digits(**changes: Any) -> Network:
    return replace(file.load(zoo.find("digits")), **changes)


def saved(folder: Path, network: Network) -> str:
    file.save(network, folder / "net.lbq")
    return str(folder / "net.lbq")


def arrays(folder: Path, images: np.ndarray, **entries: Any) -> str:
    labels = datasets.load("digits", split="test").labels
    np.savez(folder / "mine.npz", images=images, labels=labels, **entries)
    return str(folder / "mine.npz")


def test_pictures_are_mapped_to_the_full_scale_of_the_network(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, said = shown(capsys, "--dataset", "images", "--data", str(pictures))
    assert (result["images"], result["accuracy"]) == (359, RIGHT)
    assert (result["notes"], said) == ([], "")


def test_a_single_picture_is_mapped_too(pictures: Path) -> None:
    path = sorted((pictures / "7").iterdir())[0]
    samples = load_samples(digits(), pictures=[str(path)])
    wanted = datasets.load("digits", split="test").images[int(path.stem)]
    np.testing.assert_array_equal(samples.images, wanted[None], strict=True)


@pytest.mark.parametrize("to", [1, 7, 16, 100, 255])
def test_values_are_mapped_to_the_nearest(to: int) -> None:
    found = mapping.scaled(np.arange(256, dtype=np.uint8), of=255, to=to)
    assert found.dtype == np.uint8
    assert found.tolist() == [int(value * to / 255 + 0.5) for value in range(256)]


def test_arrays_are_taken_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = datasets.load("digits", split="test").images
    result, said = shown(capsys, "--dataset", "npz", "--data", arrays(tmp_path, images))
    assert (result["accuracy"], result["notes"], said) == (RIGHT, [], "")


def test_arrays_above_full_scale_are_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = whitened(datasets.load("digits", split="test").images)
    result, said = shown(capsys, "--dataset", "npz", "--data", arrays(tmp_path, images))
    share = 100 * np.mean(images > 16)
    note = (
        f"{share:.1f} % of the pixels are above 16, the network's full scale: scale them to 0 to "
        "16, or let an .npz file say its own full_scale"
    )
    assert (result["notes"], said) == ([note], f"warning: {note}\n")
    assert result["accuracy"] < 60


def test_arrays_that_say_their_full_scale_are_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = whitened(datasets.load("digits", split="test").images)
    path = arrays(tmp_path, images, full_scale=255)
    result, said = shown(capsys, "--dataset", "npz", "--data", path)
    assert (result["accuracy"], result["notes"], said) == (RIGHT, [], "")


def shifted() -> Network:
    """The digits network as one that takes values of 0 to 255, of which it drops four bits."""
    network = digits(meta={})
    return replace(network, input=replace(network.input, bits=4, shift=4, full_scale=255))


def test_values_far_below_full_scale_are_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = datasets.load("digits", split="test").images
    model, path = saved(tmp_path, shifted()), arrays(tmp_path, images)
    result, said = shown(capsys, "--model", model, "--dataset", "npz", "--data", path)
    note = (
        "the largest pixel is 16, and the network's full scale is 255: scale the pixels to 0 to "
        "255, or let an .npz file say its own full_scale"
    )
    assert (result["notes"], said) == ([note], f"warning: {note}\n")


def test_a_dataset_of_known_range_is_mapped_to_a_network_of_another() -> None:
    found = load_dataset(shifted(), "digits", None)
    wanted = mapping.scaled(datasets.load("digits", split="test").images, of=16, to=255)
    np.testing.assert_array_equal(found.images, wanted, strict=True)
    assert found.notes == ()


@pytest.mark.parametrize(
    ("largest", "notes"),
    [
        (31, ("the largest pixel is 31, and the network's full scale is 255: scale the pixels to 0 "
              "to 255, or let an .npz file say its own full_scale",)),
        (32, ()),
    ],
)  # fmt: skip
def test_an_eighth_of_the_range_is_enough(largest: int, notes: tuple[str, ...]) -> None:
    assert mapping.value_notes(np.array([0, largest], np.uint8), full_scale=255) == notes


def test_one_pixel_in_a_hundred_may_saturate() -> None:
    images = np.array([17] + 99 * [3], np.uint8)
    assert mapping.value_notes(images, full_scale=16) == ()
    assert len(mapping.value_notes(images[:-1], full_scale=16)) == 1


def test_raw_inputs_out_of_range_are_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "raw.npy", whitened(datasets.load("digits", split="test").images[:2]))
    result, said = shown(capsys, "--raw", str(tmp_path / "raw.npy"))
    assert said == f"warning: {result['notes'][0]}\n"
    assert " of the pixels are above 16, the network's full scale: " in said


def test_events_that_saturate_or_vanish_are_warned_about() -> None:
    counts = np.array([[0, 8], [1, 2]], np.uint8)
    assert mapping.event_notes(counts, largest=7, shift=0) == (
        "25.0 % of the pixels count more than 7 events, the most that the network tells apart: cut "
        "the recordings into more frames",
    )
    assert mapping.event_notes(counts, largest=255, shift=4) == (
        "no pixel counts 16 events, the fewest that the network sees: cut the recordings into "
        "fewer frames",
    )
    assert mapping.event_notes(counts, largest=15, shift=0) == ()


def test_folders_of_other_names_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path / "pictures", WORDS)
    assert refused(capsys, "--dataset", "images", "--data", str(root)) == (
        f"error: {root} has the classes 'eight', 'five', 'four', 'nine', 'one' and 5 more, where "
        "the model has '0', '1', '2', '3', '4' and 5 more: give data of the model's own classes, "
        "under the same names\n"
    )


def test_classes_of_the_same_names_are_mapped_in_any_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path / "pictures", WORDS)
    model = saved(tmp_path, digits(class_names=WORDS))
    words = ("--model", model, "--dataset", "images", "--data", str(root))
    result, said = shown(capsys, *words)
    assert (result["accuracy"], said) == (RIGHT, "")


def test_a_class_that_is_missing_is_named_and_folders_of_the_system_are_none(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "pictures"
    shutil.copytree(pictures, root)
    shutil.rmtree(root / "3")
    for name in ("__MACOSX", ".cache", "@eaDir"):
        (root / name).mkdir()
    words = ("--dataset", "images", "--data", str(root))
    assert refused(capsys, *words) == (
        f"error: {root} lacks the model's classes '3': give data of all of them, a folder may be "
        "empty\n"
    )
    (root / "3").mkdir()
    result, _ = shown(capsys, *words)
    found = load_dataset(digits(), "images", str(root))
    assert 3 not in found.labels
    right = golden.predict(digits(), found.images) == found.labels
    assert result["accuracy"] == 100 * float(np.mean(right))
    assert result["accuracy"] > 99


def test_a_class_that_the_model_does_not_know_is_named(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(pictures, tmp_path / "pictures")
    (tmp_path / "pictures" / "none of these").mkdir()
    words = ("--dataset", "images", "--data", str(tmp_path / "pictures"))
    assert refused(capsys, *words) == (
        f"error: {tmp_path / 'pictures'} has the classes 'none of these', which the model does not "
        "know: leave them out\n"
    )


def test_arrays_may_name_their_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = (
        getattr(datasets.load("digits", split="test"), k) for k in ("images", "labels")
    )
    backwards = {"labels": 9 - labels, "class_names": np.array(DIGITS[::-1])}
    np.savez(tmp_path / "mine.npz", images=images, **backwards)
    words = ("--dataset", "npz", "--data", str(tmp_path / "mine.npz"))
    result, said = shown(capsys, *words)
    assert (result["accuracy"], said) == (RIGHT, "")


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"class_names": np.arange(10)}, "class_names must be strings, one per class"),
        ({"class_names": np.array(["a"] * 10)}, "class_names must differ from one another"),
        (
            {"class_names": np.array(["a", "b"])},
            "class_names must name all of the 10 classes, not 2",
        ),
        ({"full_scale": 0}, "full_scale must be one integer of 1 to 255"),
        ({"full_scale": 256}, "full_scale must be one integer of 1 to 255"),
        ({"full_scale": 1.0}, "full_scale must be one integer of 1 to 255"),
        ({"full_scale": [16]}, "full_scale must be one integer of 1 to 255"),
    ],
)
def test_entries_of_a_file_that_cannot_be_are_refused(
    entries: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = arrays(tmp_path, datasets.load("digits", split="test").images, **entries)
    with pytest.raises(DatasetError) as caught:
        datasets.load("npz", path, split="test")
    assert str(caught.value) == f"{path}: {reason}"


def test_names_on_one_side_alone_are_taken_in_order_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = datasets.load("digits", split="test").images
    named, path = saved(tmp_path, digits(class_names=ANIMALS)), arrays(tmp_path, images)
    order = "0 = 'ape', 1 = 'bee', 2 = 'cat', 3 = 'dog', 4 = 'eel', ..."
    result, _ = shown(capsys, "--model", named, "--dataset", "npz", "--data", path)
    assert result["notes"] == [
        f"the classes of {path} have no names and are taken in the model's order: {order}"
    ]
    nameless = saved(tmp_path, digits(meta={}, input=replace(digits().input, full_scale=16)))
    root = write(tmp_path / "pictures", ANIMALS)
    result, _ = shown(capsys, "--model", nameless, "--dataset", "images", "--data", str(root))
    assert result["notes"] == [
        f"the model's classes have no names: those of {root} are taken in their order: {order}"
    ]
    assert result["accuracy"] == RIGHT


def test_a_dataset_of_other_classes_is_refused() -> None:
    network = digits(class_names=ANIMALS)
    with pytest.raises(ValueError, match="the dataset 'digits' has") as caught:
        load_dataset(network, "digits", None)
    assert str(caught.value).endswith(
        "where the model has 'ape', 'bee', 'cat', 'dog', 'eel' and 5 more: give data of the "
        "model's own classes, under the same names"
    )


def test_classes_are_printed_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = digits(class_names=ANIMALS)
    images = datasets.load("digits", split="test").images[:3]
    np.save(tmp_path / "raw.npy", images)
    words = ["--model", saved(tmp_path, network), "--raw", str(tmp_path / "raw.npy")]
    assert evaluate(words) == 0
    names = " ".join(ANIMALS[number] for number in golden.predict(network, images))
    assert f" on raw.npy: classes {names}, T = 2" in capsys.readouterr().out


def test_gray_pictures_of_a_dark_room_are_warned_about(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 20, np.uint8)).save(tmp_path / "dark.png")
    samples = load_samples(digits(), pictures=[str(tmp_path / "dark.png")])
    assert samples.notes == (
        "the largest pixel is 1, and the network's full scale is 16: scale the pixels to 0 to 16, "
        "or let an .npz file say its own full_scale",
    )
