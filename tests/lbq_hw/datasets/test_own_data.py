"""Data of the user's own: arrays, pictures and raw inputs, wherever images are asked for."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lbq_hw import datasets, file, flow, golden, zoo
from lbq_hw.build import main as build_main
from lbq_hw.datasets import DatasetError, own
from lbq_hw.datasets.fitting import load_dataset, load_samples, noise
from lbq_hw.evaluate import main as evaluate_main
from lbq_hw.network import Network
from lbq_hw.plan import main as plan_main
from tests.lbq_hw.test_evaluate import small

RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.integers(0, 256, (6, 3, 5, 6), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def refusal(*args: Any, **options: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        datasets.load(*args, **options)
    return str(caught.value)


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def pictures(
    root: Path, layout: dict[str, int], *, mode: str = "RGB", suffix: str = ".png"
) -> Path:
    """Folders with so many random pictures of 8 x 6 each."""
    for folder, count in layout.items():
        (root / folder).mkdir(parents=True)
        for number in range(count):
            pixels = RANDOM.integers(0, 256, (6, 8, 3), dtype=np.uint8)
            picture = Image.fromarray(pixels, "RGB").convert(mode)
            picture.save(root / folder / f"{number}{suffix}")
    return root


def model(path: Path, network: Network) -> str:
    file.save(network, path)
    return str(path)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_file_that_is_not_divided_is_the_same_for_every_split(split: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    dataset = datasets.load("npz", path, split=split)
    np.testing.assert_array_equal(dataset.images, IMAGES, strict=True)
    assert dataset.labels.tolist() == LABELS.tolist()
    assert (dataset.name, dataset.classes, dataset.temporal) == ("npz", 3, False)
    assert not datasets.is_divided("npz", path)


def test_a_divided_file_has_the_classes_of_both_splits(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "a.npz",
        train_images=IMAGES,
        train_labels=LABELS,
        test_images=IMAGES[:2],
        test_labels=LABELS[:2].astype(np.uint8),
    )
    test = datasets.load("npz", path, split="test")
    assert (len(test), test.classes, test.labels.dtype) == (2, 3, np.int64)
    assert len(datasets.load("npz", path, split="train")) == 6
    assert datasets.is_divided("npz", path)


@pytest.mark.parametrize(
    ("images", "shape"),
    [
        (np.zeros((6, 9, 7), np.uint8), (6, 1, 9, 7)),
        (np.zeros((6, 9, 7, 3), np.uint8), (6, 3, 9, 7)),
        (np.zeros((6, 9, 7, 1), np.uint8), (6, 1, 9, 7)),
        (np.zeros((6, 2, 9, 7), np.uint8), (6, 2, 9, 7)),
        (np.zeros((6, 4, 2, 9, 7), np.uint8), (6, 4, 2, 9, 7)),
        (np.zeros((6, 4, 9, 7, 3), np.uint8), (6, 4, 3, 9, 7)),
    ],
)
def test_axes_are_brought_into_order(
    images: np.ndarray, shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = saved(tmp_path / "a.npz", images=images, labels=LABELS)
    assert datasets.load("npz", path, split="test", timesteps=4).images.shape == shape


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (
            {"pictures": IMAGES},
            "{} must have the arrays images and labels, or test_images and test_labels, not "
            "pictures",
        ),
        (
            {"train_images": IMAGES, "train_labels": LABELS},
            "{} must have the arrays images and labels, or test_images and test_labels, not "
            "train_images, train_labels",
        ),
        (
            {"images": IMAGES / 255, "labels": LABELS},
            "{}: images must be uint8, 0 to 255, not float64",
        ),
        (
            {"images": IMAGES, "labels": LABELS[:5]},
            "{} must have as many labels as images, not 5 and 6",
        ),
        (
            {"images": IMAGES, "labels": LABELS - 1},
            "{}: labels must be one integer from 0 to 32767 per image",
        ),
        (
            {"images": IMAGES, "labels": LABELS / 2},
            "{}: labels must be one integer from 0 to 32767 per image",
        ),
        (
            {"images": IMAGES, "labels": np.eye(6, dtype=int)},
            "{}: labels must be one integer from 0 to 32767 per image",
        ),
        (
            {"images": IMAGES[0, 0], "labels": LABELS},
            "{}: images must be of shape (n, C, H, W), (n, H, W) or (n, T, C, H, W), not (5, 6)",
        ),
        (
            {"images": np.zeros((6, 3, 2, 9, 7), np.uint8), "labels": LABELS},
            "{}: the recordings must have 4 frames, not 3",
        ),
    ],
)
def test_arrays_that_make_no_dataset_are_one_sentence(
    arrays: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "a.npz", **arrays)
    assert refusal("npz", path, split="test", timesteps=4) == reason.format(path)


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04 no zip"])
def test_a_file_that_is_no_npz_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    text = refusal("npz", path, split="test")
    assert re.fullmatch(
        re.escape(str(path)) + r" cannot be read \(.+\): write it with numpy\.savez\(file, "
        r"images=\.\.\., labels=\.\.\.\)",
        text,
    )


def test_a_file_of_one_array_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, IMAGES)
    assert refusal("npz", path, split="test") == (
        f"{path} cannot be read (one array without a name): write it with numpy.savez(file, "
        "images=..., labels=...)"
    )


def test_objects_in_a_file_are_not_executed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", images=np.array([{}], object), labels=LABELS)
    assert " cannot be read (Object arrays cannot be loaded" in refusal("npz", path, split="test")


def test_own_data_without_a_path_asks_for_it(tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert refusal("npz", split="test") == (
        "dataset 'npz' needs the path of an .npz file: give --data"
    )
    assert refusal("images", split="test", shape=(1, 2, 3)) == (
        "dataset 'images' needs the path of a folder of pictures: give --data"
    )
    assert refusal("npz", none, split="test") == (
        f"{none} is not a file: give the path of an .npz file"
    )
    assert refusal("images", none, split="test", shape=(1, 2, 3)) == (
        f"{none} is not a folder: give a folder with one subfolder per class"
    )


def test_what_own_data_has_is_not_known_before_it_is_read() -> None:
    with pytest.raises(DatasetError) as caught:
        datasets.info("npz")
    assert (
        str(caught.value)
        == "the shape and classes of the dataset 'npz' are known only from its files"
    )


def test_a_shape_is_for_pictures_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^shape must be given for pictures, not None$"):
        datasets.load("images", tmp_path, split="test")
    with pytest.raises(
        ValueError, match=r"^shape must be None except for your own data, not \(1, 8, 8\)$"
    ):
        datasets.load("digits", split="test", shape=(1, 8, 8))


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".jpg", ".JPEG"])
def test_pictures_of_folders_are_read_in_the_order_of_names(suffix: str, tmp_path: Path) -> None:
    root = pictures(tmp_path, {"dog": 2, "cat": 1, "emu": 0}, suffix=suffix)
    (root / "cat" / "notes.txt").write_text("x")
    (root / ".hidden").mkdir()
    dataset = datasets.load("images", root, split="test", shape=(3, 6, 8))
    assert dataset.labels.tolist() == [0, 1, 1]
    assert (dataset.name, dataset.classes) == ("images", 3)
    for number, name in enumerate((f"cat/0{suffix}", f"dog/0{suffix}", f"dog/1{suffix}")):
        with Image.open(root / name) as picture:
            wanted = np.asarray(picture).transpose(2, 0, 1)
        np.testing.assert_array_equal(dataset.images[number], wanted, strict=True)
    assert not datasets.is_divided("images", root)


def test_classes_that_are_numbers_are_ordered_by_value(tmp_path: Path) -> None:
    root = pictures(tmp_path, {"10": 1, "2": 1, "0": 0})
    dataset = datasets.load("images", root, split="test", shape=(1, 6, 8))
    assert dataset.labels.tolist() == [1, 2]


def test_divided_pictures_share_the_classes_of_both_splits(tmp_path: Path) -> None:
    root = pictures(tmp_path, {"train/a": 2, "train/b": 1, "test/b": 1, "test/c": 1})
    train, test = (
        datasets.load("images", root, split=split, shape=(1, 6, 8)) for split in ("train", "test")
    )
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 0, 1], [1, 2])
    assert train.classes == test.classes == 3
    assert datasets.is_divided("images", root)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "1", "LA"])
@pytest.mark.parametrize("shape", [(1, 3, 5), (3, 12, 4)])
def test_pictures_of_every_mode_become_gray_or_rgb_of_the_size_asked_for(
    mode: str, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    root = pictures(tmp_path, {"a": 1}, mode=mode)
    image = datasets.load("images", root, split="test", shape=shape).images[0]
    assert (image.shape, image.dtype) == (shape, np.uint8)


def test_a_resized_picture_keeps_its_left_and_right(tmp_path: Path) -> None:
    pixels = np.zeros((6, 8), np.uint8)
    pixels[:, 4:] = 255
    Image.fromarray(pixels, "L").save(tmp_path / "a.png")
    ((left, right),) = own.read_picture(tmp_path / "a.png", (1, 1, 2))[0].tolist()
    assert left < 64 < 192 < right


def test_a_picture_that_a_camera_turned_is_upright(tmp_path: Path) -> None:
    picture = Image.fromarray(np.array([[0, 255]], np.uint8), "L")
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it
    picture.save(tmp_path / "a.png", exif=exif)
    assert own.read_picture(tmp_path / "a.png", (1, 2, 1)).tolist() == [[[0], [255]]]


def test_a_file_that_is_no_picture_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "x.png"
    path.write_text("hello")
    text = refusal("images", tmp_path, split="test", shape=(1, 8, 8))
    assert re.fullmatch(
        re.escape(str(path)) + r" cannot be read as a picture \(.+\): give a PNG or JPEG file", text
    )
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(path)
    assert refusal("images", tmp_path, split="test", shape=(1, 8, 8)) == (
        f"{path} cannot be read as a picture (more than 8 bits per channel): give a PNG or JPEG "
        "file"
    )
    path.unlink()
    os.mkfifo(path)
    assert refusal("images", tmp_path, split="test", shape=(1, 8, 8)) == (
        f"{path} cannot be read as a picture (not a plain file): give a PNG or JPEG file"
    )


def test_a_picture_that_would_fill_the_memory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "x.png"
    Image.new("1", (8_000, 8_000)).save(path)
    assert refusal("images", tmp_path, split="test", shape=(1, 8, 8)) == (
        f"{path} cannot be read as a picture (it has 64000000 pixels in {path.stat().st_size} "
        "bytes): give a PNG or JPEG file"
    )


def test_a_class_whose_name_no_network_could_have_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a\nb").mkdir()
    rule = "a class's name must be 1 to 200 printable characters, not"
    assert refusal("images", tmp_path, split="test", shape=(1, 8, 8)) == (
        rf"{tmp_path}: {rule} 'a\nb'"
    )
    path = saved(tmp_path / "a.npz", images=IMAGES, labels=LABELS, class_names=["a", "", "b"])
    assert refusal("npz", path, split="test") == f"{path}: {rule} ''"


def test_folders_without_pictures_are_one_sentence(tmp_path: Path) -> None:
    shape = (1, 8, 8)
    assert refusal("images", tmp_path, split="test", shape=shape) == (
        f"{tmp_path} has no subfolders: put the pictures of each class into a subfolder"
    )
    (tmp_path / "a").mkdir()
    assert refusal("images", tmp_path, split="test", shape=shape) == (
        f"{tmp_path} has no pictures: PNG and JPEG files are read"
    )
    pictures(tmp_path, {"train/x": 1})
    assert refusal("images", tmp_path, split="test", shape=shape) == (
        f"{tmp_path} has no folder 'test' beside 'train'"
    )


def test_without_pillow_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = pictures(tmp_path, {"a": 1})
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert refusal("images", root, split="test", shape=(1, 8, 8)) == (
        "Pillow is not installed: pip install 'lbq-hw[images]'"
    )


@pytest.mark.parametrize(
    ("found", "count"),
    [((8, 8), 1), ((1, 8, 8), 1), ((4, 8, 8), 4), ((4, 1, 8, 8), 4)],
)
def test_raw_inputs_may_be_one_or_several_with_or_without_their_channel(
    found: tuple[int, ...], count: int, tmp_path: Path
) -> None:
    raw = RANDOM.integers(0, 17, found, dtype=np.uint8)
    np.save(tmp_path / "raw.npy", raw)
    samples = load_samples(small(), raw=str(tmp_path / "raw.npy"))
    np.testing.assert_array_equal(samples.images, raw.reshape(count, 1, 8, 8), strict=True)
    assert (samples.name, samples.labels) == ("raw.npy", None)


def test_raw_recordings_have_a_frame_per_timestep(tmp_path: Path) -> None:
    network = small((2, 6, 6), static=False)
    np.save(tmp_path / "raw.npy", np.zeros((3, 2, 2, 6, 6), np.uint8))
    assert load_samples(network, raw=str(tmp_path / "raw.npy"), limit=2).images.shape[0] == 2


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 8, 9), np.uint8), np.zeros((1, 8, 8), np.float32), np.zeros((0, 8, 8), np.uint8)],
)
def test_raw_inputs_of_another_form_are_one_sentence(array: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "raw.npy"
    np.save(path, array)
    with pytest.raises(DatasetError) as caught:
        load_samples(small(), raw=str(path))
    assert str(caught.value) == (
        f"{path} must be uint8 of shape (1, 8, 8), or several of them along a first axis, not "
        f"{array.dtype} of {array.shape}"
    )


def test_images_are_given_in_one_way_only(tmp_path: Path) -> None:
    message = "give a dataset, raw inputs or pictures, only one of them"
    for given in ({"raw": "a"}, {"pictures": ["a"]}):
        with pytest.raises(ValueError, match=f"^{message}$"):
            load_samples(small(), data=str(tmp_path), **given)


@pytest.mark.parametrize(
    ("network", "arrays", "reason"),
    [
        (
            small(),
            {"images": np.zeros((2, 9, 8), np.uint8), "labels": np.arange(2)},
            "the model takes images of shape (1, 8, 8), {} has (1, 9, 8)",
        ),
        (
            small(),
            {"images": np.zeros((2, 8, 8), np.uint8), "labels": np.array([0, 10])},
            "the model knows 10 classes, {} has 11",
        ),
        (
            small(),
            {"images": np.zeros((2, 2, 1, 8, 8), np.uint8), "labels": np.arange(2)},
            "the model takes images, which {} does not have",
        ),
        (
            small((2, 6, 6), static=False),
            {"images": np.zeros((2, 2, 6, 6), np.uint8), "labels": np.arange(2)},
            "the model takes recordings, which {} does not have",
        ),
    ],
)
def test_arrays_that_the_network_does_not_take_are_one_sentence(
    network: Network, arrays: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=f"^{re.escape(reason.format(path))}$"):
        load_dataset(network, "npz", str(path))


def test_folders_must_be_as_many_as_the_network_has_classes(tmp_path: Path) -> None:
    root = pictures(tmp_path, {"3": 1, "7": 1})
    message = (
        f"the model knows 10 classes, {root} has 2: make one folder for each, in the same order of "
        "names"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_dataset(replace(small(), meta={}), "images", str(root))
    message = "the model takes recordings, which the dataset 'images' does not have"
    with pytest.raises(ValueError, match=f"^{message}$"):
        load_dataset(small((2, 6, 6), static=False), "images", str(root))


def test_digits_as_arrays_evaluate_like_the_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = datasets.load("digits", split="test")
    path = saved(tmp_path / "a.npz", images=digits.images, labels=digits.labels)
    assert evaluate_main(["--dataset", "npz", "--data", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = json.loads(zoo.evaluation("digits").read_text("utf-8"))
    assert found == wanted | {"dataset": "npz", "split": "whole"}


def test_digits_as_arrays_are_predicted_like_the_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = datasets.load("digits", split="test")
    path = saved(tmp_path / "a.npz", images=digits.images, labels=digits.labels)
    planned = ["--board", "sim", "--lanes", "8", "--json"]
    assert plan_main(planned) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert plan_main([*planned, "--dataset", "npz", "--data", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == wanted | {"source": "npz"}


def test_help_says_what_data_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluate_main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "--data PATH folder of the dataset's files, official ones or torchvision's (digits needs "
        "none), or an .npz file of your own"
    ) in said


def test_raw_inputs_evaluate_to_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = datasets.load("digits", split="test").images[:5]
    np.save(tmp_path / "raw.npy", raw)
    wanted = golden.predict(file.load(zoo.find("digits")), raw).tolist()
    arguments = ["--raw", str(tmp_path / "raw.npy")]
    assert evaluate_main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["accuracy"], facts["classes"]) == (None, wanted)
    assert evaluate_main(arguments) == 0
    assert f"raw.npy: classes {' '.join(map(str, wanted))}, T = 2" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--raw", "--data"])
def test_a_build_is_checked_with_images_of_ones_own(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = small()
    raw = RANDOM.integers(0, 17, (3, 1, 8, 8), dtype=np.uint8)
    path = tmp_path / "raw.npy"
    arguments = ["--board", "sim", "--model", model(tmp_path / "net.lbq", network)]
    if option == "--raw":
        np.save(path, raw)
    else:
        path = saved(tmp_path / "a.npz", images=raw, labels=np.arange(3))
        arguments += ["--dataset", "npz"]
    arguments += ["--build-dir", str(tmp_path / "b"), "--until", "check", option, str(path)]
    assert build_main([*arguments, "--json"]) == 0
    capsys.readouterr()
    source = "npz" if option == "--data" else "raw.npy"
    assert json.loads((tmp_path / "b" / "check.json").read_text("utf-8"))["source"] == source
    used = np.load(tmp_path / "b" / "images.npy")
    assert sorted(image.tobytes() for image in used) == sorted(image.tobytes() for image in raw)


def test_a_network_that_names_no_dataset_builds_on_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = Network(**(vars(small()) | {"meta": {}}))
    arguments = ["--board", "sim", "--model", model(tmp_path / "net.lbq", network)]
    assert build_main([*arguments, "--build-dir", str(tmp_path / "b"), "--until", "check"]) == 0
    capsys.readouterr()
    assert json.loads((tmp_path / "b" / "check.json").read_text("utf-8"))["source"] == "noise"
    np.testing.assert_array_equal(np.load(tmp_path / "b" / "images.npy"), noise(network, 3))


def test_a_picture_that_changes_makes_the_steps_run_again(tmp_path: Path) -> None:
    """Also deep in a folder, and a file of arrays that is written anew."""
    root = pictures(tmp_path / "p", {"test/a": 1, "train/a": 1})
    arrays = saved(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    for path, changed in ((root, root / "test" / "a" / "0.png"), (arrays, arrays)):
        options = flow.Options(model=zoo.find("digits"), data=str(path))
        job = flow.Job(options, None, tmp_path)  # pyright: ignore[reportArgumentType]
        before = flow.inputs._option(job, "data")
        assert flow.inputs._option(job, "data") == before
        changed.write_bytes(changed.read_bytes() + b"more")
        assert flow.inputs._option(job, "data") != before
