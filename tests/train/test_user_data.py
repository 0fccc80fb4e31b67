"""Whatever a user brings is computed right, refused, or warned about, each with the true reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from user_data import Case, make, value_notes

from lbq_hw import datasets, file, zoo
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.network import HeldOut, Network
from lbq_hw.train.batches import Batches
from lbq_hw.train.settings import config
from lbq_hw.train.world import World

CASES, BATCH = 250, 25
DIGITS = file.load(zoo.find("digits"))
OTHER_DATA = (
    "the data is not divided and the network was trained on other data, or on these before they "
    "were changed: training images may be among these"
)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a command saw of a case: images and labels by split, and its notes."""

    parts: dict[str, tuple[np.ndarray, np.ndarray]]
    notes: tuple[str, ...]


def pairs(images: np.ndarray, labels: np.ndarray) -> Counter[tuple[bytes, int]]:
    return Counter(
        (image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)
    )


def network_of(case: Case) -> Network:
    """The zoo's digits; for undivided data it may say that every third image was held out."""
    if case.held_out == "none" or case.reasons:
        return DIGITS
    options = {"shape": (1, 8, 8), "reading": case.reading}
    whole = datasets.load(case.name, case.path, split="test", **options)
    data = whole.digest() if case.held_out == "right" else "0" * 64
    held = HeldOut(data=data, count=len(whole), indices=tuple(range(0, len(whole), 3)))
    return replace(DIGITS, held_out=held)


def evaluated(case: Case) -> Seen:
    """What a network is evaluated on."""
    found = load_dataset(network_of(case), case.name, str(case.path), case.limit, case.reading)
    assert (found.drawn is None) == (case.limit is None)
    return Seen(parts={found.split: (found.images, found.labels)}, notes=found.notes)


def trained(case: Case) -> Seen:
    """What a run trains and tests on."""
    changes = ["train.batch=4", "train.device=cpu", f"data.name={case.name}"]
    if case.name == "images":
        changes += ["data.size=8", "data.channels=1"]
    for key in ("layout", "background"):
        if (value := getattr(case.reading, key)) is not None:
            changes.append(f"data.{key}={value}")
    whole = set(case.parts) == {"whole"} or "twice" in case.choices.values()
    if whole and case.validation:
        changes.append(f"data.validation={case.classes}")
    chosen = config.load("digits", changes)
    with World.join("cpu") as world:
        found = Batches.load(chosen, case.path, world, download=False)
    loaders = {"train": found.train, chosen.data.split: found.test}
    parts = {key: (x.images.numpy(), x.labels.numpy()) for key, x in loaders.items()}
    return Seen(parts=parts, notes=found.origin.notes)


def check_images(case: Case, seen: Seen) -> None:
    """The images and labels that were seen are those of the case, value for value."""
    if "whole" not in case.parts:
        for split, found in seen.parts.items():
            wanted = pairs(*case.parts[split])
            assert pairs(*found) <= wanted if case.limit else pairs(*found) == wanted
        return
    wanted = pairs(*case.parts["whole"])
    if case.training:
        assert pairs(*seen.parts["train"]) + pairs(*seen.parts["validation"]) == wanted
        counts = np.bincount(seen.parts["validation"][1], minlength=case.classes)
        assert counts.tolist() == [1] * case.classes
        return
    ((split, found),) = seen.parts.items()
    assert split == ("validation" if case.held_out == "right" else "whole")
    total = sum(wanted.values())
    count = -(-total // 3) if split == "validation" else total
    assert len(found[1]) == min(case.limit or count, count)
    assert pairs(*found) <= wanted


def wanted_notes(case: Case, seen: Seen) -> list[str]:
    """The notes that a case must have: on its files, and on the values of the images it sees."""
    notes = list(case.notes)
    if case.training:
        return notes + value_notes(seen.parts["train"][0])
    if case.held_out == "other":
        notes.append(OTHER_DATA)
    (split,) = seen.parts
    if split == "validation":
        return notes + value_notes(whole_of(case)[::3])
    return notes + value_notes(case.parts[split][0])


def whole_of(case: Case) -> np.ndarray:
    """The images of undivided data in their order, in the range of the digits."""
    return load_dataset(DIGITS, case.name, str(case.path), None, case.reading).images


def look(case: Case) -> Seen:
    return trained(case) if case.training else evaluated(case)


def outcome(case: Case) -> str:
    if case.reasons:
        with pytest.raises((DatasetError, ValueError)) as caught:
            look(case)
        assert str(caught.value) in case.reasons
        return "refused"
    seen = look(case)
    check_images(case, seen)
    wanted = wanted_notes(case, seen)
    assert sorted(seen.notes) == sorted(wanted)
    return "warned" if wanted else "right"


def run(seeds: range, folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        case = make(seed, place)
        try:
            found[outcome(case)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: {case.choices}")
            raise
    return found


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_what_a_user_brings_is_right_refused_or_warned_about(first: int, tmp_path: Path) -> None:
    found = run(range(first, first + BATCH), tmp_path)
    assert sum(found.values()) == BATCH
    assert min(found["right"], found["refused"]) > 0


@pytest.mark.slow
def test_more_of_what_a_user_brings_is_right_refused_or_warned_about(tmp_path: Path) -> None:
    found = run(range(CASES, 2000), tmp_path)
    assert min(found[kind] for kind in ("right", "refused", "warned")) > 150
