"""The example for ImageNet runs from pictures in folders or shards to an integer network."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from examples import EXAMPLES, example
from PIL import Image

from lbq_hw import load


def write_pictures(folder: Path, classes: int, each: int) -> None:
    """Pictures of noise in a shade of their class, none square and no two of one size."""
    random = np.random.default_rng(0)
    for split, name, number in np.ndindex(2, classes, each):
        place = folder / ("train", "val")[split] / f"n0000000{name}"
        place.mkdir(parents=True, exist_ok=True)
        shape = (40 + 3 * number, 50 + 2 * name, 3)
        pixels = random.integers(0, 60, shape) + 190 * name // max(1, classes - 1)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"picture_{number}.JPEG")


def write_shard(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def pack(folder: Path, out: Path, *, per_shard: int) -> None:
    """The pictures of a folder as shards, in the order of the folder."""
    for split in ("train", "val"):
        names = sorted(one.name for one in (folder / split).iterdir())
        members = [
            {
                f"{label}_{file.stem}.jpg": file.read_bytes(),
                f"{label}_{file.stem}.cls": b"%d" % label,
            }
            for label, name in enumerate(names)
            for file in sorted((folder / split / name).iterdir())
        ]
        for first in range(0, len(members), per_shard):
            shard = {k: v for part in members[first : first + per_shard] for k, v in part.items()}
            write_shard(out / split / f"{first:06d}.tar", shard)


def arguments(data: Path, out: Path) -> list[str]:
    small = ["--size", "32", "--widths", "4", "4", "8", "8", "--batch", "6", "--workers", "0"]
    return ["--data", str(data), "--out", str(out), *small, "--epochs", "2", "--timesteps", "2"]


def test_a_folder_of_jpegs_is_trained_and_exported(tmp_path, capsys):
    write_pictures(tmp_path / "data", classes=3, each=4)
    assert example("imagenet").main(arguments(tmp_path / "data", tmp_path / "run")) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("resnet18: ")
    assert told.endswith(" % on 12 of them")
    network = load(tmp_path / "run" / "net.lbq")
    assert network.input.shape == (3, 32, 32)
    assert network.class_names == ("n00000000", "n00000001", "n00000002")
    assert len(network.layers) == 18  # the readout among them; shortcuts lead into layers


@pytest.mark.parametrize("trains", [True, False])
def test_shards_of_webdataset_have_the_pictures_of_the_folder(tmp_path, trains):
    write_pictures(tmp_path / "data", classes=3, each=4)
    pack(tmp_path / "data", tmp_path / "shards", per_shard=5)
    pictures = [
        example("imagenet").Pictures(tmp_path / place / "train", 32, trains=trains)
        for place in ("data", "shards")
    ]
    assert [len(one) for one in pictures] == [12, 12]
    assert pictures[1].classes == ["0", "1", "2"]
    for index in range(12):
        drawn = []
        for one in pictures:
            torch.manual_seed(index)
            drawn.append(one[index])
        assert torch.equal(drawn[0][0], drawn[1][0])
        assert drawn[0][1] == drawn[1][1]


def test_shards_are_trained_and_exported(tmp_path, capsys):
    write_pictures(tmp_path / "data", classes=3, each=4)
    pack(tmp_path / "data", tmp_path / "shards", per_shard=5)
    assert example("imagenet").main(arguments(tmp_path / "shards", tmp_path / "run")) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" % on 12 of them")
    assert load(tmp_path / "run" / "net.lbq").class_names == ("0", "1", "2")


def test_a_shard_with_half_a_sample_is_refused(tmp_path):
    shard = write_shard(tmp_path / "a.tar", {"x/1.jpg": b"", "x/1.cls": b"0", "x/2.jpg": b""})
    message = f"{shard} must have a picture and a .cls for every key, and x/2 has one of them only"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        example("imagenet").Shards([shard])


@pytest.mark.slow
def test_two_processes_train_on_shares_of_the_shards(tmp_path):
    write_pictures(tmp_path / "data", classes=3, each=8)
    pack(tmp_path / "data", tmp_path / "shards", per_shard=5)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = [str(EXAMPLES / "imagenet.py"), *arguments(tmp_path / "shards", tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, *torchrun, *words],
        cwd=EXAMPLES.parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.stdout.count("resnet18: ") == 1
    assert load(tmp_path / "run" / "net.lbq").class_names == ("0", "1", "2")
