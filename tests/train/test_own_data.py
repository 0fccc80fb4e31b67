"""Training on data of the user's own, and what is trained evaluated on it."""

import dataclasses
import itertools
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from small_runs import SMALL

from lbq_hw import datasets, file, golden
from lbq_hw.datasets import Reading
from lbq_hw.evaluate import main as evaluate
from lbq_hw.train.analyze import main as analyze
from lbq_hw.train.command import main as train
from lbq_hw.train.export import main as export
from lbq_hw.train.settings import config
from lbq_hw.train.settings.schema import ConfigError

PIXELS = ("data.bits=4", "data.shift=4", "data.full_scale=0")
SPREAD = 15  # digits are 0 to 16, pictures 0 to 255


def words(*changes):
    return [word for change in (*SMALL, *PIXELS, *changes) for word in ("--set", change)]


@pytest.fixture(scope="module")
def arrays():
    """Digits of both splits as a divided file has them."""
    found = {}
    for split in ("train", "test"):
        digits = datasets.load("digits", split=split)
        found[f"{split}_images"] = digits.images[:, 0] * np.uint8(SPREAD)
        found[f"{split}_labels"] = digits.labels
    return found


@pytest.fixture(scope="module")
def npz(arrays, tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays") / "mine.npz"
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def pictures(arrays, tmp_path_factory):
    """The same digits as PNG files."""
    root = tmp_path_factory.mktemp("pictures")
    for split in ("train", "test"):
        pairs = zip(arrays[f"{split}_images"], arrays[f"{split}_labels"], strict=True)
        for number, (image, label) in enumerate(pairs):
            folder = root / split / f"digit {label}"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"{number:04}.png")
    return root


def sizes(name):
    return (
        ("data.name=images", "data.size=8", "data.channels=1")
        if name == "images"
        else ("data.name=npz",)
    )


@pytest.mark.parametrize("name", ["npz", "images"])
def test_a_run_on_ones_own_data_is_exported_and_evaluated_on_it(
    name, npz, pictures, tmp_path, capsys
):
    data = str(npz if name == "npz" else pictures)
    changes = (*sizes(name), "train.epochs=8", "train.batch=48", "model.channels=[8, 8]")
    arguments = ["--config", "digits", *words(*changes), "--out", str(tmp_path / "run")]
    assert train([*arguments, "--data", data]) == 0
    model = tmp_path / "net.lbq"
    told = [str(tmp_path / "run"), "--out", str(model), "--data", data, "--board-images", "0"]
    assert export(told) == 0
    network = file.load(model)
    assert network.meta["dataset"] == name
    assert (network.input.shape, network.classes) == ((1, 8, 8), 10)
    capsys.readouterr()
    assert evaluate(["--model", str(model), "--data", data, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["dataset"], facts["images"]) == (name, 359)
    assert abs(facts["accuracy"] - facts["float_accuracy"]) < 5
    assert facts["accuracy"] > 50


def test_pictures_and_arrays_of_the_same_digits_are_equal_but_for_their_order(npz, pictures):
    of_file = datasets.load("npz", npz, split="test")
    of_folder = datasets.load("images", pictures, split="test", shape=(1, 8, 8))
    order = np.argsort(of_file.labels, kind="stable")
    np.testing.assert_array_equal(of_folder.labels, of_file.labels[order])
    np.testing.assert_array_equal(of_folder.images, of_file.images[order])


def test_data_that_is_not_divided_must_be_held_out(arrays, tmp_path, capsys):
    path = tmp_path / "one.npz"
    np.savez(path, images=arrays["train_images"], labels=arrays["train_labels"])
    arguments = ["--config", "digits", *words("data.name=npz"), "--data", str(path)]
    assert train([*arguments, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        f"error: {path} does not tell training and test images apart: hold some of them out with "
        "--set data.validation=N, or divide them into train and test\n"
    )
    held = ["--set", "data.validation=100", "--out", str(tmp_path / "run")]
    assert train([*arguments, *held]) == 0
    assert " % of the validation images at the last epoch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["data.name=images"],
            "data.size must be the side to which pictures are resized, such as 32, not None",
        ),
        (
            ["data.name=images", "data.size=8", "data.channels=2"],
            "data.channels must be 1 or 3, not 2",
        ),
        (
            ["data.name=npz", "data.channels=1"],
            "data.channels must be left out with data.name = 'npz', not 1",
        ),
    ],
)
def test_keys_of_pictures_are_checked(changes, message):
    with pytest.raises(ConfigError) as caught:
        config.load("digits", changes)
    assert str(caught.value) == message


def test_pictures_are_rgb_unless_told_otherwise():
    chosen = config.load("digits", ["data.name=images", "data.size=32"])
    assert chosen.data.options(2) == {"shape": (3, 32, 32), "reading": Reading()}
    assert config.Config.from_dict(chosen.to_dict()) == chosen


QUICK = ("train.epochs=1", "train.batch=48")


def quick(*changes):
    return ["--config", "digits", *words(*changes, *QUICK)]


def test_digits_are_not_trained_on_other_data(tmp_path, capsys):
    assert train(["--config", "digits", "--data", "none", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: the dataset 'digits' comes with scikit-learn and reads nothing from none: leave "
        "out --data, or say that it is your own with --dataset images (in a configuration "
        "data.name)\n"
    )


def test_undivided_data_is_evaluated_on_what_was_held_out_all_the_way(
    arrays, tmp_path, monkeypatch, capsys
):
    """Labels that nobody can learn, so that images that were trained on would show."""
    monkeypatch.chdir(tmp_path)
    labels = np.random.default_rng(0).permutation(np.arange(400) % 10)
    np.savez("mine.npz", images=arrays["train_images"][:400], labels=labels)
    changes = quick("data.name=npz", "data.validation=100")
    assert train([*changes, "--data", "mine.npz"]) == 0
    assert " % of the validation images at the last epoch" in capsys.readouterr().out
    written = json.loads((tmp_path / "runs" / "mine" / "data.json").read_text("utf-8"))
    assert export(["runs/mine", "--out", "net.lbq", "--data", "mine.npz", "--test", "0"]) == 0
    network = file.load(tmp_path / "net.lbq")
    assert network.name == "mine"
    assert dataclasses.asdict(network.held_out) == written["held_out"] | {
        "indices": tuple(written["held_out"]["indices"])
    }
    assert (written["held_out"]["count"], len(network.held_out.indices)) == (400, 100)
    held = list(network.held_out.indices)
    assert np.bincount(labels[held]).tolist() == [10] * 10
    capsys.readouterr()
    assert evaluate(["--model", "net.lbq", "--data", "mine.npz", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    found = {key: facts[key] for key in ("images", "split", "float_split", "notes")}
    assert found == {
        "images": 100, "split": "validation", "float_split": "validation", "notes": [],
    }  # fmt: skip
    right = golden.predict(network, arrays["train_images"][:400][held][:, None]) == labels[held]
    assert facts["accuracy"] == 100 * right.mean()
    assert analyze(["runs/mine", "--data", "mine.npz", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["images"], facts["split"]) == (100, "validation")
    assert facts["accuracy"] == network.meta["float_accuracy"]


def test_a_run_is_resumed_on_the_same_data_alone(arrays, tmp_path, capsys):
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path, change in zip(paths, (0, 1), strict=True):
        images = arrays["train_images"][:400].copy()
        images[17, 3, 3] ^= change
        np.savez(path, images=images, labels=np.arange(400) % 10)
    out = str(tmp_path / "run")
    changes = quick("data.name=npz", "data.validation=100", "train.save_every=1")
    changes += ["--set", "train.epochs=2", "--out", out]
    assert train([*changes, "--data", str(paths[0]), "--max-seconds", "0"]) == 0
    capsys.readouterr()
    assert train(["--resume", "--out", out, "--data", str(paths[1])]) == 2
    assert capsys.readouterr().err == (
        f"error: {out} was trained on other images or labels than those of {paths[1]}: give --data "
        "with the same ones, or train in another --out\n"
    )
    assert train(["--resume", "--out", out, "--data", str(paths[0])]) == 0


@pytest.mark.parametrize(
    ("folder", "data", "name"), [("my run", "npz", "my-run"), ("wide", "digits", "digits")]
)
def test_a_run_on_ones_own_data_is_called_as_its_folder(folder, data, name, npz, tmp_path):
    out = tmp_path / folder
    words_of = ["--data", str(npz)] if data == "npz" else []
    assert train([*quick(f"data.name={data}"), *words_of, "--out", str(out)]) == 0
    assert export([str(out)]) == 0
    assert file.load(out / "net.lbq").name == name


def test_a_class_without_pictures_is_a_warning_in_training(pictures, tmp_path, capsys):
    root = tmp_path / "pictures"
    shutil.copytree(pictures, root)
    (root / "train" / "unheard of").mkdir()
    Image.new("L", (8, 8)).save(root / "train" / "digit 1" / "x.bmp")
    arguments = [*quick(*sizes("images")), "--data", str(root), "--out", str(tmp_path / "run")]
    assert train(arguments) == 0
    assert capsys.readouterr().err == (
        "warning: 1 file is not read, since a class has the PNG and JPEG files that lie in its "
        "folder itself: train/digit 1/x.bmp\n"
        "warning: the training images have none of class 'unheard of'\n"
    )


def test_labels_that_begin_with_1_are_not_trained(arrays, tmp_path, capsys):
    path = tmp_path / "a.npz"
    np.savez(path, images=arrays["test_images"], labels=arrays["test_labels"] + 1)
    changes = quick("data.name=npz", "data.validation=20")
    assert train([*changes, "--data", str(path), "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        f"error: {path}: labels are 1 to 10, but classes are counted from 0: write them as "
        "labels - 1\n"
    )


def test_the_layout_of_arrays_is_said_in_the_configuration(arrays, tmp_path, capsys):
    path, out = tmp_path / "a.npz", str(tmp_path / "run")
    images = np.repeat(arrays["test_images"][..., None], 4, axis=3)
    np.savez(path, images=images, labels=arrays["test_labels"])
    changes = [*quick("data.name=npz", "data.validation=20"), "--data", str(path), "--out", out]
    assert train(changes) == 2
    assert capsys.readouterr().err == (
        f"error: {path}: images of shape (359, 8, 8, 4) can be 8 channels of 8x4 (nchw) or "
        "4 channels of 8x8 (nhwc): choose one with --layout (in a configuration data.layout, in "
        "the file an entry layout)\n"
    )
    assert train([*changes, "--set", "data.layout=nhwc"]) == 0
    assert export([out]) == 0
    assert file.load(tmp_path / "run" / "net.lbq").input.shape == (4, 8, 8)


def test_a_network_remembers_the_background_of_its_pictures(arrays, tmp_path, capsys):
    """Black ink on nothing, as a drawing program saves it."""
    root, out = tmp_path / "ink", str(tmp_path / "run")
    for split, count in (("train", 200), ("test", 50)):
        pairs = zip(arrays[f"{split}_images"], arrays[f"{split}_labels"], strict=True)
        for number, (image, label) in enumerate(itertools.islice(pairs, count)):
            folder = root / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            ink = np.zeros((8, 8, 4), np.uint8)
            ink[..., 3] = image
            Image.fromarray(ink, "RGBA").save(folder / f"{number:04}.png")
    changes = [*quick(*sizes("images")), "--data", str(root), "--out", out]
    assert train(changes) == 2
    first = root / "train" / "0" / "0000.png"
    assert capsys.readouterr().err == (
        f"error: {first} has transparent pixels: say what lies behind them with --background black "
        "or --background white (in a configuration data.background)\n"
    )
    assert train([*changes, "--set", "data.background=white"]) == 0
    assert export([out]) == 0
    capsys.readouterr()
    assert evaluate(["--model", f"{out}/net.lbq", "--data", str(root), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    options = {"shape": (1, 8, 8), "reading": Reading(background="white")}
    test = datasets.load("images", root, split="test", **options)
    right = golden.predict(file.load(tmp_path / "run" / "net.lbq"), test.images) == test.labels
    assert facts["accuracy"] == 100 * right.mean()
    assert evaluate(["--dataset", "images", "--data", str(root), "--background", "black"]) == 0
