"""The limits on a network's sizes: each limit has one definition, here.

A file may come from an untrusted source. Within these limits, no number makes a program run for
hours without output, or fill a machine's memory. Whether a core can hold a network is a separate
question, for `lbq_hw.compiler`. The limits leave room above every network that we know: the paper's
ResNet-20 may take 1,800 timesteps. docs/lbq-format.md lists the limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lbq_hw.network.base import Shape, require

MAX_NAME = 200
"""Characters of a name."""
MAX_TIMESTEPS = 4096
MAX_SIDE = 4096
"""Rows or columns of an image, layer, kernel or window; also a stride or a padding."""
MAX_CHANNELS = 1 << 15
MAX_LAYERS = 512
MAX_PATHS = 256
"""Paths into one layer."""
MAX_EXPONENT = 15
"""Exponent of a path. The exponent of a segment in a program may reach the core's `exponents`."""
MAX_FRACTION_BITS = 16
MAX_DECAY_BITS = 16
MAX_PARAMETER = 1 << 53
"""Magnitude of a bias, a threshold, a reset or an identity's weight: the exporter can round values
up to this limit exactly."""
MAX_LEVELS = 1 << 28
"""Levels of one tensor over all timesteps, including the padding of its readers."""
MAX_WORK = 1 << 42
"""Multiplications of one image over all timesteps, zero levels included."""
MAX_IMAGES = 1 << 24
"""Images of a dataset from which some were held out."""
MAX_HELD_OUT = 1 << 20
"""Images held out: their indices fit the header of a file."""

_NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def check_network_name(name: str) -> None:
    """Refuse a name that is not a valid file or folder name on every system."""
    require(
        len(name) <= MAX_NAME and _NETWORK_NAME.fullmatch(name) is not None,
        f"a network's name must be 1 to {MAX_NAME} of the characters A-Z, a-z, 0-9, '.', '_', '+' "
        f"and '-', the first a letter or a digit, not {name!r}",
    )


def check_layer_name(name: str) -> None:
    """Refuse a name that cannot be shown in one line as it is; module paths are always valid."""
    require(
        1 <= len(name) <= MAX_NAME and name.isprintable() and name.strip() == name,
        f"a layer's name must be 1 to {MAX_NAME} printable characters, no space first or last, "
        f"not {name!r}",
    )


def check_class_names(names: Sequence[str], classes: int) -> None:
    """Refuse names unless there is one per class, distinct, and each fits in one line."""
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
