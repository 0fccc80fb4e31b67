"""AutoAugment for batches on the device: two operations per image, in a fixed set of kernels.

Every operation of the policy has a discrete magnitude, so everything that does not depend on the
image is tabulated once on the host: for each setting (operation, magnitude, sign), a map of source
pixels and a table of 256 levels. A stage looks up each image's setting, moves its pixels with one
gather, and changes its levels with a second one. The three operations that depend on the image's
histogram compute their own level table; the two that mix pixels (Color, Sharpness) are blended.
Shapes are fixed, and no value is read back to the host.

The operations equal torchvision's on uint8 tensors (nearest pixel, truncated blends), bit for bit.
Only a shear whose sources fall midway between two pixels may differ; the policy has no such shear.
If a compiler fuses the products and sums of the blends, a few pixels change by one level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Step = tuple[str, float, int | None]
"""Operation, probability, magnitude level 0 to 9 (None where the operation has no magnitude)."""

# fmt: off
CIFAR10_POLICY: tuple[tuple[Step, Step], ...] = (
    (("Invert", 0.1, None), ("Contrast", 0.2, 6)),
    (("Rotate", 0.7, 2), ("TranslateX", 0.3, 9)),
    (("Sharpness", 0.8, 1), ("Sharpness", 0.9, 3)),
    (("ShearY", 0.5, 8), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.5, None), ("Equalize", 0.9, None)),
    (("ShearY", 0.2, 7), ("Posterize", 0.3, 7)),
    (("Color", 0.4, 3), ("Brightness", 0.6, 7)),
    (("Sharpness", 0.3, 9), ("Brightness", 0.7, 9)),
    (("Equalize", 0.6, None), ("Equalize", 0.5, None)),
    (("Contrast", 0.6, 7), ("Sharpness", 0.6, 5)),
    (("Color", 0.7, 7), ("TranslateX", 0.5, 8)),
    (("Equalize", 0.3, None), ("AutoContrast", 0.4, None)),
    (("TranslateY", 0.4, 3), ("Sharpness", 0.2, 6)),
    (("Brightness", 0.9, 6), ("Color", 0.2, 8)),
    (("Solarize", 0.5, 2), ("Invert", 0.0, None)),
    (("Equalize", 0.2, None), ("AutoContrast", 0.6, None)),
    (("Equalize", 0.2, None), ("Equalize", 0.6, None)),
    (("Color", 0.9, 9), ("Equalize", 0.6, None)),
    (("AutoContrast", 0.8, None), ("Solarize", 0.2, 8)),
    (("Brightness", 0.1, 3), ("Color", 0.7, 0)),
    (("Solarize", 0.4, 5), ("AutoContrast", 0.9, None)),
    (("TranslateY", 0.9, 9), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.9, None), ("Solarize", 0.8, 3)),
    (("Equalize", 0.8, None), ("Invert", 0.1, None)),
    (("TranslateY", 0.7, 9), ("AutoContrast", 0.9, None)),
)
# fmt: on

GEOMETRIC = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
BLENDED = ("Brightness", "Color", "Contrast", "Sharpness")
TABULATED = ("Posterize", "Solarize", "Invert")
OPERATIONS = (*GEOMETRIC, *BLENDED, *TABULATED, "AutoContrast", "Equalize")
SIGNED = (*GEOMETRIC, *BLENDED)

# What a setting needs besides its two tables. The order matters: from _COLOR on, pixels are mixed.
_TABLE, _CONTRAST, _AUTOCONTRAST, _EQUALIZE, _COLOR, _SHARPNESS = range(6)
_KINDS = {
    "Contrast": _CONTRAST,
    "AutoContrast": _AUTOCONTRAST,
    "Equalize": _EQUALIZE,
    "Color": _COLOR,
    "Sharpness": _SHARPNESS,
}


def magnitude(name: str, level: int | None, height: int, width: int) -> float:
    """The magnitude of an operation at a level 0 to 9, with torchvision's spacing (in float32)."""
    if level is None:
        return 0.0
    if name == "Posterize":
        return 8.0 - round(level / 2.25)
    if name == "Solarize":
        return float(torch.linspace(255.0, 0.0, 10)[level])
    top = {
        "ShearX": 0.3,
        "ShearY": 0.3,
        "TranslateX": 150.0 / 331.0 * width,
        "TranslateY": 150.0 / 331.0 * height,
        "Rotate": 30.0,
    }.get(name, 0.9)
    return float(torch.linspace(0.0, top, 10)[level])


def source_map(name: str, value: float, height: int, width: int) -> Tensor:
    """The flat index of each output pixel's source; height * width if it has none."""
    y, x = torch.meshgrid(
        torch.arange(height, dtype=torch.float64),
        torch.arange(width, dtype=torch.float64),
        indexing="ij",
    )
    if name == "ShearX":
        x = x + value * (y + 0.5)
    elif name == "ShearY":
        y = y + value * (x + 0.5)
    elif name == "TranslateX":
        x = x - int(value)
    elif name == "TranslateY":
        y = y - int(value)
    elif name == "Rotate":
        cos, sin = math.cos(math.radians(value)), math.sin(math.radians(value))
        mid_y, mid_x = (height - 1) / 2, (width - 1) / 2
        dy, dx = y - mid_y, x - mid_x
        y, x = sin * dx + cos * dy + mid_y, cos * dx - sin * dy + mid_x
    y, x = y.round().long(), x.round().long()
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    return torch.where(inside, y * width + x, height * width).flatten()


def level_table(name: str, value: float) -> Tensor:
    """The output level of each of the 256 input levels, for an operation without a histogram."""
    levels = torch.arange(256)
    if name == "Posterize":
        return levels & -(2 ** (8 - int(value)))
    if name == "Solarize":
        return torch.where(levels >= value, 255 - levels, levels)
    if name == "Invert":
        return 255 - levels
    if name == "Brightness":
        return (levels * (1.0 + value)).clamp(0, 255).long()
    return levels


class AutoAugment(nn.Module):
    """A policy of two operations per image, for uint8 images (B, 3, H, W) of one fixed size.

    ``fill`` is the level of pixels that a move leaves empty, one per channel. ``draws`` are the
    random numbers, (5, B), uniform in [0, 1).
    """

    draws = 5
    kind: Tensor
    factor: Tensor
    rest: Tensor
    tables: Tensor
    maps: Tensor
    codes: Tensor
    chances: Tensor
    scales: Tensor
    empty: Tensor

    def __init__(
        self,
        height: int,
        width: int,
        *,
        policy: Sequence[tuple[Step, Step]] = CIFAR10_POLICY,
        fill: Sequence[int] = (0, 0, 0),
    ) -> None:
        super().__init__()
        settings: dict[tuple[str, float], int] = {("Identity", 0.0): 0}

        def code(step: Step, sign: float) -> int:
            name, _, level = step
            if name not in OPERATIONS:
                raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, not {name!r}")
            value = magnitude(name, level, height, width)
            signed = sign * value if name in SIGNED else value
            return settings.setdefault((name, signed), len(settings))

        codes = [[[code(step, sign) for sign in (-1.0, 1.0)] for step in pair] for pair in policy]
        self._constant("codes", torch.tensor(codes))
        self._constant("chances", torch.tensor([[step[1] for step in pair] for pair in policy]))
        self._constant("kind", torch.tensor([_KINDS.get(name, _TABLE) for name, _ in settings]))
        self._constant("factor", torch.tensor([1.0 + value for _, value in settings]))
        self._constant("rest", torch.tensor([1.0 - (1.0 + value) for _, value in settings]))
        tables = [level_table(name, value) for name, value in settings]
        self._constant("tables", torch.stack(tables).to(torch.uint8))
        maps = [source_map(name, value, height, width) for name, value in settings]
        self._constant("maps", torch.stack(maps))
        # Reciprocals are computed on the host, since division may round differently on a device.
        scales = torch.arange(256, dtype=torch.float32).reciprocal() * 255.0
        self._constant("scales", scales.index_fill(0, torch.tensor(0), 1.0))
        self._constant("empty", torch.tensor(fill, dtype=torch.uint8).view(1, -1, 1))
        self.settings = settings

    def _constant(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)

    def forward(self, images: Tensor, draws: Tensor) -> Tensor:
        which, chance_1, sign_1, chance_2, sign_2 = draws
        pair = (which * len(self.codes)).long().clamp(max=len(self.codes) - 1)
        for step, (chance, sign) in enumerate(((chance_1, sign_1), (chance_2, sign_2))):
            code = self.codes[pair, step, (sign < 0.5).long()]
            images = self.stage(images, torch.where(chance < self.chances[pair, step], code, 0))
        return images

    def stage(self, images: Tensor, setting: Tensor) -> Tensor:
        """Apply to each image the setting of this number, (B,); 0 changes nothing."""
        batch, channels, height, width = images.shape
        kind, factor, rest = (
            t[setting].view(-1, 1, 1) for t in (self.kind, self.factor, self.rest)
        )
        flat = torch.cat((images.flatten(2), self.empty.expand(batch, channels, 1)), 2)
        moved = flat.gather(2, self.maps[setting][:, None].expand(batch, channels, -1))
        index, value = moved.long(), moved.float()
        gray = _gray(value)

        table = self.tables[setting][:, None].expand(batch, channels, 256)
        levels = torch.arange(256, device=images.device, dtype=torch.float32)
        contrast = _blend(levels, gray.mean(2, keepdim=True), factor, rest)
        table = torch.where(kind == _CONTRAST, contrast, table)
        low, high = moved.amin(2, keepdim=True), moved.amax(2, keepdim=True)
        stretched = _stretch(levels, low, high, self.scales)
        table = torch.where(kind == _AUTOCONTRAST, stretched, table)
        table = torch.where(kind == _EQUALIZE, _equalize(index, high.long()), table)
        mapped = table.gather(2, index)

        degenerate = torch.where(kind == _COLOR, gray, _smooth(value, height, width))
        blended = _blend(value, degenerate, factor, rest)
        return torch.where(kind >= _COLOR, blended, mapped).view(images.shape)


def _blend(value: Tensor, degenerate: Tensor, factor: Tensor, rest: Tensor) -> Tensor:
    return (factor * value + rest * degenerate).clamp(0, 255).to(torch.uint8)


def _gray(value: Tensor) -> Tensor:
    """Luma of (B, 3, pixels), truncated to whole levels."""
    red, green, blue = value.split(1, 1)
    return (0.2989 * red + 0.587 * green + 0.114 * blue).trunc()


def _smooth(value: Tensor, height: int, width: int) -> Tensor:
    """The 3x3 mean with a centre of weight 5, rounded; the border is kept."""
    image = value.unflatten(2, (height, width))
    inner = image[..., 1:-1, 1:-1]
    total = F.avg_pool2d(image, 3, 1, divisor_override=1) + 4 * inner
    smooth = image.clone()
    smooth[..., 1:-1, 1:-1] = (total / 13).round()
    return smooth.flatten(2)


def _stretch(levels: Tensor, low: Tensor, high: Tensor, scales: Tensor) -> Tensor:
    """Level table that stretches each channel's range to 0..255; a flat channel is kept."""
    base = torch.where(high == low, 0, low).float()
    return ((levels - base) * scales[(high - low).long()]).clamp(0, 255).to(torch.uint8)


def _equalize(index: Tensor, high: Tensor) -> Tensor:
    """Level table that flattens each channel's histogram; ``high`` is its largest level."""
    count = torch.zeros((*index.shape[:2], 256), dtype=torch.int32, device=index.device)
    count = count.scatter_add(2, index, torch.ones_like(index, dtype=torch.int32))
    step = (index.shape[2] - count.gather(2, high)) // 255
    table = (count.cumsum(2) - count + step // 2) // step.clamp(min=1)
    levels = torch.arange(256, device=index.device)
    return torch.where(step == 0, levels, table.clamp(max=255)).to(torch.uint8)
