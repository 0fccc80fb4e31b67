"""The most that a network may have of anything: one bound, one definition.

A network comes from a file, and a file comes from anywhere. Within these bounds no number makes a
program run for hours before it says a word, or fill a machine's memory; what no core can hold is
another matter, which `lbq_hw.compiler` judges. They leave room above every network that we know:
ResNet-20 as the paper has it may take 1,800 timesteps. docs/lbq-format.md lists them for readers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lbq_hw.network.base import Shape, require

MAX_NAME = 200
"""Characters of a name."""
MAX_TIMESTEPS = 4096
MAX_SIDE = 4096
"""Rows or columns of an image, a layer, a kernel or a window, of its stride and of its padding."""
MAX_CHANNELS = 1 << 15
MAX_LAYERS = 512
MAX_PATHS = 256
"""Paths into one layer."""
MAX_EXPONENT = 15
"""Exponent of a path. That of a segment in a program goes up to the core's `exponents`."""
MAX_FRACTION_BITS = 16
MAX_DECAY_BITS = 16
MAX_PARAMETER = 1 << 53
"""Magnitude of a bias, a threshold, a reset or an identity's weight: what the exporter can round
exactly."""
MAX_LEVELS = 1 << 28
"""Levels of one tensor over all timesteps, the padding of those that read it included."""
MAX_WORK = 1 << 42
"""Multiplications of one image over all timesteps, were every level a number."""
MAX_IMAGES = 1 << 24
"""Images of a dataset of which some were held out."""
MAX_HELD_OUT = 1 << 20
"""Images held out: their numbers fit the header of a file."""

_NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def check_network_name(name: str) -> None:
    """Refuse a name that cannot be that of a file or a folder on every system."""
    require(
        len(name) <= MAX_NAME and _NETWORK_NAME.fullmatch(name) is not None,
        f"a network's name must be 1 to {MAX_NAME} of the characters A-Z, a-z, 0-9, '.', '_', '+' "
        f"and '-', the first a letter or a digit, not {name!r}",
    )


def check_layer_name(name: str) -> None:
    """Refuse a name that cannot be shown in one line as it is. Paths of modules always can."""
    require(
        1 <= len(name) <= MAX_NAME and name.isprintable() and name.strip() == name,
        f"a layer's name must be 1 to {MAX_NAME} printable characters, no space first or last, "
        f"not {name!r}",
    )


def check_class_names(names: Sequence[str], classes: int) -> None:
    """Refuse names that do not name each class, one by one, in one line."""
    require(
        len(names) == classes,
        f"class_names must be {classes} names, one per class, not {len(names)}",
    )
    for name in names:
        require(
            isinstance(name, str) and 1 <= len(name) <= MAX_NAME and name.isprintable(),
            f"a class's name must be 1 to {MAX_NAME} printable characters, not {name!r}",
        )
    seen: set[str] = set()
    for name in names:
        require(name not in seen, f"two classes have the name {name!r}")
        seen.add(name)


def check_shape(shape: Shape, place: str) -> None:
    """Refuse a shape that is empty or too large along an axis."""
    require(
        len(shape) == 3 and 1 <= shape[0] <= MAX_CHANNELS,
        f"{place}: a shape must have 1..{MAX_CHANNELS} channels, a height and a width, not {shape}",
    )
    require(
        all(1 <= side <= MAX_SIDE for side in shape[1:]),
        f"{place}: height and width must be 1..{MAX_SIDE}, not {shape}",
    )


def check_levels(levels: int, place: str) -> None:
    """Refuse a tensor of too many levels."""
    require(
        levels <= MAX_LEVELS,
        f"{place}: {levels} levels over all timesteps are more than {MAX_LEVELS}",
    )
