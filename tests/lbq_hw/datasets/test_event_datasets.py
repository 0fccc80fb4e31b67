"""Readers of event recordings against tiny files in the official formats, and real ones if any."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import aedat3, polarity, recording, write_cifar10_dvs

from lbq_hw import datasets
from lbq_hw.datasets import DatasetError, base, events
from lbq_hw.datasets.events import Events, integrate

NMNIST_PAGE = "N-MNIST, https://www.garrickorchard.com/datasets/n-mnist"


def message(*args, **kwargs) -> str:
    """The text of the DatasetError that loading must raise."""
    with pytest.raises(DatasetError) as caught:
        datasets.load(*args, **kwargs)
    return str(caught.value)


def by_hand(e: Events, timesteps: int, side: int, block: int = 1) -> np.ndarray:
    """Frames counted event by event."""
    frames = np.zeros((timesteps, 2, side // block, side // block), int)
    first, span = e.t.min(), e.t.max() - e.t.min() + 1
    for x, y, p, t in zip(e.x, e.y, e.p, e.t, strict=True):
        frames[(t - first) * timesteps // span, p, y // block, x // block] += 1
    return np.minimum(frames, 255)


@pytest.mark.parametrize("block", [1, 2])
def test_slices_are_equal_in_duration_not_in_count(block):
    e = recording(500, 34, 0)
    frames = integrate(e, timesteps=7, height=34, width=34, block=block)
    assert frames.dtype == np.uint8
    assert np.array_equal(frames, by_hand(e, 7, 34, block))
    early = Events(x=e.x * 0, y=e.y * 0, p=e.p * 0, t=np.where(np.arange(500) < 499, 0, 99))
    counts = integrate(early, timesteps=2, height=34, width=34)
    assert counts[:, 0, 0, 0].tolist() == [255, 1]


def test_recording_without_events_is_black():
    none = np.zeros(0, np.int64)
    frames = integrate(Events(x=none, y=none, p=none, t=none), timesteps=3, height=4, width=4)
    assert np.array_equal(frames, np.zeros((3, 2, 4, 4), np.uint8))


def nmnist_bytes(e: Events) -> bytes:
    words = [e.x, e.y, e.p << 7 | e.t >> 16, e.t >> 8 & 255, e.t & 255]
    return np.stack(words, 1).astype(np.uint8).tobytes()


@pytest.fixture
def nmnist(tmp_path: Path) -> tuple[Path, list[Events]]:
    """Three recordings; the middle file number lies in the last folder."""
    recordings = [recording(200, 34, seed, span=300_000) for seed in range(3)]
    names = ("4/00001.bin", "7/00002.bin", "0/00005.bin")
    for name, e in zip(names, recordings, strict=True):
        path = tmp_path / "Train" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(nmnist_bytes(e))
    return tmp_path, recordings


def test_nmnist_folders_are_read_in_the_order_of_the_numbers(nmnist):
    folder, recordings = nmnist
    dataset = datasets.load("nmnist", folder, split="train", timesteps=5, verify=False)
    assert dataset.temporal
    assert dataset.labels.tolist() == [4, 7, 0]
    expected = np.stack([by_hand(e, 5, 34) for e in recordings])
    assert np.array_equal(dataset.images, expected)
    small = datasets.load("nmnist", folder, split="train", timesteps=5, size=17, verify=False)
    assert np.array_equal(small.images, np.stack([by_hand(e, 5, 34, 2) for e in recordings]))


def test_nmnist_rows_of_240_carry_time_over():
    data = bytes([1, 2, 128, 0, 9, 0, 240, 0, 0, 0, 3, 4, 0, 0, 5])
    e = events.parse_nmnist(data)
    assert e is not None
    assert [e.x.tolist(), e.y.tolist(), e.p.tolist(), e.t.tolist()] == [
        [1, 3],
        [2, 4],
        [1, 0],
        [9, 8192 + 5],
    ]


TRAIN_MEND = f"get Train.zip (md5 20959b8e626244a1b502305a9e6e2031) from {NMNIST_PAGE}"


def test_nmnist_missing_incomplete_and_corrupt(nmnist):
    folder, _ = nmnist
    assert message("nmnist", folder, split="test", timesteps=2) == (
        f"{folder}/Test is missing; get Test.zip "
        f"(md5 69ca8762b2fe404d9b9bad1103e97832) from {NMNIST_PAGE}"
    )
    assert message("nmnist", folder, split="train", timesteps=2) == (
        f"{folder}/Train is corrupt: it has 3 recordings instead of 60000; {TRAIN_MEND}"
    )
    path = folder / "Train/7/00002.bin"
    for data in (path.read_bytes()[:-1], bytes([34, 0, 0, 0, 0])):
        path.write_bytes(data)
        assert message("nmnist", folder, split="train", timesteps=2, verify=False) == (
            f"{path} is corrupt: it is not a list of 40-bit events on 34x34 pixels; {TRAIN_MEND}"
        )
    for file in folder.glob("Train/*/*.bin"):
        file.unlink()
    assert message("nmnist", folder, split="train", timesteps=2, verify=False) == (
        f"{folder} must hold train recordings of 'nmnist', not none"
    )


def packed(recordings: list[Events], labels: list[int]) -> dict[str, Any]:
    dtype = [("x", "u1"), ("y", "u1"), ("p", "u1"), ("t", "<u4")]
    whole = np.zeros(sum(len(e.t) for e in recordings), dtype)
    for field in "xypt":
        whole[field] = np.concatenate([getattr(e, field) for e in recordings])
    offsets = np.cumsum([0] + [len(e.t) for e in recordings])
    return {"test_events": whole, "test_offsets": offsets, "test_labels": np.array(labels)}


def test_packed_nmnist_equals_its_recordings(tmp_path):
    recordings = [recording(count, 34, count) for count in (50, 1, 80)]
    np.savez_compressed(tmp_path / "events.npz", **packed(recordings, [9, 0, 5]))
    dataset = datasets.load("nmnist", tmp_path, split="test", timesteps=4)
    assert dataset.labels.tolist() == [9, 0, 5]
    assert np.array_equal(dataset.images, np.stack([by_hand(e, 4, 34) for e in recordings]))


@pytest.mark.parametrize("wrong", ["offsets", "labels", "column", "count"])
def test_packed_nmnist_that_does_not_fit_together(tmp_path, wrong):
    arrays = packed([recording(50, 34, 0), recording(60, 34, 1)], [1, 2])
    if wrong == "offsets":
        arrays["test_offsets"] = np.array([0, 120, 110])
    elif wrong == "labels":
        arrays["test_labels"] = np.array([1, 10])
    elif wrong == "column":
        arrays["test_events"]["x"][3] = 34
    else:
        arrays["test_labels"] = np.array([1])
    path = tmp_path / "events.npz"
    np.savez(path, **arrays)
    assert message("nmnist", tmp_path, split="test", timesteps=2) == (
        f"{path} is corrupt: its packed test events, offsets and labels do not fit together; "
        f"get Test.zip (md5 69ca8762b2fe404d9b9bad1103e97832) from {NMNIST_PAGE}"
    )


def test_packed_nmnist_truncated_or_without_the_split(tmp_path):
    path = tmp_path / "events.npz"
    np.savez(path, **packed([recording(50, 34, 0)], [1]))
    text = f"{path} is corrupt: it is not an .npz of packed train events; {TRAIN_MEND}"
    assert message("nmnist", tmp_path, split="train", timesteps=2) == text
    path.write_bytes(path.read_bytes()[:-40])
    assert message("nmnist", tmp_path, split="train", timesteps=2) == text


@pytest.fixture
def gesture(tmp_path: Path) -> tuple[Path, Events]:
    """One trial of two gestures, its events in two packets between which a special one lies."""
    e = recording(400, 128, 3, start=1000, span=4000)
    _, _, address, time = polarity(e)
    special = (0, 0, np.array([5]), np.array([2000]))
    data = aedat3((1, 0, address[:150], time[:150]), special, (1, 0, address[150:], time[150:]))
    folder = tmp_path / "DvsGesture"
    folder.mkdir()
    (folder / "user01_led.aedat").write_bytes(data)
    (folder / "user01_led_labels.csv").write_text(
        "class,startTime_usec,endTime_usec\n3,1000,2500\n11,2600,5000\n\n"
    )
    (folder / "trials_to_train.txt").write_text("user01_led.aedat\n\n")
    return tmp_path, e


def test_dvs128_gesture_cuts_a_trial_into_its_gestures(gesture):
    folder, e = gesture
    dataset = datasets.load("dvs128-gesture", folder, split="train", timesteps=3)
    assert dataset.labels.tolist() == [2, 10]
    expected = [by_hand(e.between(1000, 2500), 3, 128), by_hand(e.between(2600, 5000), 3, 128)]
    assert np.array_equal(dataset.images, np.stack(expected))
    inner = datasets.load("dvs128-gesture", folder / "DvsGesture", split="train", timesteps=3)
    assert np.array_equal(inner.images, dataset.images)
    small = datasets.load("dvs128-gesture", folder, split="train", timesteps=3, size=64)
    assert np.array_equal(small.images[0], by_hand(e.between(1000, 2500), 3, 128, 2))


def test_aedat3_drops_invalid_events_and_counts_overflows():
    data = aedat3((1, 1, np.array([6 << 17 | 7 << 2 | 3, 0]), np.array([10, 11])))
    e = events.parse_aedat3(data)
    assert e is not None
    assert [int(v[0]) for v in (e.x, e.y, e.p, e.t)] == [6, 7, 1, 2**31 + 10]
    assert len(e.t) == 1


GESTURE_MEND = (
    "get DvsGesture.tar.gz (md5 8a5c71fb11e24e5ca5b11866ca6c00a1) "
    "from DVS128 Gesture, https://research.ibm.com/interactive/dvsgesture/"
)


def test_dvs128_gesture_missing_and_corrupt(gesture):
    root, _ = gesture
    folder = root / "DvsGesture"
    assert message("dvs128-gesture", root, split="test", timesteps=1) == (
        f"{folder}/trials_to_test.txt is missing; {GESTURE_MEND}"
    )
    table = folder / "user01_led_labels.csv"
    table.write_text("class,startTime_usec,endTime_usec\n12,1000,2500\n")
    assert message("dvs128-gesture", root, split="train", timesteps=1) == (
        f"{table} is corrupt: it has classes outside 1..11; {GESTURE_MEND}"
    )
    table.write_text("class,startTime_usec,endTime_usec\n1,1000\n")
    assert message("dvs128-gesture", root, split="train", timesteps=1) == (
        f"{table} is corrupt: its rows are not class,start,end; {GESTURE_MEND}"
    )
    table.unlink()
    assert message("dvs128-gesture", root, split="train", timesteps=1) == (
        f"{table} is missing; {GESTURE_MEND}"
    )
    table.write_text("class,startTime_usec,endTime_usec\n1,1000,2500\n")
    path = folder / "user01_led.aedat"
    whole = path.read_bytes()
    outside = aedat3((1, 0, np.array([128 << 17 | 1]), np.array([1500])))
    for data in (whole[:-1], whole[:120], whole[:20], b"", outside):
        path.write_bytes(data)
        assert message("dvs128-gesture", root, split="train", timesteps=1) == (
            f"{path} is corrupt: it is not a complete AEDAT 3.1 file of 128x128 pixels; "
            f"{GESTURE_MEND}"
        )


@pytest.fixture
def cifar10_dvs(tmp_path: Path) -> tuple[Path, dict[tuple[str, int], Events]]:
    return tmp_path, write_cifar10_dvs(tmp_path, per_class=20, count=20)


def test_cifar10_dvs_trains_on_the_first_nine_tenths_of_each_class_by_number(cifar10_dvs):
    folder, recordings = cifar10_dvs
    train, test = (
        datasets.load("cifar10-dvs", folder, split=split, timesteps=2, size=32, verify=False)
        for split in ("train", "test")
    )
    assert train.labels.tolist() == [label for label in range(10) for _ in range(18)]
    assert test.labels.tolist() == [label for label in range(10) for _ in range(2)]
    assert train.images.shape == (180, 2, 2, 32, 32)
    assert np.array_equal(train.images[20], by_hand(recordings["automobile", 2], 2, 128, 4))
    assert np.array_equal(train.images[28], by_hand(recordings["automobile", 10], 2, 128, 4))
    assert np.array_equal(test.images[19], by_hand(recordings["truck", 19], 2, 128, 4))


def test_cifar10_dvs_missing_incomplete_and_corrupt(cifar10_dvs):
    folder, _ = cifar10_dvs
    mend = (
        "get airplane.zip (md5 0afd5c4bf9ae06af762a77b180354fdd) from "
        "CIFAR10-DVS, https://figshare.com/articles/dataset/CIFAR10-DVS_New/4724671"
    )
    assert message("cifar10-dvs", folder, split="test", timesteps=2) == (
        f"{folder}/airplane is corrupt: it has 20 recordings instead of 1000; {mend}"
    )
    path = folder / "airplane/cifar10_airplane_1.aedat"
    whole = path.read_bytes()
    for data in (whole[:-1], whole[:14], b"", b"#!AER-DAT2.0"):
        path.write_bytes(data)
        if data == whole[:14]:
            # A header alone is a recording without events.
            datasets.load("cifar10-dvs", folder, split="train", timesteps=2, size=1, verify=False)
            continue
        assert message("cifar10-dvs", folder, split="train", timesteps=2, verify=False) == (
            f"{path} is corrupt: it is not a complete AEDAT 2.0 file; {mend}"
        )
    (folder / "airplane").rename(folder / "plane")
    assert message("cifar10-dvs", folder, split="train", timesteps=2, verify=False) == (
        f"{folder}/airplane is missing; {mend}"
    )


def test_download_unpacks_recordings(tmp_path, monkeypatch, nmnist):
    _, recordings = nmnist
    packed_zip = io.BytesIO()
    with zipfile.ZipFile(packed_zip, "w") as archive:
        archive.writestr("Train/4/00001.bin", nmnist_bytes(recordings[0]))
    served = tmp_path / "served.zip"
    served.write_bytes(packed_zip.getvalue())
    md5 = hashlib.md5(packed_zip.getvalue()).hexdigest()
    resource = base.Resource(name="Train.zip", md5=md5, url=served.as_uri(), unpacks_to="Train")
    info = replace(events.NMNIST, resources=(resource,))
    monkeypatch.setitem(datasets._INFOS, "nmnist", info)
    folder = tmp_path / "new"
    dataset = datasets.load(
        "nmnist", folder, split="train", timesteps=2, verify=False, download=True
    )
    assert np.array_equal(dataset.images[0], by_hand(recordings[0], 2, 34))
    assert [path.name for path in folder.iterdir()] == ["Train"]


def test_download_where_there_is_none(tmp_path):
    assert message("dvs128-gesture", tmp_path, split="train", timesteps=2, download=True) == (
        f"dataset 'dvs128-gesture' has no direct download; {GESTURE_MEND} "
        f"and unpack it in {tmp_path}"
    )


@pytest.mark.data
@pytest.mark.parametrize(("split", "count"), [("train", 1000), ("test", 100)])
def test_real_recordings_of_the_packed_subset(split, count):
    root = Path(os.environ.get("LBQ_DATA", "")) / "nmnist-subset"
    if "LBQ_DATA" not in os.environ or not root.is_dir():
        pytest.skip("LBQ_DATA names no folder that holds nmnist-subset")
    dataset = datasets.load("nmnist", root, split=split, timesteps=10)
    assert dataset.images.shape == (count, 10, 2, 34, 34)
    assert np.bincount(dataset.labels, minlength=10).min() > 0
    # Three saccades: every slice of every recording has events.
    assert dataset.images.any((2, 3, 4)).mean() > 0.99
