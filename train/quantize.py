"""Weights as they are deployed: gamma absorbed, codes of a few bits, one scale per channel.

`Conv1d`, `Conv2d` and `Linear` here stand in for torch's, with the same parameters. Their
effective weight is

    gamma_source * step_c * clamp(round(W / step_c), -limit, limit)

with a learned step per output channel (one step for a whole readout, because its classes are
compared with each other). The norm's gain never enters the codes: it goes into the channel's scale

    s_c = gamma_source * |gain_c| * step_c

Paths that meet in a neuron must share s_c. There, learned steps are only requests, and a
:class:`train.step_group.StepGroup` decides on the steps in force. So the trained weights are the
deployed weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw import numeric
from lbq_hw.train.neurons import Neuron

TINY = 1e-12  # keeps a dead channel's quotients finite
MAX_CHOSEN_EXPONENT = 8
"""Largest exponent that training and export choose for a path that meets other paths.

Export may add its `MAX_REFINEMENT` to it; the sum stays within the `MAX_EXPONENT` of a network.
"""


def bits_by_layer(paths: Iterable[str], wanted: int | Mapping[str, int]) -> dict[str, int]:
    """The weight bits of every layer; `wanted` is one number, or one per pattern (`fnmatch`); the
    last pattern that matches counts. Every layer needs a pattern, and every pattern a layer.
    """
    if isinstance(wanted, int):
        wanted = {"*": wanted}
    for bits in wanted.values():
        numeric.weight_limit(bits)
    found, used = dict[str, int](), set[str]()
    paths = list(paths)
    for path in paths:
        fits = [pattern for pattern in wanted if fnmatchcase(path, pattern)]
        if not fits:
            raise ValueError(
                f"weight_bits must have a pattern that matches {path!r}: add one, or '*'"
            )
        found[path] = wanted[fits[-1]]
        used |= {*fits}
    for pattern in wanted:
        if pattern not in used:
            raise ValueError(
                f"weight_bits has {pattern!r}, which matches no layer with weights; the layers "
                f"are {', '.join(paths)}"
            )
    return found


def codes(weight: Tensor, step: Tensor, bits: int) -> Tensor:
    """Integer weight codes as floats, equal to the codes that export writes."""
    limit = numeric.weight_limit(bits)
    return torch.clamp(torch.round(weight / step), -limit, limit)


def fake_quantize(weight: Tensor, step: Tensor, bits: int) -> Tensor:
    """``step * codes`` with a straight-through gradient and the LSQ gradient of the step."""
    limit = numeric.weight_limit(bits)
    ratio = torch.clamp(weight / step, -limit, limit)
    return (ratio + (torch.round(ratio) - ratio).detach()) * step


def initial_step(weight: Tensor, bits: int, *, per_tensor: bool) -> Tensor:
    """The initial step of LSQ (arXiv:1902.08153): twice the mean magnitude over sqrt(limit).

    It is at most the largest magnitude, so that at least this weight has a code other than 0.
    """
    magnitude = weight.detach().abs().flatten(1)
    if per_tensor:
        magnitude = magnitude.reshape(1, -1)
    step = 2 * magnitude.mean(1) / numeric.weight_limit(bits) ** 0.5
    step = torch.minimum(step, magnitude.amax(1)).clamp_min(TINY)
    return step.reshape(-1, *[1] * (weight.dim() - 1))


def gain(norms: Sequence[nn.Module], channels: int) -> Tensor:
    """Product of the norms' gains per channel, from running statistics, in float64."""
    total = torch.ones(channels, dtype=torch.float64)
    for norm in norms:
        assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
        assert norm.running_var is not None
        factor = (norm.running_var.detach().double() + norm.eps).rsqrt()
        if norm.affine:
            factor = factor * norm.weight.detach().double()
        total = total.to(factor.device) * factor
    return total


class Group(Protocol):
    """The interface of `train.step_group.StepGroup`, which decides on the steps of its layers."""

    def step(self, place: int) -> tuple[Tensor, Tensor]: ...


class Deployed(nn.Module):
    """The common base of `Conv1d`, `Conv2d` and `Linear`: the effective weight.

    Members: `source`, the neuron whose gamma is absorbed (None: the input, or nothing is
    absorbed); `bits`, None for float weights; `group`, which decides on the step if it depends on
    other layers, else None; `place`, the layer's index in its group.
    """

    weight: Tensor
    step: nn.Parameter
    bits: int | None

    def deploy(
        self,
        *,
        source: Neuron | None,
        absorb: bool,
        bits: int | None,
        per_tensor: bool = False,
    ) -> None:
        self._source = (source,)  # in a tuple, so that it is registered only once: where it fires
        self.group: Group | None = None
        self.place = 0
        self.absorb = absorb and source is not None
        self.bits = bits
        if bits is not None:
            self.step = nn.Parameter(initial_step(self.weight, bits, per_tensor=per_tensor))

    @property
    def source(self) -> Neuron | None:
        return self._source[0]

    def wanted_step(self) -> Tensor:
        """The learned step, with the gradient scale of LSQ."""
        assert self.bits is not None
        step = self.step.abs().clamp_min(TINY)
        per_step = self.weight.numel() / step.numel()
        rate = (per_step * numeric.weight_limit(self.bits)) ** -0.5
        return (step - step * rate).detach() + step * rate

    def current_step(self) -> tuple[Tensor, Tensor]:
        """The step in force, per output channel or for all, and its exponent."""
        if self.group is None:
            return self.wanted_step(), torch.zeros(())
        return self.group.step(self.place)

    def effective_weight(self) -> Tensor:
        weight: Tensor = self.weight
        if self.bits is not None:
            step, _ = self.current_step()
            weight = fake_quantize(weight, step, self.bits)
        if self.absorb:
            assert self.source is not None
            weight = weight * self.source.gamma.detach()  # the neuron adds its gradient
        return weight


class Conv1d(Deployed, nn.Conv1d):
    """A convolution over lines of burst levels, in deployed form."""

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.effective_weight(), self.bias)


class Conv2d(Deployed, nn.Conv2d):
    """A convolution over burst levels, in deployed form."""

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.effective_weight(), self.bias)


class Linear(Deployed, nn.Linear):
    """A linear layer over burst levels, in deployed form."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.effective_weight(), self.bias)


def stand_in(module: nn.Conv1d | nn.Conv2d | nn.Linear) -> Conv1d | Conv2d | Linear:
    """The deployed twin of a torch layer, sharing its parameters."""
    kinds: dict[type[nn.Module], Any] = {nn.Conv1d: Conv1d, nn.Conv2d: Conv2d, nn.Linear: Linear}
    kind = next(twin for layer, twin in kinds.items() if isinstance(module, layer))
    twin = kind.__new__(kind)
    twin.__dict__.update(module.__dict__)
    return twin
