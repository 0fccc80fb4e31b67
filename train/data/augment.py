"""Augmentation of whole batches on the device, every image with its own random parameters.

The random numbers of a batch are one tensor of uniform draws, made by :meth:`Pipeline.draw` from an
explicit generator. The rest is a pure function of images, labels and draws, with fixed shapes and
without host round trips. So it can be compiled, captured in a CUDA graph, divided between processes
by slicing the draws, and tested with chosen draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw.train.data.autoaugment import AutoAugment
from lbq_hw.train.data.input_spec import InputSpec

_QUANTILES = 1024


@dataclass(frozen=True, kw_only=True)
class AugmentConfig:
    """The steps of augmentation, in this order; zero or False leaves a step out.

    ``rotate``, ``shift`` and ``zoom`` make one affine transform with bilinear interpolation; from
    ``cutout`` on, steps work on normalized values. With both ``mixup`` and ``cutmix``, each takes
    half of the images.

    ``fill`` is the value of empty places: pixels from outside the image, and the square of cutout.
    "mean" is the mean colour of the training images, and "gray" the level 128 in all channels.
    "zero" is black, but cutout's square has the value 0 after normalization; if ``data.mean`` is
    subtracted, this is the mean's colour.
    """

    rotate: float = 0.0  # largest rotation in degrees
    shift: float = 0.0  # largest shift, as a fraction of the side
    zoom: float = 0.0  # largest, as a fraction
    crop: int = 0  # pixels of padding before a random crop
    flip: bool = False  # horizontal flip of every second image
    autoaugment: bool = False  # the CIFAR-10 policy
    cutout: int = 0  # side of a blank square, even; it is clipped at the border
    mixup: float = 0.0  # alpha of its Beta law
    cutmix: float = 0.0  # alpha of its Beta law
    fill: str = "zero"  # value of empty places: zero, mean or gray

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = type(field.default)
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise TypeError(f"{field.name} must be of type {kind.__name__}, not {value!r}")
            if kind in (int, float) and value < 0:
                raise ValueError(f"{field.name} must not be negative, not {value!r}")
        for name in ("shift", "zoom"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name} must be below 1, not {getattr(self, name)!r}")
        if self.cutout % 2:
            raise ValueError(f"cutout must be even, not {self.cutout!r}")
        if self.fill not in ("zero", "mean", "gray"):
            raise ValueError(f"fill must be 'zero', 'mean' or 'gray', not {self.fill!r}")

    def mild(self) -> AugmentConfig:
        """The same without autoaugment, cutout, mixup and cutmix: natural images, only moved.

        A network that learned from strongly augmented images gains if its last epochs use mild
        augmentation: He et al., Data Augmentation Revisited, arXiv:1909.09148.
        """
        return replace(self, autoaugment=False, cutout=0, mixup=0.0, cutmix=0.0)


class Pipeline(nn.Module):
    """The steps of a config, then ``spec.normalize``, then the steps on normalized values.

    ``pipeline(images, labels, draws)`` takes labels (B,) and uint8 images (B, C, H, W), or
    (B, T, C, H, W) with the same augmentation for all frames. It returns float images of the same
    shape, and the labels or, with mixup or cutmix, rows of class weights (B, classes). ``mean``, a
    level per channel, is the mean colour of the training images; a fill of "mean" needs it.
    """

    fill: Tensor
    hole: Tensor
    mixup_law: Tensor
    cutmix_law: Tensor

    def __init__(
        self, config: AugmentConfig, spec: InputSpec, *, classes: int, mean: Sequence[int] = ()
    ) -> None:
        super().__init__()
        channels, height, width = spec.shape
        if config.autoaugment and (channels != 3 or not spec.static):
            raise ValueError(f"autoaugment needs still images of 3 channels, not {spec.shape!r}")
        if config.fill == "mean" and len(mean) != channels:
            raise ValueError(f"mean must have {channels} levels to fill with, not {mean!r}")
        levels = {"zero": [0] * channels, "mean": mean, "gray": [128] * channels}[config.fill]
        self.config, self.spec, self.classes = config, spec, classes
        fill = torch.tensor(levels, dtype=torch.uint8).view(-1, 1, 1)
        hole = torch.zeros(fill.shape) if config.fill == "zero" else spec.normalize(fill)
        self.register_buffer("fill", fill, persistent=False)
        self.register_buffer("hole", hole, persistent=False)
        self.policy = AutoAugment(height, width, fill=levels) if config.autoaugment else None
        for name in ("mixup", "cutmix"):
            if alpha := getattr(config, name):
                self.register_buffer(f"{name}_law", beta_quantiles(alpha), persistent=False)
        self.mixes = bool(config.mixup or config.cutmix)
        self.rows = sum(
            (
                4 if config.rotate or config.shift or config.zoom else 0,
                2 if config.crop else 0,
                int(config.flip),
                AutoAugment.draws if config.autoaugment else 0,
                2 if config.cutout else 0,
                4 if self.mixes else 0,
            )
        )

    def draw(self, batch: int, generator: torch.Generator) -> Tensor:
        """Uniform draws for a batch, (rows, batch), on the generator's device."""
        return torch.rand((self.rows, batch), generator=generator, device=generator.device)

    def forward(self, images: Tensor, labels: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        config, shape, taken = self.config, images.shape, 0

        def take(count: int) -> Tensor:
            nonlocal taken
            taken += count
            return draws[taken - count : taken]

        images = images.flatten(1, -3)
        frames = images.shape[1] // len(self.fill)
        fill = self.fill.repeat(frames, 1, 1)
        if config.rotate or config.shift or config.zoom:
            images = affine(images, take(4), fill, config.rotate, config.shift, config.zoom)
        if config.crop:
            images = crop(images, take(2), fill, config.crop)
        if config.flip:
            images = torch.where(take(1).view(-1, 1, 1, 1) < 0.5, images.flip(-1), images)
        if self.policy is not None:
            images = self.policy(images, take(AutoAugment.draws))
        x = self.spec.normalize(images.view(shape)).flatten(1, -3)
        if config.cutout:
            x = cutout(x, take(2), self.hole.repeat(frames, 1, 1), config.cutout)
        if self.mixes:
            x, labels = self._mix(x, labels, take(4))
        return x.view(shape), labels

    def _mix(self, x: Tensor, labels: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Mix each image with its neighbour in the batch, a random one in a shuffled order."""
        place = torch.arange(len(x), device=x.device)
        # Pairs 0-1, 2-3, ... stay together when a batch is shared between processes.
        partner = torch.where(place ^ 1 < len(x), place ^ 1, place)
        other = x[partner]
        if self.config.mixup and self.config.cutmix:
            blended, blend_share = mixup(x, other, draws[1], self.mixup_law)
            patched, patch_share = cutmix(x, other, draws[1:], self.cutmix_law)
            blend = draws[0] < 0.5
            x = torch.where(blend.view(-1, 1, 1, 1), blended, patched)
            share = torch.where(blend, blend_share, patch_share)
        elif self.config.mixup:
            x, share = mixup(x, other, draws[1], self.mixup_law)
        else:
            x, share = cutmix(x, other, draws[1:], self.cutmix_law)
        kind = torch.arange(self.classes, device=x.device)
        own, its = (labels[:, None] == kind).float(), (labels[partner, None] == kind).float()
        return x, share[:, None] * own + (1 - share[:, None]) * its


def affine(
    images: Tensor, draws: Tensor, fill: Tensor, rotate: float, shift: float, zoom: float
) -> Tensor:
    """Turn by up to ``rotate`` degrees, move by up to ``shift`` of the side, scale by 1 +- zoom.

    Bilinear and rounded, about the centre; ``draws`` is (4, B): angle, scale, right, down.
    """
    height, width = images.shape[-2:]
    angle, scale, right, down = 2 * draws - 1
    angle, scale = torch.deg2rad(angle * rotate), 1 + scale * zoom
    cos, sin = angle.cos() / scale, angle.sin() / scale
    row_x = torch.stack((cos, sin * (height / width), -2 * shift * right), 1)
    row_y = torch.stack((-sin * (width / height), cos, -2 * shift * down), 1)
    grid = F.affine_grid(torch.stack((row_x, row_y), 1), list(images.shape), align_corners=False)
    moved = F.grid_sample(images.float() - fill, grid, align_corners=False) + fill
    return moved.round().clamp(0, 255).to(torch.uint8)


def crop(images: Tensor, draws: Tensor, fill: Tensor, pad: int) -> Tensor:
    """Pad by ``pad`` pixels of ``fill``, then cut the original size at a random row and column."""
    batch, channels, height, width = images.shape
    offset = (draws * (2 * pad + 1)).long().clamp(max=2 * pad) - pad
    y = torch.arange(height, device=images.device) + offset[0, :, None]
    x = torch.arange(width, device=images.device) + offset[1, :, None]
    source = y.clamp(0, height - 1)[:, :, None] * width + x.clamp(0, width - 1)[:, None]
    index = source.view(batch, 1, -1).expand(batch, channels, -1)
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None]
    moved = images.flatten(2).gather(2, index).view(images.shape)
    return torch.where(inside[:, None], moved, fill)


def cutout(x: Tensor, draws: Tensor, fill: Tensor, size: int) -> Tensor:
    """Fill a square with sides of an even ``size`` about a random pixel, clipped at the border."""
    half = torch.full_like(draws[0], size // 2, dtype=torch.int64)
    return torch.where(_box(x, draws, half, half), fill, x)


def mixup(x: Tensor, other: Tensor, draw: Tensor, law: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted mean of two images, and the weight of the first."""
    share = _beta(draw, law)
    weight = share.view(-1, 1, 1, 1)
    return weight * x + (1 - weight) * other, share


def cutmix(x: Tensor, other: Tensor, draws: Tensor, law: Tensor) -> tuple[Tensor, Tensor]:
    """The first image with a box of the other pasted in, and the share that is left of the first.

    The box has the image's aspect and an area of one minus a Beta draw, is centred at a random
    pixel and clipped at the border; ``draws`` is (3, B): share, row, column.
    """
    height, width = x.shape[-2:]
    side = (1 - _beta(draws[0], law)).sqrt() / 2
    box = _box(x, draws[1:], (side * height).long(), (side * width).long())
    share = 1 - box.float().mean((1, 2, 3))
    return torch.where(box, other, x), share


def _box(x: Tensor, draws: Tensor, half_y: Tensor, half_x: Tensor) -> Tensor:
    """Mask (B, 1, H, W) of the pixels within ``half`` of a random centre."""
    spans = []
    for draw, half, length in zip(draws, (half_y, half_x), x.shape[-2:], strict=True):
        place = torch.arange(length, device=x.device)
        centre = (draw * length).long().clamp(max=length - 1)
        low, high = centre - half, centre + half
        spans.append((place >= low[:, None]) & (place < high[:, None]))
    return (spans[0][:, :, None] & spans[1][:, None, :])[:, None]


def beta_quantiles(alpha: float) -> Tensor:
    """Quantiles of Beta(alpha, alpha) at 0, 1/1024, ... 1, by integration of half of its density.

    With x = s**(1/alpha) / 2 the density becomes (1 - x)**(alpha - 1) in s, which has no pole.
    """
    s = np.linspace(0.0, 1.0, 1 << 16)
    density = (1 - s ** (1 / alpha) / 2) ** (alpha - 1)
    mass = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    lower = np.interp(np.linspace(0.0, 1.0, _QUANTILES // 2 + 1), mass / mass[-1], s)
    lower = lower ** (1 / alpha) / 2
    return torch.tensor(np.concatenate((lower, 1 - lower[-2::-1])), dtype=torch.float32)


def _beta(draw: Tensor, law: Tensor) -> Tensor:
    """Maps uniform draws to the law with these quantiles, by linear interpolation."""
    place = draw * _QUANTILES
    below = place.long().clamp(max=_QUANTILES - 1)
    return torch.lerp(law[below], law[below + 1], place - below)
