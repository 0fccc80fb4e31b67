"""Weights as they are deployed: gamma absorbed, codes of a few bits, one scale per channel.

`Conv2d` and `Linear` here stand in for torch's, with the same parameters. Their effective weight is

    gamma_source * step_c * clamp(round(W / step_c), -limit, limit)

with a learned step per output channel (one for a whole readout, whose classes are compared with
each other). The norm's gain never enters the codes: it goes into the channel's scale

    s_c = gamma_source * |gain_c| * step_c

Two paths into one neuron must share s_c, so a second path owns no step: its own follows from the
first one's, times a power of two that makes its weights fit. What is trained is what is deployed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw import numeric
from train.neurons import Neuron

_TINY = 1e-12  # keeps a dead channel's quotients finite


def codes(weight: Tensor, step: Tensor, bits: int) -> Tensor:
    """Integer weight codes, as float: exactly what export writes."""
    limit = numeric.weight_limit(bits)
    return torch.clamp(torch.round(weight / step), -limit, limit)


def fake_quantize(weight: Tensor, step: Tensor, bits: int) -> Tensor:
    """``step * codes`` with a straight-through gradient and the LSQ gradient of the step."""
    limit = numeric.weight_limit(bits)
    ratio = torch.clamp(weight / step, -limit, limit)
    return (ratio + (torch.round(ratio) - ratio).detach()) * step


def initial_step(weight: Tensor, bits: int, *, per_tensor: bool) -> Tensor:
    """A first step, twice the mean magnitude over sqrt(limit): LSQ's (arXiv:1902.08153)."""
    magnitude = weight.detach().abs()
    mean = magnitude.mean() if per_tensor else magnitude.flatten(1).mean(1)
    step = 2 * mean / numeric.weight_limit(bits) ** 0.5
    return step.clamp_min(_TINY).reshape(-1, *[1] * (weight.dim() - 1))


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


@dataclass(eq=False)
class Tie:
    """What a second path's step follows from: the first path, and the norms on both."""

    leader: Conv2d | Linear
    leader_norms: tuple[nn.Module, ...]
    norms: tuple[nn.Module, ...]

    def step(self, weight: Tensor, source: Neuron | None, bits: int) -> tuple[Tensor, Tensor]:
        """The path's own step per channel and its exponent x (0-d), gradients stopped."""
        channels = weight.shape[0]
        with torch.no_grad():
            scale = self.leader.channel_scale(self.leader_norms)
            factor = gain(self.norms, channels).to(scale.device)
            own = _gamma(source) * factor.abs().clamp_min(_TINY)
            step = (scale / own).to(weight.dtype).reshape(-1, *[1] * (weight.dim() - 1))
            step = step.clamp_min(_TINY)
            overflow = (weight / step).abs().max() / numeric.weight_limit(bits)
            exponent = torch.ceil(torch.log2(overflow.clamp_min(1.0)))
            return step * torch.exp2(exponent), exponent


def _gamma(source: Neuron | None) -> Tensor:
    if source is None:
        return torch.ones((), dtype=torch.float64)
    return source.gamma.detach().double()


class _Deployed(nn.Module):
    """Shared by `Conv2d` and `Linear`: the effective weight.

    Members: `source`, the neuron whose gamma is absorbed (None: the input, or nothing is
    absorbed); `bits`, None for float weights; `tie`, for a path without a step of its own.
    """

    weight: Tensor
    step: nn.Parameter
    bits: int | None
    tie: Tie | None

    def deploy(
        self,
        *,
        source: Neuron | None,
        absorb: bool,
        bits: int | None,
        tie: Tie | None = None,
        per_tensor: bool = False,
    ) -> None:
        self._source = (source,)  # in a tuple: registered where it fires, once
        self.absorb = absorb and source is not None
        self.bits = bits
        self.tie = tie
        if bits is not None and tie is None:
            self.step = nn.Parameter(initial_step(self.weight, bits, per_tensor=per_tensor))

    @property
    def source(self) -> Neuron | None:
        return self._source[0]

    def positive_step(self) -> Tensor:
        return self.step.abs().clamp_min(_TINY)

    def current_step(self) -> tuple[Tensor, Tensor]:
        """The step in force and its exponent."""
        assert self.bits is not None
        if self.tie is None:
            return self.positive_step(), torch.zeros(())
        return self.tie.step(self.weight, self.source, self.bits)

    def channel_scale(self, norms: Sequence[nn.Module]) -> Tensor:
        """s_c in float64: the real value of one accumulator step, per output channel."""
        step = self.positive_step().detach().double().flatten()
        factor = gain(norms, self.weight.shape[0]).abs()
        return (_gamma(self.source).to(step.device) * step * factor.to(step.device)).clamp_min(
            _TINY
        )

    def effective_weight(self) -> Tensor:
        weight: Tensor = self.weight
        if self.bits is not None:
            step, _ = self.current_step()
            if self.tie is None:
                per_step = weight.numel() / step.numel()
                rate = (per_step * numeric.weight_limit(self.bits)) ** -0.5
                step = (step - step * rate).detach() + step * rate  # LSQ's gradient scale
            weight = fake_quantize(weight, step, self.bits)
        if self.absorb:
            assert self.source is not None
            weight = weight * self.source.gamma.detach()  # the neuron adds its gradient
        return weight


class Conv2d(_Deployed, nn.Conv2d):
    """A convolution over burst levels, in deployed form."""

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.effective_weight(), self.bias)


class Linear(_Deployed, nn.Linear):
    """A linear layer over burst levels, in deployed form."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.effective_weight(), self.bias)


def stand_in(module: nn.Conv2d | nn.Linear) -> Conv2d | Linear:
    """The deployed twin of a torch layer, sharing its parameters."""
    kind: type[Conv2d] | type[Linear] = Conv2d if isinstance(module, nn.Conv2d) else Linear
    twin = kind.__new__(kind)
    twin.__dict__.update(module.__dict__)
    return twin
