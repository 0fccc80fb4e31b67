"""Data as users bring it, drawn from a seed: right, or wrong in ways that are known.

Each case is made of the embedded digits. It knows what must come out: which images and labels are
seen, or which sentences may refuse it, and which notes must be made, no more and no fewer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lbq_hw import datasets
from lbq_hw.datasets import Reading

FULL = 16  # the full scale of the digits
DIGITS = tuple("0123456789")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]
Part = tuple[Pixels, Labels]


@dataclass(kw_only=True)
class Case:
    """What a user brings to a command, and what must come out of it.

    `parts` are the images and labels that are seen of each split: "whole" of undivided data.
    `reasons` has the sentences of which one must refuse the case, if there are any; `notes` those
    that must be made beside what the values themselves give rise to. `choices` tells what was
    drawn.
    """

    training: bool
    name: str
    path: Path
    parts: dict[str, Part] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    classes: int = 10
    validation: bool = True
    held_out: str = "none"
    limit: int | None = None
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)


class Chooser:
    """Draws and remembers what was drawn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.choices: dict[str, str] = {}

    def draw(self, what: str, **weights: int) -> str:
        (found,) = self.random.choices(list(weights), list(weights.values()))
        self.choices[what] = found
        return found


def make(seed: int, folder: Path) -> Case:
    """The case of a seed, its files in `folder`."""
    chooser = Chooser(seed)
    training = chooser.draw("command", evaluate=2, train=1) == "train"
    build = _arrays if chooser.draw("form", npz=1, images=1) == "npz" else _pictures
    case = build(chooser, training, folder)
    if not training:
        case.limit = 5 if chooser.draw("limit", none=3, five=1) == "five" else None
        if set(case.parts) == {"whole"}:
            case.held_out = chooser.draw("held out", none=3, right=3, other=1)
    elif set(case.parts) == {"whole"}:
        case.validation = chooser.draw("validation", given=5, none=1) == "given"
        if not case.validation:
            case.reasons.append(
                f"{case.path} does not tell training and test images apart: hold some of them out "
                "with --set data.validation=N, or divide them into train and test"
            )
    case.choices = chooser.choices
    return case


def value_notes(images: Pixels) -> list[str]:
    """What must be said of values that are not 0 to 16."""
    mend = "or let an .npz file say its own full_scale"
    share = np.count_nonzero(images > FULL) / images.size
    if share > 0.01:
        return [
            f"{100 * share:.1f} % of the pixels are above 16, the network's full scale: scale them "
            f"to 0 to 16, {mend}"
        ]
    if images.max() < 2:
        return [
            f"the largest pixel is {images.max()}, and the network's full scale is 16: scale the "
            f"pixels to 0 to 16, {mend}"
        ]
    return []


def _digits(chooser: Chooser, split: str, per_class: int) -> Part:
    """Some digits of each class, in no order."""
    whole = datasets.load("digits", split=split)
    chosen = []
    for kind in range(10):
        chosen += chooser.random.sample(np.flatnonzero(whole.labels == kind).tolist(), per_class)
    chooser.random.shuffle(chosen)
    return whole.images[chosen, 0], whole.labels[chosen]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _other_classes(path: Path, names: Sequence[str]) -> str:
    return (
        f"{path} has the classes {_listed(names)}, where the model has {_listed(DIGITS)}: give "
        "data of the model's own classes, under the same names"
    )


LAYOUTS = {
    "hw": None,
    "chw": "nchw",
    "hwc": "nhwc",
    "rgb": "nhwc",
    "rgb_first": "nchw",
    "rgba": "nhwc",
    "flat": None,
    "last": None,
    "middle": None,
}
CHANNELS = {"rgb": 3, "rgb_first": 3, "rgba": 4}


def _laid_out(pixels: Pixels, layout: str) -> Pixels:
    """Gray images (n, 8, 8) as an array has them."""
    match layout:
        case "chw" | "rgb_first":
            return np.repeat(pixels[:, None], CHANNELS.get(layout, 1), axis=1)
        case "hwc" | "rgb" | "rgba":
            return np.repeat(pixels[..., None], CHANNELS.get(layout, 1), axis=3)
        case "flat":
            return pixels.reshape(-1, 64)
        case "last":
            return pixels.transpose(1, 2, 0)
        case "middle":
            return pixels[:, :, None]
        case _:
            return pixels


def _arrays(chooser: Chooser, training: bool, folder: Path) -> Case:
    path = folder / "mine.npz"
    case = Case(training=training, name="npz", path=path)
    division = chooser.draw("split", whole=10, divided=7, mixed=4, train_only=1, twice=1)
    held = {
        "whole": ("",),
        "divided": ("train_", "test_"),
        "mixed": ("", "test_"),
        "train_only": ("train_",),
        "twice": ("", "train_"),
    }[division]
    first = "test_" if "test_" in held and not training else held[0]
    parts = {
        prefix: _digits(chooser, "test" if prefix == "test_" else "train", 2) for prefix in held
    }
    entries: dict[str, object] = {}

    values = chooser.draw("values", plain=6, said=3, above=1, tiny=1)
    if values == "said":
        entries["full_scale"] = 240
    depth = chooser.draw("depth", uint8=20, float32=1, uint16=1)
    layout = chooser.draw(
        "layout", hw=8, chw=8, hwc=8, rgb=1, rgb_first=1, rgba=2, flat=1, last=1, middle=1
    )
    truth = LAYOUTS[layout]
    said = "no"
    if truth is not None:  # nobody can know that what is said of a training set is wrong
        wrong = 0 if training else 1
        said = chooser.draw("said", no=5, entry=2, option=2, wrong=wrong, both=1)
    other = "nchw" if truth == "nhwc" else "nhwc"
    if said in ("entry", "both"):
        entries["layout"] = truth
    if said in ("option", "wrong", "both"):
        told = truth if said == "option" else other
        case.reading = Reading(layout=told)  # pyright: ignore[reportArgumentType]
    kinds = chooser.draw("labels", plain=16, one=1, strings=1, floats=1, short=1)
    names = chooser.draw("names", none=5, right=2, permuted=2, words=1) if kinds == "plain" else ""
    order = list(range(10))  # the digit that a label stands for
    if names == "permuted":
        chooser.random.shuffle(order)
    if names in ("right", "permuted", "words"):
        called = WORDS if names == "words" else DIGITS
        entries["class_names"] = np.array([called[kind] for kind in order])

    sizes: dict[str, tuple[int, ...]] = {}
    for prefix, (pixels, labels) in parts.items():
        numbers = np.argsort(order)[labels]
        stored = pixels.astype(np.uint8)
        if values in ("said", "above"):
            stored = pixels * np.uint8(15)
        elif values == "tiny":
            stored = pixels // np.uint8(16)
        shaped = _laid_out(stored, layout)
        sizes[prefix] = shaped.shape
        entries[f"{prefix}images"] = shaped.astype(depth)
        entries[f"{prefix}labels"] = {
            "one": numbers + 1,
            "strings": numbers.astype(str),
            "floats": numbers.astype(float),
            "short": numbers[:-1],
        }.get(kinds, numbers)
        seen = pixels if values == "said" else stored
        channels = CHANNELS.get(layout, 1)
        split = prefix[:-1] or ("whole" if held == ("",) else "train")
        case.parts[split] = (
            np.repeat(seen[:, None], channels, axis=1),
            numbers if training else labels,
        )
    np.savez(path, **entries)  # pyright: ignore[reportArgumentType]

    reasons, size = case.reasons, sizes[first]
    count = len(parts[first][1])
    if division == "train_only":
        reasons.append(
            f"{path} must have the arrays images and labels, or test_images and test_labels, not "
            f"{', '.join(sorted(entries))}"
        )
    if division == "twice":
        reasons.append(
            f"{path} has training images twice, as images and as train_images: leave out one"
        )
    if depth != "uint8":
        reasons.append(f"{path}: {first}images must be uint8, 0 to 255, not {depth}")
    if layout == "flat":
        reasons.append(
            f"{path}: {first}images must be of shape (n, C, H, W), (n, H, W) or (n, T, C, H, W), "
            f"not {size}"
        )
    ways = {
        "rgba": "8 channels of 8x4 (nchw) or 4 channels of 8x8 (nhwc)",
        "middle": "8 channels of 1x8 (nchw) or 8 channels of 8x1 (nhwc)",
    }
    if layout in ways and said == "no":
        reasons.append(
            f"{path}: {first}images of shape {size} can be {ways[layout]}: choose one with "
            "--layout (in a configuration data.layout, in the file an entry layout)"
        )
    if said == "both":
        reasons.append(f"{path} says that its layout is {truth}, not {other}: leave out one")
    shape = (CHANNELS.get(layout, 1), 8, 8)
    if said == "wrong":  # what was said is believed, and does not fit
        a, b, c = size[1:]
        shape = (a, b, c) if other == "nchw" else (c, a, b)
        case.parts = {key: (value[0][:0], value[1]) for key, value in case.parts.items()}
    if not training and shape != (1, 8, 8):
        reasons.append(f"the model takes images of shape (1, 8, 8), {path} has {shape}")
    if kinds == "short" or layout == "last":
        given = count - 1 if kinds == "short" else count
        here = 8 if layout == "last" else count
        reasons.append(f"{path} must have as many labels as images, not {given} and {here}")
    if kinds in ("strings", "floats"):
        reasons += [
            f"{path}: {name} must be one integer from 0 to 32767 per image"
            for name in ("labels", f"{first}labels")
        ]
    if kinds == "one" and training:
        reasons.append(
            f"{path}: labels are 1 to 10, but classes are counted from 0: write them as labels - 1"
        )
    elif kinds == "one":
        reasons.append(
            f"the model knows 10 classes, {path} has 11 since its labels are 1 to 10: write them "
            "as labels - 1"
        )
    if names == "words" and not training:
        reasons.append(_other_classes(path, WORDS))
    return case


def _turned(pixels: Pixels, way: int) -> Pixels:
    """An upright picture as a camera stores it that notes this way in its EXIF."""
    across = (1, 0, *range(2, pixels.ndim))
    return {
        1: pixels,
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: pixels.transpose(across),
        6: np.rot90(pixels),
        7: pixels[::-1, ::-1].transpose(across),
        8: np.rot90(pixels, -1),
    }[way]


def _picture(gray: Pixels, mode: str, way: int) -> Image.Image:
    """A picture of this mode whose pixels look gray."""
    value = _turned(((gray.astype(int) * 255 + 8) // 16).astype(np.uint8), way)
    full, none = np.full_like(value, 255), np.zeros_like(value)
    layers = {
        "RGB": (value, value, value),
        "LA": (value, full),
        "RGBA": (value, value, value, full),
        "black_ink": (none, none, none, 255 - value),
        "white_ink": (full, full, full, value),
    }
    if mode == "deep":
        return Image.fromarray(value.astype(np.uint16) * 257)
    if mode in layers:
        return Image.fromarray(np.ascontiguousarray(np.stack(layers[mode], axis=2)))
    picture = Image.fromarray(np.ascontiguousarray(value))
    return picture.convert("P") if mode == "P" else picture


def _pictures(chooser: Chooser, training: bool, folder: Path) -> Case:
    path = folder / "pictures"
    case = Case(training=training, name="images", path=path)
    division = chooser.draw("split", whole=8, divided=8, test_only=1, train_only=1)
    splits = {"whole": ["whole"], "divided": ["train", "test"]}.get(division, [division[:-5]])
    mode = chooser.draw("mode", L=6, RGB=4, P=2, LA=2, RGBA=2, black_ink=4, white_ink=1, deep=1)
    if mode.endswith("ink") and chooser.draw("background", said=2, unsaid=1) == "said":
        behind = "white" if mode == "black_ink" else "black"
        case.reading = Reading(background=behind)
    named = chooser.draw("classes", digits=14, words=1, padded=1, lacking=1, empty=1, extra=1)
    way = chooser.random.choice(range(1, 9))
    left = chooser.draw("left", none=6, bmp=1, deeper=1, beside=1)
    suffix = chooser.random.choice((".png", ".PNG"))

    called = {"words": WORDS, "padded": [f"0{name}" for name in DIGITS]}.get(named, DIGITS)
    gone = chooser.random.randrange(10) if named in ("lacking", "empty") else None
    names = [*called, "other"] if named == "extra" else list(called)
    if named == "lacking":
        names.remove(called[gone or 0])
    ordered = sorted(names)
    case.classes = len(ordered)
    exif = Image.Exif()
    exif[0x0112] = way
    written: list[Path] = []
    for split in splits:
        root = path if split == "whole" else path / split
        for name in ordered:
            (root / name).mkdir(parents=True, exist_ok=True)
        pixels, labels = _digits(chooser, "test" if split == "test" else "train", 3)
        folders = [called[label] for label in labels]
        if gone is not None:
            keep = labels != gone
            pixels, labels = pixels[keep], labels[keep]
            folders = [name for name, kept in zip(folders, keep, strict=True) if kept]
        if named == "extra":
            for name in DIGITS[:3]:  # one of three classes each
                folders[folders.index(name)] = "other"
        for number, (gray, name) in enumerate(zip(pixels, folders, strict=True)):
            file = root / name / f"{number:02}{suffix}"
            _picture(gray, mode, way).save(file, format="png", exif=exif)
            written.append(file)
        case.parts[split] = (
            pixels[:, None],
            np.array([ordered.index(name) for name in folders]),
        )
    for name in ("__MACOSX", ".git"):
        (path / name / "0").mkdir(parents=True)
        (path / name / "0" / "0.png").write_bytes(b"")
    root = path / splits[0] if division != "whole" else path
    lost = {
        "bmp": root / ordered[1] / "x.bmp",
        "deeper": root / ordered[2] / "deeper" / "x.png",
        "beside": root / "x.png",
    }.get(left)
    if lost is not None:
        lost.parent.mkdir(exist_ok=True)
        Image.new("L", (8, 8)).save(lost)
        case.notes.append(
            "1 file is not read, since a class has the PNG and JPEG files that lie in its folder "
            f"itself: {lost.relative_to(path)}"
        )

    reasons = case.reasons
    if "test" not in splits and "whole" not in splits:
        reasons.append(f"{path} has no folder 'test' beside 'train'")
    if training and splits == ["test"]:
        reasons.append(f"{path} has no folder 'train' beside 'test'")
    if mode.endswith("ink") and case.reading.background is None:
        reasons += [
            f"{file} has transparent pixels: say what lies behind them with --background black or "
            "--background white (in a configuration data.background)"
            for file in written
        ]
    if mode == "deep":
        reasons += [
            f"{file} cannot be read as a picture (more than 8 bits per channel): give a PNG or "
            "JPEG file"
            for file in written
        ]
    if training:
        if named == "empty" and splits == ["whole"]:
            reasons.append(
                "data.validation must be a multiple of the 10 classes and leave images of each, of "
                "which the smallest has 0, not 10"
            )
        elif named == "empty":
            case.notes.append(f"the training images have none of class {called[gone or 0]!r}")
    elif named in ("words", "padded"):
        reasons.append(_other_classes(path, ordered))
    elif named == "lacking":
        reasons.append(
            f"{path} lacks the model's classes {called[gone or 0]!r}: give data of all of them, a "
            "folder may be empty"
        )
    elif named == "extra":
        reasons.append(
            f"{path} has the classes 'other', which the model does not know: leave them out"
        )
    return case
