"""CIFAR's Python batches as Python 2's cPickle wrote them: opcode by opcode, since Python 3 writes
others."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest

from lbq_hw.datasets import cifar


def text(value: bytes) -> bytes:
    return b"U" + bytes([len(value)]) + value


def number(value: int) -> bytes:
    return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)


def array(values: np.ndarray, *, kind: bytes = b"u1", fortran: bool = False) -> bytes:
    """The table ``values`` of bytes; ``kind`` is what its dtype is called."""
    raw = values.tobytes(order="F" if fortran else "C")
    shape = b"".join(number(length) for length in values.shape)
    dtype = b"cnumpy\ndtype\n" + text(kind) + b"K\0K\1\x87R(K\3" + text(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85" + text(b"b") + b"\x87R"
    state = b"(K\1" + shape + b"\x86" + dtype + (b"\x88" if fortran else b"\x89")
    return made + state + b"T" + struct.pack("<i", len(raw)) + raw + b"tb"


def numbers(values: list[int]) -> bytes:
    return b"](" + b"".join(number(value) for value in values) + b"e"


def dictionary(entries: dict[bytes, bytes]) -> bytes:
    return b"\x80\2}(" + b"".join(text(key) + entries[key] for key in entries) + b"u."


def batch(
    count: int, seed: int, *, fine: bool = False, fortran: bool = False
) -> tuple[bytes, np.ndarray, list[int]]:
    """A batch of CIFAR-10, or of CIFAR-100 (``fine``), its images and its labels."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, 3072), dtype=np.uint8)
    labels = rng.integers(0, 100 if fine else 10, count).tolist()
    entries = {b"batch_label": text(b"training batch 1 of 5")}
    entries |= {b"coarse_labels": numbers([1] * count)} if fine else {}
    entries |= {b"fine_labels" if fine else b"labels": numbers(labels)}
    entries |= {
        b"data": array(images, fortran=fortran),
        b"filenames": b"](" + text(b"a.png") + b"e",
    }
    return dictionary(entries), images.reshape(-1, 3, 32, 32), labels


def publish(
    monkeypatch: pytest.MonkeyPatch, name: str, split: str, files: dict[str, bytes]
) -> None:
    """Make the checksums of these files those of the official Python batches."""
    binary, python = cifar.FORMS[name]
    sums = python.batches | {
        split: {file: hashlib.md5(data).hexdigest() for file, data in files.items()}
    }
    monkeypatch.setitem(cifar.FORMS, name, (binary, replace(python, batches=sums)))
