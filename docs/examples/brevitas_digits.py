"""A Brevitas network of 4-bit weights and 4-bit activations, trained on the digits and imported.

    python docs/examples/brevitas_digits.py --out runs/brevitas
    lbq build --board icebreaker --model runs/brevitas/net.lbq

Compares every level and class of the integer network with those of Brevitas on 1,000 images, and
writes OUT/net.lbq. Needs Brevitas: `pip install brevitas`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import brevitas.nn as qnn
import numpy as np
import torch
from torch import Tensor, nn

from lbq_hw import datasets, file, golden
from lbq_hw.network import Network
from lbq_hw.train import InputSpec, integer_network
from lbq_hw.train.frameworks import adopt

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)
BITS = {"weight_bit_width": 4}
ACTIVATIONS = ("2", "6")  # the paths of the QuantReLUs


def network() -> nn.Sequential:
    return nn.Sequential(
        *(qnn.QuantConv2d(1, 8, 3, padding=1, bias=False, **BITS), nn.BatchNorm2d(8)),
        *(qnn.QuantReLU(bit_width=4), nn.MaxPool2d(2)),
        *(qnn.QuantConv2d(8, 16, 3, padding=1, bias=False, **BITS), nn.BatchNorm2d(16)),
        *(qnn.QuantReLU(bit_width=4), nn.MaxPool2d(2), nn.Flatten()),
        qnn.QuantLinear(64, 10, bias=True, **BITS),
    )


def train(net: nn.Module, images: Tensor, labels: Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(epochs):
        for part in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[part]), labels[part]).backward()
            optimizer.step()


@torch.no_grad()
def differences(net: nn.Sequential, made: Network, raw: np.ndarray) -> tuple[int, int]:
    """How many levels, and how many classes, differ between Brevitas and the integers."""
    result = golden.run(made, raw, keep="levels")
    x, levels = SPEC.normalize(torch.from_numpy(raw)), 0
    for path, layer in net.named_children():
        x = layer(x)
        if path in ACTIVATIONS:
            theirs = (x / layer.act_quant.scale()).round().numpy()
            levels += int((result.traces[path].levels[0] != theirs).sum())
    return levels, int((result.classes != x.argmax(1).numpy()).sum())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A Brevitas network becomes an integer network.")
    parser.add_argument("--out", type=Path, required=True, help="folder for net.lbq")
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    data, test = (datasets.load("digits", split=split) for split in ("train", "test"))
    net = network()
    train(
        *(net, SPEC.normalize(torch.from_numpy(data.images))),
        *(torch.from_numpy(data.labels).long(), args.epochs),
    )
    net.eval()
    adopted = adopt(net, timesteps=1, static=True)
    made = integer_network(
        *(adopted, SPEC),
        name="brevitas",
        samples=data.images[:64],
        meta={"dataset": "digits"},
    )
    args.out.mkdir(parents=True, exist_ok=True)
    file.save(made, args.out / "net.lbq")
    levels, classes = differences(net, made, data.images[:1000])
    right = float(np.mean(golden.run(made, test.images).classes == test.labels))
    print(
        f"1000 images: {levels} levels and {classes} classes differ; {100 * right:.2f} % of the "
        f"{len(test.images)} test images right"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
