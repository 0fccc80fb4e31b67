"""ResNet-18 or -34 of LBQ neurons, trained on a folder of ImageNet's form, and exported.

    python docs/examples/imagenet.py --data DIR --out runs/imagenet
    torchrun --nproc-per-node 8 docs/examples/imagenet.py --data DIR --out runs/imagenet

DIR has train/CLASS/*.JPEG and val/CLASS/*.JPEG, or train/*.tar and val/*.tar in WebDataset's form:
KEY.jpg with the number of its class in KEY.cls. Crops are drawn by the loader's workers, and pixels
travel as raw integers: the InputSpec says what they mean. Writes OUT/net.lbq, an integer network of
8-bit weights, and prints both accuracies. Needs Pillow, the extra `images`.
"""

from __future__ import annotations

import argparse
import io
import itertools
import math
import os
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from lbq_hw import file, golden
from lbq_hw.train import LBQ, InputSpec, Recipe, fit, integer_network
from lbq_hw.train.models import build

PICTURES = ("jpg", "jpeg", "png")


class Folders:
    """The pictures of a folder that has one folder per class."""

    def __init__(self, folder: Path) -> None:
        self.classes = sorted(one.name for one in folder.iterdir() if one.is_dir())
        self._files = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((folder / name).iterdir())
        ]

    def __len__(self) -> int:
        return len(self._files)

    def read(self, index: int) -> tuple[bytes, int]:
        """A picture's file, and its label."""
        path, label = self._files[index]
        return path.read_bytes(), label


class Shards:
    """The pictures of WebDataset's shards, tar files of KEY.jpg and KEY.cls.

    The headers are read once, at the start. After that, any picture is read from its place, so that
    epochs are shuffled and shared between processes as those of a folder are.
    """

    def __init__(self, shards: list[Path]) -> None:
        self._files: list[tuple[Path, int, int, int]] = []
        for shard in shards:
            self._files += self._index(shard)
        count = max((label for *_, label in self._files), default=-1) + 1
        self.classes = [str(label) for label in range(count)]

    def __len__(self) -> int:
        return len(self._files)

    def read(self, index: int) -> tuple[bytes, int]:
        """A picture's file, and its label."""
        shard, start, size, label = self._files[index]
        with shard.open("rb") as file:
            file.seek(start)
            return file.read(size), label

    @staticmethod
    def _index(shard: Path) -> list[tuple[Path, int, int, int]]:
        """The place and the label of every picture."""
        places: dict[str, tuple[int, int]] = {}
        labels: dict[str, int] = {}
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                folder, _, name = member.name.rpartition("/")
                key, _, kind = name.partition(".")  # as WebDataset does: at the first dot
                if kind.lower() in PICTURES:
                    places[f"{folder}/{key}"] = member.offset_data, member.size
                elif kind == "cls" and (content := tar.extractfile(member)):
                    labels[f"{folder}/{key}"] = int(content.read())
        if lacking := places.keys() ^ labels.keys():
            raise ValueError(
                f"{shard} must have a picture and a .cls for every key, and "
                f"{min(lacking).lstrip('/')} has one of them only"
            )
        return [(shard, *places[key], labels[key]) for key in places]


class Pictures(Dataset[tuple[Tensor, int]]):
    """Pictures of a split as ``(3, size, size)`` of raw pixels.

    For training a part of 8 to 100 % of the area is cut out, stretched and mirrored, else the
    middle is.
    """

    def __init__(self, folder: Path, size: int, *, trains: bool) -> None:
        self.size, self.trains = size, trains
        shards = sorted(folder.glob("*.tar"))
        self.source = Shards(shards) if shards else Folders(folder)
        self.classes = self.source.classes

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        content, label = self.source.read(index)
        with Image.open(io.BytesIO(content)) as picture:
            picture = picture.convert("RGB")
        box = self._drawn(*picture.size) if self.trains else self._middle(*picture.size)
        cut = picture.resize((self.size, self.size), Image.Resampling.BILINEAR, box)
        if self.trains and torch.rand(()) < 0.5:
            cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(cut)).permute(2, 0, 1), label

    def _drawn(self, width: int, height: int) -> tuple[float, float, float, float]:
        """A box of a drawn area and shape, at a drawn place."""
        share, shape, *place = torch.rand(4).tolist()
        area = width * height * (0.08 + 0.92 * share)
        ratio = math.exp((2 * shape - 1) * math.log(4 / 3))
        across, down = min(width, math.sqrt(area * ratio)), min(height, math.sqrt(area / ratio))
        left, top = (width - across) * place[0], (height - down) * place[1]
        return left, top, left + across, top + down

    def _middle(self, width: int, height: int) -> tuple[float, float, float, float]:
        """The middle 7/8 of the shorter side, as a square."""
        side = 0.875 * min(width, height)
        left, top = (width - side) / 2, (height - side) / 2
        return left, top, left + side, top + side


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = InputSpec(shape=(3, args.size, args.size), static=True, bits=8, full_scale=255.0)
    train = _loader(args, "train")
    test = _loader(args, "val")
    classes = train.dataset.classes
    model = build(
        args.model,
        neuron=partial(LBQ, timesteps=args.timesteps),
        timesteps=args.timesteps,
        input_shape=spec.shape,
        classes=len(classes),
        **({"widths": args.widths} if args.widths else {}),
    )
    recipe: dict[str, Any] = {
        "epochs": args.epochs,
        "optimizer": "sgd",
        "lr": args.lr,
        "weight_decay": 1e-4,
        "warmup_epochs": min(5, args.epochs / 2),
        "label_smoothing": 0.1,
        "seed": args.seed,
    }
    if torch.cuda.is_available():
        recipe |= {"amp": "bf16", "channels_last": True}
    fitted = fit(model, spec, train, test, Recipe(**recipe), out=args.out, resume=True)
    if int(os.environ.get("RANK", "0")):
        return 0
    samples, labels = _first(test, args.check)
    network = integer_network(
        fitted.model.cpu(), spec, name=args.model, samples=samples[:16], class_names=classes
    )
    file.save(network, args.out / "net.lbq")
    right = float(np.mean(golden.run(network, samples).classes == labels))
    print(
        f"{args.model}: {fitted.metrics['test_accuracy']:.2f} % on {len(test.dataset)} images, "
        f"integer network {100 * right:.2f} % on {len(samples)} of them"
    )
    return 0


def _loader(args: argparse.Namespace, split: str) -> DataLoader[Any]:
    """Raw pixels, 0 to 255; of training images each process takes its share."""
    trains = split == "train"
    images = Pictures(args.data / split, args.size, trains=trains)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    sampler = None
    if trains and processes > 1:
        rank = int(os.environ["RANK"])
        sampler = DistributedSampler(images, processes, rank, seed=args.seed, drop_last=True)
    return DataLoader(
        images,
        batch_size=args.batch,
        shuffle=trains and sampler is None,
        sampler=sampler,
        drop_last=trains,
        num_workers=args.workers,
    )


def _first(loader: DataLoader[Any], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images of a loader and their labels."""
    batches = list(itertools.islice(loader, -(-count // (loader.batch_size or 1))))
    images, labels = (torch.cat(parts)[:count].numpy() for parts in zip(*batches, strict=True))
    return images, labels


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A burst ResNet on ImageNet's form of a folder.")
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and val/")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--model", choices=("resnet18", "resnet34"), default="resnet18")
    parser.add_argument("--widths", type=int, nargs=4, help="channels of the stages")
    parser.add_argument("--timesteps", type=int, default=2)
    parser.add_argument("--size", type=int, default=224, help="side of the pictures")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--batch", type=int, default=64, help="per process")
    parser.add_argument("--workers", type=int, default=8, help="processes that read pictures")
    parser.add_argument("--check", type=int, default=256, help="test images for the integers")
    parser.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
