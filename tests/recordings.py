"""Event recordings in the official formats of DVS128-Gesture and CIFAR10-DVS, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from lbq_hw.datasets.events import Events

Packet = tuple[int, int, np.ndarray, np.ndarray]
"""Event type (1: polarity, 0: special), overflows of the clock, first and second words."""

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def recording(count: int, side: int, seed: int, start: int = 0, span: int = 5000) -> Events:
    """Random events in the order of their times."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, side, (2, count))
    t = np.sort(rng.integers(start, start + span, count))
    return Events(x=x, y=y, p=rng.integers(0, 2, count), t=t)


def polarity(e: Events, overflow: int = 0) -> Packet:
    """The packet of valid polarity events that cAER writes."""
    return 1, overflow, e.x << 17 | e.y << 2 | e.p << 1 | 1, e.t


def aedat3(*packets: Packet) -> bytes:
    """An AEDAT 3.1 file as cAER writes it: a header of lines, then packets, little-endian."""
    data = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n"
    data += b"#Start-Time: 2016-09-08 14:02:31 (TZ-0700)\r\n#!END-HEADER\r\n"
    for kind, overflow, first, second in packets:
        count = len(first)
        data += struct.pack("<hhiiiiii", kind, 1, 8, 4, overflow, count, count, count)
        data += np.stack([first, second], 1).astype("<u4").tobytes()
    return data


def aedat2(e: Events) -> bytes:
    """An AEDAT 2.0 file as jAER writes it for a DVS128: a header of lines, then pairs of address
    and time, big-endian."""
    address = (127 - e.x) << 8 | (127 - e.y) << 1 | (1 - e.p)
    header = (
        b"#!AER-DAT2.0\r\n# This is a raw AE data file - do not edit\r\n"
        b"# Data format is int32 address, int32 timestamp (8 bytes total), repeated for each event"
        b"\r\n# Timestamps tick is 1 us\r\n# created Sat Apr 09 15:21:33 CST 2016\r\n"
    )
    return header + np.stack([address, e.t], 1).astype(">u4").tobytes()


def write_gestures(folder: Path, trials: dict[str, list[str]], *, count: int) -> None:
    """DvsGesture/ in ``folder``: of each split the named trials, one gesture of each class in each,
    of ``count`` events per gesture; gestures last 5 ms, with 1 ms between them."""
    folder = folder / "DvsGesture"
    folder.mkdir()
    seed = 0
    for split, names in trials.items():
        for name in names:
            packets, rows = [(0, 0, np.array([2]), np.array([100]))], []
            for label in range(11):
                start = 1000 + 6000 * label
                packets.append(polarity(recording(count, 128, seed := seed + 1, start)))
                rows.append(f"{label + 1},{start},{start + 5000}\n")
            (folder / f"{name}.aedat").write_bytes(aedat3(*packets))
            header = "class,startTime_usec,endTime_usec\n"
            (folder / f"{name}_labels.csv").write_text(header + "".join(rows))
        (folder / f"trials_to_{split}.txt").write_text("".join(f"{n}.aedat\n" for n in names))


def write_cifar10_dvs(folder: Path, *, per_class: int, count: int) -> dict[tuple[str, int], Events]:
    """One folder per class, of ``per_class`` recordings numbered from 0; what they hold."""
    made = {}
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir()
        for number in range(per_class):
            e = made[name, number] = recording(count, 128, 100 * label + number)
            (folder / name / f"cifar10_{name}_{number}.aedat").write_bytes(aedat2(e))
    return made
