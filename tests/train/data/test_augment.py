"""Augmentation against what is done by hand, image by image, in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from lbq_hw.train.data import InputSpec
from lbq_hw.train.data.augment import (
    AugmentConfig,
    Pipeline,
    affine,
    beta_quantiles,
    crop,
    cutmix,
    cutout,
    mixup,
)
from lbq_hw.train.data.autoaugment import (
    CIFAR10_POLICY,
    GEOMETRIC,
    OPERATIONS,
    SIGNED,
    AutoAugment,
    magnitude,
)

CIFAR = InputSpec(shape=(3, 32, 32), static=True, bits=8)


def images(count: int, seed: int, shape: tuple[int, int, int] = (3, 32, 32)) -> Tensor:
    """Noise, dark, bright, smooth and flat images in turn: histograms of every kind."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 256, (count, *shape))
    out[1::5] //= 4
    out[2::5] = 200 + out[2::5] // 8
    out[3::5] = np.arange(shape[2]) * 5 + out[3::5, :, :, :1] // 16
    out[4::5] = out[4::5, :, :1, :1]
    return torch.from_numpy(np.clip(out, 0, 255).astype(np.uint8))


# The operations of AutoAugment, one image (C, H, W) at a time


def blend(image: np.ndarray, other: np.ndarray, value: float) -> np.ndarray:
    factor, rest = np.float32(1.0 + value), np.float32(1.0 - (1.0 + value))
    mixed = factor * image.astype(np.float32) + rest * other.astype(np.float32)
    return np.clip(mixed, 0, 255).astype(np.uint8)


def grayscale(image: np.ndarray) -> np.ndarray:
    red, green, blue = image.astype(np.float32)
    weights = np.float32(0.2989), np.float32(0.587), np.float32(0.114)
    return (weights[0] * red + weights[1] * green + weights[2] * blue).astype(np.uint8)


def by_hand(name: str, value: float, image: np.ndarray, fill=(0, 0, 0)) -> np.ndarray:
    if name in GEOMETRIC:
        return moved(name, value, image, fill)
    out = image.copy()
    if name == "Brightness":
        return blend(image, np.zeros_like(image), value)
    if name == "Color":
        return blend(image, np.broadcast_to(grayscale(image), image.shape), value)
    if name == "Contrast":
        return blend(image, np.full(image.shape, grayscale(image).mean(dtype=np.float32)), value)
    if name == "Sharpness":
        soft, whole = image.copy(), image.astype(int)
        for y, x in np.ndindex(30, 30):
            window = whole[:, y : y + 3, x : x + 3].sum((1, 2))
            soft[:, y + 1, x + 1] = np.rint((window + 4 * whole[:, y + 1, x + 1]) / 13)
        return blend(image, soft, value)
    if name == "Posterize":
        return image // 2 ** (8 - int(value)) * 2 ** (8 - int(value))
    if name == "Solarize":
        return np.where(image >= value, 255 - image, image)
    if name == "Invert":
        return 255 - image
    for c, channel in enumerate(image):
        if name == "AutoContrast" and channel.max() > channel.min():
            scale = np.float32(1) / np.float32(channel.max() - channel.min()) * np.float32(255)
            out[c] = ((channel - channel.min()).astype(np.float32) * scale).astype(np.uint8)
        if name == "Equalize":
            histogram = np.bincount(channel.ravel(), minlength=256)
            step = (histogram.sum() - histogram[channel.max()]) // 255
            if step:
                below = np.concatenate([[0], np.cumsum(histogram)[:-1]])
                out[c] = np.minimum((below + step // 2) // step, 255)[channel]
    return out


def moved(name: str, value: float, image: np.ndarray, fill) -> np.ndarray:
    out = np.empty_like(image)
    out[:] = np.array(fill)[:, None, None]
    _, height, width = image.shape
    for y, x in np.ndindex(height, width):
        # Coordinates of pixel centres; shears keep the corner, a turn keeps the centre.
        cy, cx = y + 0.5, x + 0.5
        if name == "ShearX":
            cx += value * cy
        elif name == "ShearY":
            cy += value * cx
        elif name == "TranslateX":
            cx -= int(value)
        elif name == "TranslateY":
            cy -= int(value)
        else:
            turn = np.exp(1j * math.radians(value)) * complex(cx - width / 2, cy - height / 2)
            cy, cx = turn.imag + height / 2, turn.real + width / 2
        sy, sx = math.floor(cy), math.floor(cx)
        if 0 <= sy < height and 0 <= sx < width:
            out[:, y, x] = image[:, sy, sx]
    return out


# Levels of the CIFAR policy and a few more; none of them puts a source between two pixels.
LEVELS = {
    "ShearX": (7, 8),
    "ShearY": (7, 8),
    "TranslateX": (0, 8, 9),
    "TranslateY": (3, 9),
    "Rotate": (2, 5),
    "Brightness": (3, 6, 7, 9),
    "Color": (0, 3, 7, 8, 9),
    "Contrast": (6, 7),
    "Sharpness": (1, 3, 5, 6, 9),
    "Posterize": (0, 4, 7, 9),
    "Solarize": (2, 3, 5, 8),
    "AutoContrast": (None,),
    "Equalize": (None,),
    "Invert": (None,),
}


@pytest.mark.parametrize("fill", [(0, 0, 0), (129, 124, 112)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_equals_the_one_by_hand(name, fill):
    steps = [(name, 1.0, level) for level in LEVELS[name]]
    policy = AutoAugment(32, 32, policy=[(step, step) for step in steps], fill=fill)
    batch = images(10, 1)
    for (operation, value), number in policy.settings.items():
        found = policy.stage(batch, torch.full((10,), number)).numpy()
        for image, result in zip(batch.numpy(), found, strict=True):
            expected = image if operation == "Identity" else by_hand(name, value, image, fill)
            assert np.array_equal(result, expected)


def test_magnitudes_of_the_cifar_policy():
    found = {name: [magnitude(name, level, 32, 32) for level in LEVELS[name]] for name in LEVELS}
    assert [int(value) for value in found["TranslateX"]] == [0, 12, 14]
    assert [int(value) for value in found["TranslateY"]] == [4, 14]
    assert found["Rotate"] == pytest.approx([30 * 2 / 9, 30 * 5 / 9])
    assert found["ShearY"] == pytest.approx([0.3 * 7 / 9, 0.3 * 8 / 9])
    assert found["Color"] == pytest.approx([0, 0.3, 0.7, 0.8, 0.9])
    assert found["Posterize"] == [8, 6, 5, 4]
    assert found["Solarize"] == pytest.approx([255 * 7 / 9, 170, 255 * 4 / 9, 255 / 9])


# The table of the AutoAugment paper, which gives a level even where an operation has no use for it.
PAPER = """
Invert 0.1 7 Contrast 0.2 6; Rotate 0.7 2 TranslateX 0.3 9; Sharpness 0.8 1 Sharpness 0.9 3;
ShearY 0.5 8 TranslateY 0.7 9; AutoContrast 0.5 8 Equalize 0.9 2; ShearY 0.2 7 Posterize 0.3 7;
Color 0.4 3 Brightness 0.6 7; Sharpness 0.3 9 Brightness 0.7 9; Equalize 0.6 5 Equalize 0.5 1;
Contrast 0.6 7 Sharpness 0.6 5; Color 0.7 7 TranslateX 0.5 8; Equalize 0.3 7 AutoContrast 0.4 8;
TranslateY 0.4 3 Sharpness 0.2 6; Brightness 0.9 6 Color 0.2 8; Solarize 0.5 2 Invert 0.0 3;
Equalize 0.2 0 AutoContrast 0.6 0; Equalize 0.2 8 Equalize 0.6 4; Color 0.9 9 Equalize 0.6 6;
AutoContrast 0.8 4 Solarize 0.2 8; Brightness 0.1 3 Color 0.7 0; Solarize 0.4 5 AutoContrast 0.9 3;
TranslateY 0.9 9 TranslateY 0.7 9; AutoContrast 0.9 2 Solarize 0.8 3; Equalize 0.8 8 Invert 0.1 3;
TranslateY 0.7 9 AutoContrast 0.9 1
"""


def test_policy_is_the_papers():
    for pair, row in zip(CIFAR10_POLICY, PAPER.split(";"), strict=True):
        words = row.split()
        for (name, chance, level), (paper_name, paper_chance, paper_level) in zip(
            pair, (words[:3], words[3:]), strict=True
        ):
            assert (name, chance) == (paper_name, float(paper_chance))
            assert level in (None, int(paper_level))
            assert (level is None) == (name in ("Invert", "AutoContrast", "Equalize"))


@pytest.mark.parametrize("fill", [(0, 0, 0), (129, 124, 112)])
def test_each_image_gets_both_steps_of_its_own_pair(fill):
    policy = AutoAugment(32, 32, fill=fill)
    batch = images(100, 2)
    draws = torch.rand((5, 100), generator=torch.Generator().manual_seed(0))
    draws[0] = torch.arange(100) % 25 / 25 + 0.02
    found = policy(batch, draws).numpy()
    for n, image in enumerate(batch.numpy()):
        expected = image
        for step, row in zip(CIFAR10_POLICY[n % 25], (1, 3), strict=True):
            name, chance, level = step
            value = magnitude(name, level, 32, 32)
            if name in SIGNED and draws[row + 1, n] >= 0.5:
                value = -value
            if draws[row, n] < chance:
                expected = by_hand(name, value, expected, fill)
        assert np.array_equal(found[n], expected), CIFAR10_POLICY[n % 25]


def test_unknown_operation_is_named():
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        AutoAugment(4, 4, policy=[(("Blur", 1.0, 1), ("Invert", 0.0, None))])
    assert str(caught.value) == f"operation must be one of {', '.join(OPERATIONS)}, not 'Blur'"


# The other steps


def test_crop_cuts_the_padded_image():
    batch = images(8, 3)
    fill = torch.tensor([1, 2, 3], dtype=torch.uint8).view(3, 1, 1)
    draws = torch.tensor([[0.0, 0.999999, 0.5, 0.2] * 2, [0.0, 0.999999, 0.3, 0.9] * 2])
    found = crop(batch, draws, fill, 4).numpy()
    for n, image in enumerate(batch.numpy()):
        padded = np.broadcast_to(fill.numpy(), (3, 40, 40)).copy()
        padded[:, 4:36, 4:36] = image
        y, x = (int(draws[i, n] * 9) for i in (0, 1))
        assert np.array_equal(found[n], padded[:, y : y + 32, x : x + 32])


def test_cutout_fills_a_clipped_square():
    x = torch.ones(3, 2, 8, 8)
    draws = torch.tensor([[0.0, 0.5, 0.99], [0.0, 0.5, 0.5]])
    fill = torch.tensor([0.0, -0.75]).view(2, 1, 1)
    found = cutout(x, draws, fill, 4)
    expected = torch.ones(3, 2, 8, 8)
    expected[0, :, 0:2, 0:2] = fill
    expected[1, :, 2:6, 2:6] = fill
    expected[2, :, 5:8, 2:6] = fill
    assert torch.equal(found, expected)


def test_affine_at_rest_changes_nothing():
    batch = images(5, 4, (1, 28, 28))
    rest = torch.full((4, 5), 0.5)
    assert torch.equal(affine(batch, rest, torch.zeros(1, 1, 1), 10.0, 0.1, 0.1), batch)


def test_affine_shifts_turns_and_scales():
    batch = torch.zeros(4, 1, 9, 9, dtype=torch.uint8)
    batch[:, 0, 4, 6] = 200
    draws = torch.full((4, 4), 0.5)
    draws[2, 0] = 1.0  # right by 1/9 of the side: one pixel
    draws[3, 1] = 0.0  # up by one pixel
    draws[0, 2] = 1.0  # a quarter turn
    fill = torch.tensor([9]).view(1, 1, 1)
    found = affine(batch[:3], draws[:, :3], fill, 90.0, 1 / 9, 0.0)
    assert [divmod(int(image.argmax()), 9) for image in found] == [(4, 7), (3, 6), (6, 4)]
    assert found[0, 0, :, 0].tolist() == [9] * 9
    draws[1, 3] = 1.0  # twice as large
    found = affine(batch[3:], draws[:, 3:], fill, 0.0, 0.0, 0.999999)
    assert divmod(int(found[0].argmax()), 9) == (4, 8)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 2.0])
def test_beta_law_has_its_moments(alpha):
    law = beta_quantiles(alpha).double()
    middle = (law[1:] + law[:-1]) / 2
    assert len(law) == 1025
    assert (float(law[0]), float(law[512]), float(law[1024])) == (0.0, 0.5, 1.0)
    assert bool((law.diff() >= 0).all())
    assert float(middle.mean()) == pytest.approx(0.5, abs=1e-6)
    assert float(middle.var()) == pytest.approx(0.25 / (2 * alpha + 1), rel=5e-3)
    assert alpha != 1.0 or torch.allclose(law, torch.linspace(0, 1, 1025).double(), atol=1e-6)


def test_mixup_is_the_weighted_mean():
    x, other = torch.rand(2, 3, 2, 4, 4)
    mixed, share = mixup(x, other, torch.tensor([0.0, 0.25, 0.75]), beta_quantiles(1.0))
    assert share.tolist() == pytest.approx([0.0, 0.25, 0.75], abs=1e-6)
    assert torch.equal(mixed[0], other[0])
    assert torch.allclose(mixed[1], 0.25 * x[1] + 0.75 * other[1])


def test_cutmix_counts_what_it_pasted():
    x, other = torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)
    draws = torch.tensor([[0.75, 0.75], [0.5, 0.0], [0.5, 0.999]])
    mixed, share = cutmix(x, other, draws, beta_quantiles(1.0))
    # A quarter of the area: 4x4 about the middle; about a corner, only a part is inside.
    assert mixed.sum((1, 2, 3)).tolist() == [16.0, 6.0]
    assert mixed[0, 0, 2:6, 2:6].min() == 1
    assert mixed[1, 0, 0:2, 5:8].min() == 1
    assert share.tolist() == [1 - 16 / 64, 1 - 6 / 64]


# The pipeline


def run(config: AugmentConfig, spec: InputSpec, batch: Tensor, labels: Tensor, seed: int = 0):
    pipeline = Pipeline(config, spec, classes=10)
    draws = pipeline.draw(len(batch), torch.Generator().manual_seed(seed))
    return pipeline(batch, labels, draws)


def test_empty_config_only_normalizes():
    batch, labels = images(6, 5), torch.arange(6)
    x, targets = run(AugmentConfig(), CIFAR, batch, labels)
    assert torch.equal(x, CIFAR.normalize(batch))
    assert torch.equal(targets, labels)


def test_same_generator_same_batch():
    config = AugmentConfig(
        rotate=5, crop=4, flip=True, autoaugment=True, cutout=16, mixup=0.2, cutmix=1.0
    )
    batch, labels = images(16, 6), torch.arange(16) % 10
    first, again, other = (run(config, CIFAR, batch, labels, seed) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])


def test_steps_are_taken_in_order():
    config = AugmentConfig(crop=4, flip=True, autoaugment=True, cutout=8)
    spec = InputSpec(
        shape=(3, 32, 32), static=True, bits=8, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)
    )
    batch = images(20, 7)
    pipeline = Pipeline(config, spec, classes=10)
    draws = pipeline.draw(20, torch.Generator().manual_seed(0))
    assert draws.shape == (10, 20)
    x = crop(batch, draws[0:2], torch.zeros(3, 1, 1, dtype=torch.uint8), 4)
    x = torch.where(draws[2].view(-1, 1, 1, 1) < 0.5, x.flip(-1), x)
    x = spec.normalize(AutoAugment(32, 32)(x, draws[3:8]))
    expected = cutout(x, draws[8:10], torch.zeros(3, 1, 1), 8)
    assert torch.equal(pipeline(batch, torch.zeros(20), draws)[0], expected)


def test_mixed_targets_weigh_the_pair():
    config = AugmentConfig(mixup=1.0)
    spec = InputSpec(shape=(1, 2, 2), static=True, bits=8)
    batch = torch.tensor([0, 255, 255], dtype=torch.uint8).view(3, 1, 1, 1).expand(3, 1, 2, 2)
    x, targets = run(config, spec, batch, torch.tensor([3, 8, 5]))
    assert targets.sum(1).tolist() == pytest.approx([1, 1, 1])
    # Image 0 is black and 1 white: brightness tells the share; 2 has itself for a partner.
    assert targets[0, 8].item() == pytest.approx(x[0].mean().item())
    assert targets[1, 8].item() == pytest.approx(x[1].mean().item())
    assert targets[2, 5].item() == pytest.approx(1)


def test_mixup_and_cutmix_share_the_batch():
    config = AugmentConfig(mixup=1.0, cutmix=1.0)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8)
    batch = torch.tensor([0, 255] * 100, dtype=torch.uint8).view(200, 1, 1, 1).expand(200, 1, 8, 8)
    x, targets = run(config, spec, batch, torch.arange(200) % 2)
    pasted = ((x == 0) | (x == 1)).flatten(1).all(1)
    assert 60 < int(pasted.sum()) < 140
    assert torch.allclose(targets[:, 1], x.mean((1, 2, 3)), atol=1e-5)


def test_frames_of_a_recording_are_treated_alike():
    config = AugmentConfig(rotate=10, crop=1, flip=True, cutout=2)
    spec = InputSpec(shape=(2, 8, 8), static=False, bits=8)
    frame = images(6, 8, (2, 8, 8))
    x, _ = run(config, spec, torch.stack([frame, frame], 1), torch.arange(6))
    assert x.shape == (6, 2, 2, 8, 8)
    assert torch.equal(x[:, 0], x[:, 1])
    still = InputSpec(shape=(2, 8, 8), static=True, bits=8)
    assert torch.equal(x[:, 0], run(config, still, frame, torch.arange(6))[0])


NORMALIZED = InputSpec(
    shape=(3, 32, 32), static=True, bits=8, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)
)


@pytest.mark.parametrize("spec", [CIFAR, NORMALIZED], ids=["scaled", "normalized"])
@pytest.mark.parametrize(
    ("fill", "levels"), [("zero", (0, 0, 0)), ("mean", (129, 124, 112)), ("gray", (128, 128, 128))]
)
def test_every_step_leaves_the_fill_in_its_empty_places(fill, levels, spec):
    config = AugmentConfig(crop=4, autoaugment=True, cutout=12, fill=fill)
    pipeline = Pipeline(config, spec, classes=10, mean=(129, 124, 112))
    batch = images(25, 9)
    draws = pipeline.draw(25, torch.Generator().manual_seed(1))
    draws[2] = torch.arange(25) / 25 + 0.02  # each pair of the policy
    draws[3], draws[5] = 0.0, 0.05  # and nearly all their steps
    found, _ = pipeline(batch, torch.zeros(25), draws)
    empty = np.array(levels, dtype=np.uint8)[:, None, None]
    for n, image in enumerate(batch.numpy()):
        padded = np.broadcast_to(empty, (3, 40, 40)).copy()
        padded[:, 4:36, 4:36] = image
        y, x = (int(draws[i, n] * 9) for i in (0, 1))
        expected = padded[:, y : y + 32, x : x + 32]
        for (name, chance, level), row in zip(CIFAR10_POLICY[n], (3, 5), strict=True):
            value = magnitude(name, level, 32, 32)
            if name in SIGNED and draws[row + 1, n] >= 0.5:
                value = -value
            if draws[row, n] < chance:
                expected = by_hand(name, value, expected, levels)
        y, x = (int(draws[i, n] * 32) for i in (7, 8))
        square = np.s_[:, max(y - 6, 0) : y + 6, max(x - 6, 0) : x + 6]
        expected = expected.copy()
        expected[square] = empty
        result = spec.normalize(torch.from_numpy(expected))
        if fill == "zero":
            result[square] = 0.0
        assert torch.equal(found[n], result), CIFAR10_POLICY[n]


def test_affine_moves_fill_with_the_mean_colour_too():
    config = AugmentConfig(shift=0.5, fill="mean")
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8)
    pipeline = Pipeline(config, spec, classes=10, mean=(99,))
    black = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    x, _ = pipeline(black, torch.zeros(1), torch.tensor([[0.5], [0.5], [1.0], [0.5]]))
    assert (x[0, 0] * 255).round().int().tolist() == [[99] * 4 + [0] * 4] * 8


def test_recordings_fill_every_frame_by_channel():
    config = AugmentConfig(crop=8, cutout=8, fill="mean")
    spec = InputSpec(shape=(2, 8, 8), static=False, bits=8)
    pipeline = Pipeline(config, spec, classes=10, mean=(3, 7))
    draws = torch.tensor([[0.0], [0.0], [0.5], [0.5]])  # all that is seen is padding
    x, _ = pipeline(torch.zeros(1, 3, 2, 8, 8, dtype=torch.uint8), torch.zeros(1), draws)
    expected = torch.tensor([3, 7]).view(1, 1, 2, 1, 1) / 255
    assert torch.equal(x, expected.expand(1, 3, 2, 8, 8))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"crop": -1}, ValueError, "crop must not be negative, not -1"),
        ({"crop": 1.5}, TypeError, "crop must be of type int, not 1.5"),
        ({"crop": True}, TypeError, "crop must be of type int, not True"),
        ({"flip": 1}, TypeError, "flip must be of type bool, not 1"),
        ({"mixup": "a"}, TypeError, "mixup must be of type float, not 'a'"),
        ({"zoom": 1.0}, ValueError, "zoom must be below 1, not 1.0"),
        ({"fill": "grey"}, ValueError, "fill must be 'zero', 'mean' or 'gray', not 'grey'"),
    ],
)
def test_wrong_configs_are_named(options, error, text):
    with pytest.raises(error) as caught:
        AugmentConfig(**options)
    assert str(caught.value) == text


def test_config_that_does_not_fit_the_input_is_named():
    gray = InputSpec(shape=(1, 28, 28), static=True, bits=8)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Pipeline(AugmentConfig(autoaugment=True), gray, classes=10)
    assert str(caught.value) == "autoaugment needs still images of 3 channels, not (1, 28, 28)"
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Pipeline(AugmentConfig(crop=2, fill="mean"), gray, classes=10)
    assert str(caught.value) == "mean must have 1 levels to fill with, not ()"
