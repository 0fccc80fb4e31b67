"""A ReLU ResNet trained, converted into a burst network, fine-tuned and exported.

    python docs/examples/convert.py --data DIR/cifar10 --out runs/convert

Prints the accuracy of the ANN, of the converted network before and after fine-tuning, and of the
integer network, and writes them to OUT/convert.json. ``--dataset digits`` needs no files.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw import datasets, file
from lbq_hw.train import InputSpec, Recipe, convert, fit, integer_network
from lbq_hw.train.data import DeviceLoader, Feed
from lbq_hw.train.data.augment import AugmentConfig, Pipeline
from lbq_hw.train.fitting import evaluate
from lbq_hw.train.measure import measure

AUGMENT = {"cifar10": AugmentConfig(crop=4, flip=True, autoaugment=True, cutout=16)}
PIXELS: dict[str, dict[str, Any]] = {
    "cifar10": {"bits": 8},
    "digits": {"bits": 5, "full_scale": 16},
}


class BasicBlock(nn.Module):
    """As torchvision's: one ReLU, called twice and in place."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != width:
            project = nn.Conv2d(inputs, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(project, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Three stages of blocks behind a stem for small images."""

    def __init__(self, channels: int, width: int, blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        stages, inputs = [], width
        for stage in range(3):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                stages.append(BasicBlock(inputs, width << stage, stride))
                inputs = width << stage
        self.layers = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = datasets.load(args.dataset, args.data, split="train")
    test_set = datasets.load(args.dataset, args.data, split="test")
    spec = InputSpec(shape=train_set.shape, static=True, **PIXELS[args.dataset])
    augment = AUGMENT.get(args.dataset)
    train = DeviceLoader(
        train_set,
        spec,
        batch=args.batch,
        device=device,
        augment=augment and Pipeline(augment, spec, classes=train_set.classes).to(device),
        shuffle=True,
        drop_last=True,
        generator=torch.Generator(device),
    )
    test = DeviceLoader(test_set, spec, batch=500, device=device)
    shared: dict[str, Any] = {"eval_every": 1000, "seed": args.seed, "device": device.type}
    if device.type == "cuda":
        shared |= {"amp": "bf16", "channels_last": True, "compile": "default"}

    torch.manual_seed(args.seed)
    ann = ResNet(train_set.shape[0], args.width, args.blocks, train_set.classes)
    recipe = Recipe(epochs=args.epochs, lr=0.1, warmup_epochs=min(2, args.epochs), **shared)
    trained = fit(ann, spec, train, test, recipe, out=args.out / "ann", resume=True)
    found: dict[str, Any] = {
        "dataset": args.dataset,
        "network": f"ReLU ResNet, width {args.width}, {args.blocks} blocks per stage",
        "epochs": args.epochs,
        "tune_epochs": args.tune_epochs,
        "batch": args.batch,
        "seed": args.seed,
        "ann": trained.metrics["test_accuracy"],
        "rows": [],
    }
    for timesteps in args.timesteps:
        net = convert(trained.model, spec, train, timesteps=timesteps)
        converted = evaluate(net, Feed(test, spec, device, role="test"))
        tuned = fit(
            net,
            spec,
            train,
            test,
            Recipe(epochs=args.tune_epochs, lr=0.02, weight_bits=4, **shared),
            out=args.out / f"t{timesteps}",
            resume=True,
        )
        network = integer_network(tuned.model.cpu(), spec, name="converted")
        file.save(network, args.out / f"t{timesteps}.lbq")
        integer = measure(network, test_set.images, test_set.labels, device=device).evaluation
        row = {
            "timesteps": timesteps,
            "capacity": 5,
            "converted": converted,
            "tuned": tuned.metrics["test_accuracy"],
            "weight_bits": 4,
            "integer": integer.accuracy,
        }
        found["rows"].append(row)
        print(
            f"T = {timesteps}: ANN {found['ann']:.2f} %, converted {converted:.2f} %, fine-tuned "
            f"with 4-bit weights {row['tuned']:.2f} %, integer network {row['integer']:.2f} %"
        )
    (args.out / "convert.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="From a ReLU ResNet to an integer network.")
    parser.add_argument("--dataset", choices=PIXELS, default="cifar10")
    parser.add_argument("--data", type=Path, help="folder of the dataset's files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage")
    parser.add_argument("--blocks", type=int, default=3, help="per stage")
    parser.add_argument("--epochs", type=int, default=30, help="of the ANN")
    parser.add_argument("--tune-epochs", type=int, default=15, help="of the burst network")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timesteps", type=int, nargs="+", default=[1, 2])
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
