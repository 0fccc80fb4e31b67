"""What is done where data of the user's own can mean two things: it is said, refused or noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lbq_hw import datasets, file, golden, zoo
from lbq_hw.build import main as build
from lbq_hw.datasets import DatasetError, Reading, own
from lbq_hw.datasets.fitting import SEED, described, draw, load_dataset, load_samples
from lbq_hw.evaluate import main as evaluate
from lbq_hw.network import HeldOut
from tests.lbq_hw.test_evaluate import small

DIGITS = datasets.load("digits", split="test")
LABELS = np.arange(6) % 3


def refusal(*args: Any, **options: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        datasets.load(*args, **options)
    return str(caught.value)


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint8)


AMBIGUOUS = (
    "{path}: images of shape {shape} can be {ways}: choose one with --layout (in a configuration "
    "data.layout, in the file an entry layout)"
)


@pytest.mark.parametrize(
    ("shape", "ways"),
    [
        ((6, 8, 8, 4), "8 channels of 8x4 (nchw) or 4 channels of 8x8 (nhwc)"),
        ((6, 3, 9, 3), "3 channels of 9x3 (nchw) or 3 channels of 3x9 (nhwc)"),
        ((6, 16, 8, 8), "16 channels of 8x8 (nchw) or 8 channels of 16x8 (nhwc)"),
        ((6, 1, 8, 1), "1 channel of 8x1 (nchw) or 1 channel of 1x8 (nhwc)"),
        ((6, 5, 9, 9, 2), "9 channels of 9x2 (nchw) or 2 channels of 9x9 (nhwc)"),
    ],
)
def test_axes_that_can_be_read_in_two_ways_are_refused_until_the_layout_is_said(
    shape: tuple[int, ...], ways: str, tmp_path: Path
) -> None:
    images = np.arange(np.prod(shape), dtype=np.uint64).astype(np.uint8).reshape(shape)
    path = saved(tmp_path / "a.npz", images=images, labels=LABELS)
    wanted = AMBIGUOUS.format(path=path, shape=shape, ways=ways)
    assert refusal("npz", path, split="train") == wanted
    first = datasets.load("npz", path, split="train", reading=Reading(layout="nchw"))
    np.testing.assert_array_equal(first.images, images)
    last = datasets.load("npz", path, split="train", reading=Reading(layout="nhwc"))
    np.testing.assert_array_equal(last.images, np.moveaxis(images, -1, -3))
    for layout, dataset in (("nchw", first), ("nhwc", last)):
        inside = saved(tmp_path / "b.npz", images=images, labels=LABELS, layout=layout)
        found = datasets.load("npz", inside, split="train").images
        np.testing.assert_array_equal(found, dataset.images)


def test_a_network_tells_which_of_two_orders_of_axes_it_takes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    last = random.integers(0, 256, (6, 8, 8, 4), np.uint8)
    path = str(saved(tmp_path / "a.npz", images=last, labels=LABELS))
    found = load_dataset(small((4, 8, 8)), "npz", path)
    np.testing.assert_array_equal(found.images, last.transpose(0, 3, 1, 2))
    found = load_dataset(small((8, 8, 4)), "npz", path)
    np.testing.assert_array_equal(found.images, last)
    cube = str(saved(tmp_path / "b.npz", images=zeros(6, 8, 8, 8), labels=LABELS))
    with pytest.raises(DatasetError, match="8 channels of 8x8"):
        load_dataset(small((8, 8, 8)), "npz", cube)


def test_a_layout_in_the_file_is_checked_and_not_contradicted(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", images=zeros(6, 8, 8, 4), labels=LABELS, layout="nhwc")
    assert refusal("npz", path, split="test", reading=Reading(layout="nchw")) == (
        f"{path} says that its layout is nhwc, not nchw: leave out one"
    )
    path = saved(tmp_path / "a.npz", images=zeros(6, 8, 8, 4), labels=LABELS, layout="hwc")
    assert refusal("npz", path, split="test") == f"{path}: layout must be nchw or nhwc, not hwc"


def test_a_reading_of_other_words_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^layout must be 'nchw' or 'nhwc', not 'chw'$"):
        Reading(layout="chw")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "reading", "message"),
    [
        ("images", Reading(layout="nchw"), "--layout nchw is for the dataset 'npz'"),
        ("npz", Reading(background="white"), "--background white is for the dataset 'images'"),
        ("digits", Reading(background="black"), "--background black is for the dataset 'images'"),
    ],
)
def test_what_is_said_of_data_that_has_no_such_thing_is_an_error(
    name: str, reading: Reading, message: str, tmp_path: Path
) -> None:
    found = refusal(name, tmp_path, split="test", reading=reading)
    assert found == f"{message}, not for {name!r}: leave it out"


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize(("background", "level"), [("black", 0), ("white", 255)])
def test_transparent_pixels_show_the_background_that_was_said(
    mode: str, background: str, level: int, tmp_path: Path
) -> None:
    """Black ink: opaque, half transparent, and none."""
    picture = Image.new(mode, (3, 1))
    for x, alpha in enumerate((255, 128, 0)):
        picture.putpixel((x, 0), (*(0,) * (len(mode) - 1), alpha))
    path = tmp_path / "a.png"
    picture.save(path)
    with pytest.raises(DatasetError) as caught:
        own.read_picture(path, (1, 1, 3))
    assert str(caught.value) == (
        f"{path} has transparent pixels: say what lies behind them with --background black or "
        "--background white (in a configuration data.background)"
    )
    found = own.read_picture(path, (1, 1, 3), background)  # pyright: ignore[reportArgumentType]
    assert found[0, 0].tolist() == [0, round(level * 127 / 255), level]


def test_a_palette_with_a_transparent_colour_is_refused_too(tmp_path: Path) -> None:
    picture = Image.fromarray(np.array([[0, 1]], np.uint8), "L").convert("P")
    picture.save(tmp_path / "a.png", transparency=0)
    with pytest.raises(DatasetError, match="has transparent pixels"):
        own.read_picture(tmp_path / "a.png", (3, 1, 2))


def test_an_alpha_channel_that_hides_nothing_needs_no_background(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 4), np.uint8)
    pixels[..., 3] = 255
    Image.fromarray(pixels, "RGBA").save(tmp_path / "a.png")
    found = own.read_picture(tmp_path / "a.png", (3, 4, 5))
    np.testing.assert_array_equal(found, pixels[..., :3].transpose(2, 0, 1))


@pytest.mark.parametrize("turns", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_every_way_in_which_a_camera_turns_a_picture_is_undone(
    turns: int, suffix: str, tmp_path: Path
) -> None:
    upright = np.kron(np.array([[0, 80], [160, 240], [40, 200]], np.uint8), np.full((16, 16), 1))
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: np.rot90(upright),
        7: upright[::-1, ::-1].T,
        8: np.rot90(upright, -1),
    }[turns]
    exif = Image.Exif()
    exif[0x0112] = turns
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(np.ascontiguousarray(stored, np.uint8), "L").save(path, exif=exif)
    found = own.read_picture(path, (1, 48, 32))[0].astype(int)
    assert np.abs(found - upright)[8::16, 8::16].max() <= 3


def folders(root: Path, names: list[str]) -> Path:
    """A gray picture for every name."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), number, np.uint8), "L").save(path)
    return root


def test_files_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    root = folders(tmp_path, ["a/0.png", "b/0.png", "b/1.bmp", "b/deeper/2.png", "3.png"])
    (root / "a" / "notes.txt").write_text("x")
    (root / "a" / ".DS_Store").write_text("x")
    (root / "__MACOSX" / "a").mkdir(parents=True)
    (root / "__MACOSX" / "a" / "0.png").write_text("x")
    dataset = datasets.load("images", root, split="test", shape=(1, 4, 4))
    assert dataset.notes == (
        "4 files are not read, since a class has the PNG and JPEG files that lie in its folder "
        "itself: 3.png, a/notes.txt, b/1.bmp, ...",
    )
    assert dataset.labels.tolist() == [0, 1]


def test_pictures_of_the_other_split_are_not_left_over(tmp_path: Path) -> None:
    root = folders(tmp_path, ["train/a/0.png", "test/a/0.png", "val/a/0.png"])
    dataset = datasets.load("images", root, split="test", shape=(1, 4, 4))
    assert dataset.notes == (
        "1 file is not read, since a class has the PNG and JPEG files that lie in its folder "
        "itself: val/a/0.png",
    )


def test_what_is_not_read_is_a_warning_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folders(tmp_path, [f"{kind}/0.png" for kind in range(10)] + ["7/1.bmp"])
    assert evaluate(["--dataset", "images", "--data", str(root), "--json"]) == 0
    shown = capsys.readouterr()
    note = (
        "1 file is not read, since a class has the PNG and JPEG files that lie in its folder "
        "itself: 7/1.bmp"
    )
    assert f"warning: {note}\n" in shown.err
    assert note in json.loads(shown.out)["notes"]


@pytest.mark.parametrize("given", ["none", "a.npz", "pictures"])
@pytest.mark.parametrize(
    ("main", "words"), [(evaluate, ["--model", "digits"]), (build, ["--model", "digits"])]
)
def test_digits_take_no_data(
    given: str,
    main: Callable[[list[str]], int],
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / given
    if given == "a.npz":
        saved(data, images=zeros(6, 8, 8), labels=LABELS)
    elif given == "pictures":
        folders(data, ["a/0.png"])
    if main is build:
        words = [*words, "--board", "sim", "--build-dir", str(tmp_path / "b"), "--until", "fit"]
    assert main([*words, "--data", str(data)]) == 2
    meant = "npz" if given == "a.npz" else "images"
    assert (
        f"the dataset 'digits' comes with scikit-learn and reads nothing from {data}: leave out "
        f"--data, or say that it is your own with --dataset {meant} (in a configuration data.name)"
    ) in capsys.readouterr().err


def test_a_limit_draws_images_of_all_classes_with_a_seed_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = np.argsort(DIGITS.labels, kind="stable")
    path = str(saved(tmp_path / "a.npz", images=DIGITS.images[order], labels=DIGITS.labels[order]))
    words = ["--dataset", "npz", "--data", path, "--limit", "40"]
    assert evaluate([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["images"], facts["drawn"]) == (40, {"of": 359, "seed": SEED})
    chosen = order[draw(359, 40)]
    assert set(DIGITS.labels[chosen]) == set(range(10))
    right = golden.predict(file.load(zoo.find("digits")), DIGITS.images[chosen])
    assert facts["accuracy"] == 100 * np.mean(right == DIGITS.labels[chosen])
    assert evaluate(words) == 0
    assert " % of 40 of 359 images of undivided data (seed 0) right" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_limit_that_leaves_nothing_out_draws_nothing() -> None:
    found = load_samples(small(), dataset="digits", limit=359)
    assert found.drawn is None
    np.testing.assert_array_equal(found.images, DIGITS.images)
    assert described(found.origin()) == "359 test images"


def test_what_is_drawn_is_what_a_build_draws() -> None:
    """The figures of docs/builds are of these images."""
    wanted = np.random.default_rng(0).permutation(359)[:20]
    assert draw(359, 20).tolist() == wanted.tolist()
    found = load_samples(small(), dataset="digits", limit=20)
    np.testing.assert_array_equal(found.images, DIGITS.images[wanted])


@pytest.mark.parametrize("training", ["images", "train_images"])
def test_a_file_with_test_images_is_divided_however_the_others_are_called(
    training: str, tmp_path: Path
) -> None:
    path = saved(
        tmp_path / "a.npz",
        **{training: zeros(6, 8, 8), training.replace("images", "labels"): LABELS},
        test_images=zeros(2, 8, 8) + np.uint8(1),
        test_labels=LABELS[:2],
    )
    assert datasets.is_divided("npz", path)
    train, test = (datasets.load("npz", path, split=split) for split in ("train", "test"))
    assert (len(train), train.split, train.images.max()) == (6, "train", 0)
    assert (len(test), test.split, test.images.min()) == (2, "test", 1)


def test_a_file_that_is_divided_by_half_is_refused(tmp_path: Path) -> None:
    whole = {"images": zeros(6, 8, 8), "labels": LABELS}
    path = saved(tmp_path / "a.npz", **whole, test_images=zeros(2, 8, 8))
    assert refusal("npz", path, split="test") == (
        f"{path} must have the arrays images and labels, or test_images and test_labels, not "
        "images, labels, test_images"
    )
    both = {f"train_{name}": array for name, array in whole.items()}
    path = saved(tmp_path / "b.npz", **whole, **both)
    assert refusal("npz", path, split="test") == (
        f"{path} has training images twice, as images and as train_images: leave out one"
    )


def test_labels_that_begin_with_1_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", images=zeros(10, 8, 8), labels=np.arange(10) + 1)
    assert refusal("npz", path, split="train") == (
        f"{path}: labels are 1 to 10, but classes are counted from 0: write them as labels - 1"
    )
    with pytest.raises(ValueError, match="has 11") as caught:
        load_dataset(small(), "npz", str(path))
    assert str(caught.value) == (
        f"the model knows 10 classes, {path} has 11 since its labels are 1 to 10: write them as "
        "labels - 1"
    )


def test_a_file_of_arrays_needs_no_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", images=zeros(10, 8, 8), labels=np.arange(10))
    network = replace(small(), meta={})
    assert load_dataset(network, None, str(path)).name == "npz"
    with pytest.raises(ValueError, match="does not say what it was trained on"):
        load_dataset(network, None, str(tmp_path))


def held(indices: tuple[int, ...]) -> Any:
    """A network that was trained on the digits' test images, as undivided data, without these."""
    own_images = replace(DIGITS, name="npz")
    kept = HeldOut(data=own_images.digest(), count=359, indices=indices)
    network = file.load(zoo.find("digits"))
    return replace(network, held_out=kept, meta={**network.meta, "dataset": "npz"})


def test_undivided_data_is_evaluated_on_what_was_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    indices = tuple(range(7, 359, 11))
    file.save(held(indices), tmp_path / "net.lbq")
    path = saved(tmp_path / "a.npz", images=DIGITS.images, labels=DIGITS.labels)
    words = ["--model", str(tmp_path / "net.lbq"), "--data", str(path)]
    assert evaluate([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["split"], facts["images"], facts["notes"]) == ("validation", len(indices), [])
    right = golden.predict(held(indices), DIGITS.images[list(indices)])
    assert facts["accuracy"] == 100 * np.mean(right == DIGITS.labels[list(indices)])
    assert evaluate(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f" % of {len(indices)} validation images right" in shown


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (
            held((0, 1)),
            "was trained on other data, or on these before they were changed",
        ),
        (
            replace(held((0,)), held_out=None),
            "does not say which images it was trained on",
        ),
    ],
    ids=["other data", "no list"],
)
def test_undivided_data_that_may_have_been_trained_on_is_said_to_be(
    network: Any, why: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "a.npz", images=DIGITS.images[:50], labels=DIGITS.labels[:50])
    found = load_dataset(network, "npz", str(path))
    assert (found.split, len(found)) == ("whole", 50)
    assert found.notes == (
        f"the data is not divided and the network {why}: training images may be among these",
    )


def test_a_digest_tells_images_labels_and_shapes_apart() -> None:
    flat = replace(DIGITS, images=DIGITS.images.reshape(-1, 1, 4, 16))
    other = replace(DIGITS, labels=DIGITS.labels[::-1])
    same = replace(DIGITS, images=DIGITS.images.copy())
    assert DIGITS.digest() == same.digest()
    assert len({DIGITS.digest(), flat.digest(), other.digest()}) == 3
