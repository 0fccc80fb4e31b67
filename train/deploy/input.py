"""The integer network's input, and the border of it that stands for padding after a mean."""

from __future__ import annotations

import numpy as np

from lbq_hw import numeric
from lbq_hw.network import INPUT, Input
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.fold import Floats
from lbq_hw.train.graph import Analysis, Synapse, taps, terms


def integer_input(spec: InputSpec, border: int) -> Input:
    """The network's input. If a mean is subtracted, a border of mean pixels replaces zero padding;
    it is exact to half a level, since pixels are integers."""
    values = tuple(int(v) for v in numeric.to_integer(border_levels(spec)))
    return Input(
        shape=spec.shape,
        static=spec.static,
        bits=spec.bits,
        shift=spec.shift,
        border=border,
        border_value=values if border else (),
        full_scale=spec.white if spec.static else None,
    )


def border_levels(spec: InputSpec) -> Floats:
    """The level of the mean pixel, per channel, before it is rounded."""
    return np.array(spec.mean or (0.0,) * spec.shape[0]) * spec.full_scale


def border_width(found: Analysis, spec: InputSpec) -> int:
    """Width of the border that stands for zero padding of mean-subtracted images."""
    if not spec.mean:
        return 0
    return max((vertical for vertical, _ in input_paddings(found)), default=0)


def input_paddings(found: Analysis) -> set[tuple[int, int]]:
    paddings = set()
    for population in found.populations:
        for term in terms(population.current):
            origin = term.origin
            if origin.levels.source != INPUT:
                continue
            paddings.add(taps.padding(origin) if isinstance(origin, Synapse) else (0, 0))
    return paddings
