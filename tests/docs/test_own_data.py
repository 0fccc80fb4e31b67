"""The page on data of one's own: its commands run as they are printed, its sentences are so."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from simulators import needs_verilator

from lbq_hw import boards, datasets, file, golden, zoo
from lbq_hw.__main__ import main as lbq
from lbq_hw.datasets import DatasetError, own
from lbq_hw.datasets.fitting import load_dataset, load_samples
from lbq_hw.evaluate import main as evaluate
from lbq_hw.flow import Job, Options
from lbq_hw.network import HeldOut
from lbq_hw.train import command
from lbq_hw.train.data import Origin, held_out, unseen
from lbq_hw.train.data.origin import read as read_origin
from lbq_hw.train.run_folder import check_data
from lbq_hw.train.settings import config
from tests.lbq_hw.test_evaluate import small

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"


def commands() -> list[list[str]]:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    return [shlex.split(line) for line in block.replace("\\\n", "").splitlines()]


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Digits as pictures, in a current folder whose user has programs of the same names."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "sim.py"):
        (tmp_path / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    for split in ("train", "test"):
        digits = datasets.load("digits", split=split)
        seen = [0] * digits.classes
        for image, label in zip(digits.images, digits.labels, strict=True):
            folder = tmp_path / "pictures" / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0] * np.uint8(15)).save(folder / f"{seen[label]}.png")
            seen[label] += 1
    return tmp_path / "pictures"


@pytest.mark.slow
@needs_verilator
def test_the_way_from_pictures_to_predictions_runs_as_printed(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in commands():
        capsys.readouterr()
        assert words[0] == "lbq"
        assert lbq(words[1:]) == 0, words
    shown = capsys.readouterr().out
    with Image.open(pictures / "test" / "7" / "0.png") as picture:
        raw = np.asarray(picture)[None, None]
    (wanted,) = golden.predict(file.load("mine.lbq"), raw).tolist()
    assert re.search(rf"classes +│ {wanted} ", shown)
    assert "all logits equal" in shown


def digit_arrays(folder: Path, **entries: Any) -> str:
    """The test digits in a file, with these entries beside or in place of theirs."""
    test = datasets.load("digits", split="test")
    arrays: dict[str, Any] = {"images": test.images, "labels": test.labels} | entries
    np.savez(folder / "mine.npz", **arrays)
    return str(folder / "mine.npz")


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint8)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises((DatasetError, ValueError)) as caught:
        call()
    return str(caught.value)


def shapes_are_read(folder: Path, _: object) -> None:
    for found, wanted in (
        ((4, 9, 7), (4, 1, 9, 7)),
        ((4, 2, 9, 7), (4, 2, 9, 7)),
        ((4, 4, 9, 7), (4, 4, 9, 7)),
        ((4, 3, 2, 9), (4, 3, 2, 9)),
        ((4, 9, 7, 1), (4, 1, 9, 7)),
        ((4, 9, 7, 3), (4, 3, 9, 7)),
        ((4, 5, 2, 9, 7), (4, 5, 2, 9, 7)),
    ):
        path = digit_arrays(folder, images=zeros(*found), labels=np.arange(4))
        assert datasets.load("npz", path, split="train").images.shape == wanted
    path = digit_arrays(folder, images=zeros(4, 8, 8, 4), labels=np.arange(4))
    assert load_dataset(small((4, 8, 8)), "npz", path).images.shape == (4, 4, 8, 8)
    frames = refusal(lambda: datasets.load("npz", path, split="test", shape=(1, 8, 8)))
    assert " can be 8 channels of 8x4 (nchw) or 4 channels of 8x8 (nhwc): " in frames


def layouts_are_said(folder: Path, _: object) -> None:
    path = digit_arrays(folder, images=zeros(4, 8, 8, 4), labels=np.arange(4))
    assert " can be " in refusal(lambda: datasets.load("npz", path, split="train"))
    for layout, shape in (("nchw", (8, 8, 4)), ("nhwc", (4, 8, 8))):
        chosen = config.load("digits", ["data.name=npz", f"data.layout={layout}"])
        options = chosen.data.options(2)
        assert datasets.load("npz", path, split="train", **options).shape == shape
        inside = digit_arrays(folder, images=zeros(4, 8, 8, 4), labels=np.arange(4), layout=layout)
        assert datasets.load("npz", inside, split="train").shape == shape
        path = digit_arrays(folder, images=zeros(4, 8, 8, 4), labels=np.arange(4))


def labels_begin_with_0(folder: Path, _: object) -> None:
    path = digit_arrays(folder, labels=datasets.load("digits", split="test").labels + 1)
    assert "labels - 1" in refusal(lambda: datasets.load("npz", path, split="train"))
    assert "labels - 1" in refusal(lambda: load_dataset(small(), "npz", path))


def turned(folder: Path, _: object) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(folder / "a.png", exif=exif)
    assert own.read_picture(folder / "a.png", (1, 2, 1)).tolist() == [[[0], [255]]]


def transparent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(10):
        (folder / "a" / str(number)).mkdir(parents=True)
        Image.new("RGBA", (8, 8), (0, 0, 0, 128)).save(folder / "a" / str(number) / "0.png")
    words = ["--dataset", "images", "--data", str(folder / "a"), "--json"]
    assert evaluate(words) == 2
    assert "has transparent pixels" in capsys.readouterr().err
    for background, value in (("black", 0), ("white", 127)):
        assert evaluate([*words, "--background", background]) == 0
        keys = ["data.name=images", "data.size=8", f"data.background={background}"]
        chosen = config.load("digits", keys)
        said = datasets.load("images", folder / "a", split="test", **chosen.data.options(2))
        assert set(said.images.ravel().tolist()) == {value}
        digits = file.load(zoo.find("digits"))
        mine = replace(digits, meta={**digits.meta, "config": chosen.to_dict()})
        wanted = load_dataset(digits, "images", str(folder / "a"), reading=chosen.data.reading)
        found = load_dataset(mine, "images", str(folder / "a"))
        np.testing.assert_array_equal(found.images, wanted.images)


def left_files(folder: Path, _: object) -> None:
    (folder / "a" / "deeper").mkdir(parents=True)
    for name in ("0.png", "1.bmp", "deeper/2.png"):
        Image.new("L", (8, 8)).save(folder / "a" / name)
    (folder / "b").mkdir()
    found = datasets.load("images", folder, split="train", shape=(1, 8, 8))
    assert found.notes == (
        "2 files are not read, since a class has the PNG and JPEG files that lie in its folder "
        "itself: a/1.bmp, a/deeper/2.png",
    )
    assert unseen(found) == "the training images have none of class 'b'"


def files_are_divided(folder: Path, _: object) -> None:
    test = {"test_images": zeros(2, 8, 8), "test_labels": np.arange(2)}
    whole = {"images": zeros(3, 8, 8), "labels": np.arange(3)}
    for others in (whole, {f"train_{name}": array for name, array in whole.items()}):
        np.savez(folder / "a.npz", **test, **others)
        splits = [datasets.load("npz", folder / "a.npz", split=x) for x in ("train", "test")]
        assert [(found.split, len(found)) for found in splits] == [("train", 3), ("test", 2)]


def held_out_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = digit_arrays(folder)
    whole = datasets.load("npz", path, split="test")
    chosen = held_out(whole, 50)
    assert np.bincount(whole.labels[chosen]).tolist() == [5] * 10
    held = HeldOut(data=whole.digest(), count=len(whole), indices=tuple(chosen.tolist()))
    Origin(digest="", held_out=held).write(folder)
    assert read_origin(folder).held_out == held
    digits = file.load(zoo.find("digits"))
    mine = {**digits.meta, "dataset": "npz", "float_split": "validation"}
    for network, split, count in (
        (replace(digits, meta=mine, held_out=held), "validation", 50),
        (replace(digits, meta=mine), "whole", 359),
        (replace(digits, meta=mine, held_out=replace(held, data="0" * 64)), "whole", 359),
    ):
        file.save(network, folder / "net.lbq")
        assert evaluate(["--model", str(folder / "net.lbq"), "--data", path, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["split"], facts["images"]) == (split, count)
        assert facts["float_split"] == "validation"
        among = [note for note in facts["notes"] if "training images may be among these" in note]
        assert len(among) == (split == "whole")


def draws(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(["--limit", "20"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert " % of 20 of 359 test images (seed 0) right" in shown
    assert evaluate(["--limit", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["drawn"] == {"of": 359, "seed": 0}
    digits = file.load(zoo.find("digits"))
    drawn = load_samples(digits, limit=20).images  # what evaluate, host and sim see
    shutil.copyfile(zoo.find("digits"), folder / "net.lbq")
    options = Options(model=zoo.find("digits"), images=20)
    job = Job(options, boards.find("sim"), folder)
    np.testing.assert_array_equal(job.images.raw, drawn)
    raw = datasets.load("digits", split="test").images
    np.save(folder / "raw.npy", raw)
    found = load_samples(digits, raw=str(folder / "raw.npy"), limit=20)
    np.testing.assert_array_equal(found.images, raw[:20])
    options = replace(options, raw=str(folder / "raw.npy"))
    job = Job(options, boards.find("sim"), folder)
    np.testing.assert_array_equal(job.images.raw, drawn)


def digits_have_no_data(_: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(["--data", "mine.npz"]) == 2
    assert "reads nothing from mine.npz" in capsys.readouterr().err


def runs_remember(folder: Path, _: object) -> None:
    for number, state in enumerate(({"data": "a"}, {"data": "b"})):
        check = partial(check_data, state, "a", folder, folder)
        if number:
            assert "was trained on other images or labels" in refusal(check)
        else:
            check()


def runs_are_named(folder: Path, _: object) -> None:
    chosen = config.load("digits", ["data.name=npz"])
    given = argparse.Namespace(data=folder / "mine.npz")
    assert command._run_name(given, chosen) == "mine"
    assert command._named(chosen, folder / "wide").name == "wide"
    assert command._named(config.load("digits"), folder / "wide").name == "digits"


SENTENCES = (
    (
        "Gray `images` have the shape (n, H, W), other images (n, C, H, W) or (n, H, W, C). In "
        "recordings the axis of frames comes after n, with one frame per timestep of the "
        "network.",
        shapes_are_read,
    ),
    (
        "The channel axis is recognized by its length: 1 to 4 if it comes first, 1 or 3 if it "
        "comes last, and more than 4 at the other end. If a network reads the images, its input "
        "shape decides.",
        shapes_are_read,
    ),
    (
        "A shape that can be read in two ways, such as (n, 8, 8, 4) in training, is refused "
        "until you name the order of the axes: with `--layout nchw` or `--layout nhwc`, with "
        "`data.layout` in a configuration, or with an entry `layout` in the file.",
        layouts_are_said,
    ),
    ("Labels that begin with 1 are refused.", labels_begin_with_0),
    ("are turned upright as their EXIF entry says", turned),
    (
        "a picture with transparent pixels is refused until you choose what lies behind them, "
        "with `--background black` or `--background white`, or with `data.background` in a "
        "configuration, which the network remembers.",
        transparent,
    ),
    (
        "A warning counts and names the files that are not read, such as a `.bmp` file or a "
        "picture one folder deeper; another names the classes without training images.",
        left_files,
    ),
    (
        "Data is divided if it has a test split. A file has one in `test_images` and "
        "`test_labels`; its other arrays are `train_images` and `train_labels`, or `images` and "
        "`labels`.",
        files_are_divided,
    ),
    (
        "hold out, equally many of each class. The list of these images stays with the "
        "network, in `data.json` of the run and in the `.lbq` file, and later commands "
        "evaluate only these images. If there is no list, or if the data has changed, all "
        "images are evaluated, and a warning says that training images may be among them.",
        held_out_alone,
    ),
    (
        "Every accuracy is printed with the images that it was measured on, which JSON has as "
        "`split`: `test`, `validation` or `whole`. `float_split` is the same for "
        "`float_accuracy`.",
        held_out_alone,
    ),
    (
        "draw N images of the dataset with seed 0, so all commands draw the same images. The "
        "line with the accuracy says so, and so does `drawn` in JSON. From `--raw` and "
        "`--picture` the first N are taken, except in `lbq build` and `lbq plan`, which draw from "
        "`--raw` too.",
        draws,
    ),
    (
        "**Runs** remember a digest of their images and labels: `lbq train --resume` with "
        "other data is refused.",
        runs_remember,
    ),
    (
        "If you train a shipped configuration on your own data, the run and its network are "
        "named after the run's folder. Without `--out`, this folder is named after the data.",
        runs_are_named,
    ),
    (
        "The dataset `digits` comes with scikit-learn, so `--data` is refused with it.",
        digits_have_no_data,
    ),
)


def test_the_raw_value_of_white_is_that_of_the_table() -> None:
    text = PAGE.read_text("utf-8")
    head = "| `data.bits` | `data.shift` | `data.full_scale` | raw value of white |\n"
    lines = text.partition(head)[2].partition("\n\n")[0].splitlines()[1:]
    table = [[int(cell) for cell in line.strip("|").split("|")] for line in lines]
    assert len(table) == 4
    for bits, shift, scale, white in table:
        keys = [f"data.bits={bits}", f"data.shift={shift}", f"data.full_scale={scale}"]
        spec = config.load("digits", keys).data.spec((1, 8, 8), static=True)
        assert spec.white == white
        assert spec.full_scale == (scale or 2**bits - 1)
        raw = torch.full((1, 1, 8, 8), white, dtype=torch.uint8)
        wanted = min(white >> shift, 2**bits - 1) / spec.full_scale
        assert set(spec.normalize(raw).flatten().tolist()) == {wanted} == {1.0}


@pytest.mark.parametrize(("sentence", "check"), SENTENCES)
def test_a_sentence_of_the_page_is_so(
    sentence: str,
    check: Callable[[Path, pytest.CaptureFixture[str]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sentence in " ".join(PAGE.read_text("utf-8").split())
    check(tmp_path, capsys)
