"""Training on data of the user's own, and what is trained evaluated on it."""

import json

import numpy as np
import pytest
from PIL import Image
from small_runs import SMALL

from lbq_hw import datasets, file
from lbq_hw.datasets import Reading
from lbq_hw.evaluate import main as evaluate
from train import config
from train.command import main as train
from train.export import main as export
from train.schema import ConfigError

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
    assert export([str(tmp_path / "run"), "--out", str(model), "--data", data]) == 0
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
        f"train: {path} does not tell training and test images apart: hold some of them out with "
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
