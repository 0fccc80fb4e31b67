"""Steps of quantized layers that meet: paths into one neuron share the scale of each channel.

A path p adds ``unit_p * gain_pc * step_pc * code`` to channel c of a neuron, where `unit` is the
value of one level (a gamma, a pixel's share of full scale, an average pool's 1/n) and `gain` is the
product of the gains of norms on the path. The integer network adds ``s_c * 2**x_p * code``, so

    unit_p * |gain_pc| * step_pc = s_c * 2**x_p        for every path p into the neuron

A layer that feeds several neurons has such an equation in each of them, which ties its step to the
steps of every other layer that feeds these neurons: a `StepGroup` holds all layers that are tied
together. A norm that all paths of a neuron pass through cancels in the quotient of two equations.
The norms that remain must be the same in every neuron where two layers meet, or no pair of steps
would suit all of these neurons (`find` notes a violation).

Each layer learns the step that it requests. Per channel, the group takes the coarsest request, in
the units above: the path that matters most in a channel gets the step that it learned, and a weak
or dead path gets a coarser step there, without any effect on other channels. If one path is larger
than another in the median channel, its exponent is larger by that power of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import Analysis, Levels, Population, Synapse, terms
from lbq_hw.train.quantize import MAX_CHOSEN_EXPONENT, Deployed, gain, initial_step

Gains = Counter[nn.Module]  # norms whose gains are multiplied; a negative count divides

_LEAST_GAIN = 1e-30  # stands for the gain of a dead channel, so that quotients stay finite
_DEAD = 1e-20  # a path is dead in a channel in which one code is worth less than this
_COARSEST = 1e30  # the largest step, which float32 holds; it rounds every weight to 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Binding:
    """A synapse in a group: the value of one of its levels, without gamma, and its gains."""

    synapse: Synapse
    unit: float
    gains: Gains


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """Synapses whose steps depend on each other; `shared`: one scale for all channels."""

    bindings: tuple[Binding, ...]
    shared: bool

    @property
    def alone(self) -> bool:
        """Whether the step of a single synapse depends on no other layer."""
        return len(self.bindings) == 1 and not (self.shared and +self.bindings[0].gains)


def find(found: Analysis, spec: InputSpec) -> list[Bound]:
    """The synapses of a model, in groups; violations go into the analysis."""
    paths = {p.name: _paths(p) for p in found.populations}
    groups, reached = [], set()
    readouts_first = sorted(found.populations, key=lambda p: p.neuron is not None)
    for population in readouts_first:
        if population.name in reached:
            continue
        gains: dict[str, Gains] = {}
        waiting = [population]
        while waiting:
            current = waiting.pop()
            if current.name in reached:
                continue
            reached.add(current.name)
            _bind(found, current, paths[current.name], gains)
            waiting += [p for p in found.populations if not gains.keys().isdisjoint(paths[p.name])]
        origins = {path: s for p in found.populations for path, (s, _) in paths[p.name].items()}
        bindings = tuple(
            Binding(synapse=origins[path], unit=_unit(origins[path].levels, spec), gains=own)
            for path, own in gains.items()
        )
        if bindings:
            groups.append(Bound(bindings=bindings, shared=population.neuron is None))
    return groups


def _paths(population: Population) -> dict[str, tuple[Synapse, list[Gains]]]:
    """The synapses into a population, by their paths, with the norms of each way in."""
    found: dict[str, tuple[Synapse, list[Gains]]] = {}
    for term in terms(population.current):
        if isinstance(term.origin, Synapse):
            _, ways = found.setdefault(term.origin.path, (term.origin, []))
            ways.append(Counter(term.norms))
    return found


def _bind(
    found: Analysis,
    population: Population,
    paths: Mapping[str, tuple[Synapse, list[Gains]]],
    gains: dict[str, Gains],
) -> None:
    """Derive the gains of a population's paths from the path that has them already, or note why no
    gains suit all neurons.
    """
    known = next((path for path in paths if path in gains), None)
    common: Gains = Counter()  # gains of the population besides the gains of its paths
    if known is not None:
        common = _over(paths[known][1][0], gains[known])
    for path, (_, ways) in paths.items():
        for way in ways:
            own = _over(way, common)
            if gains.setdefault(path, own) != own:
                found.refuse(
                    path,
                    f"meets {known!r} in {population.name!r} under other norms than elsewhere, so "
                    "no quantized step suits both"
                    if known not in (None, path)
                    else f"reaches {population.name!r} in two ways under different norms, so no "
                    "quantized step suits both",
                    "normalize each layer's output once, before it is shared",
                )
                return


def _over(numerator: Gains, denominator: Gains) -> Gains:
    quotient = Counter(numerator)
    quotient.subtract(denominator)
    return Counter({norm: count for norm, count in quotient.items() if count})


def _unit(levels: Levels, spec: InputSpec) -> float:
    taps = levels.sum_pool.taps if levels.sum_pool else 1
    if levels.neuron is not None:
        return 1 / taps
    return 1 / (spec.full_scale * (spec.std[0] if spec.std else 1.0) * taps)


class StepGroup:
    """Decides on the steps of layers whose paths meet (see the module's text).

    It has no state: it computes steps from the layers' own steps, gammas and the norms' running
    statistics at each call. Gradients reach only the steps of the layers.
    """

    def __init__(self, bound: Bound, layers: Mapping[str, Deployed]) -> None:
        self._shared = bound.shared
        self._layers = [layers[binding.synapse.path] for binding in bound.bindings]
        self._units = [binding.unit for binding in bound.bindings]
        self._gains = [tuple(binding.gains.items()) for binding in bound.bindings]
        for place, (layer, relative) in enumerate(zip(self._layers, self._relative(), strict=True)):
            layer.group, layer.place = self, place
            if self._shared:
                seen = layer.weight.detach() * _columns(relative / relative.mean(), layer.weight)
                assert layer.bits is not None
                layer.step.data.copy_(initial_step(seen, layer.bits, per_tensor=True))

    def step(self, place: int) -> tuple[Tensor, Tensor]:
        """The step in force of the layer at ``place``, per output channel, and its exponent."""
        relative = self._relative()
        wishes = [
            layer.wanted_step().double().flatten() * (r.mean() if self._shared else r)
            for layer, r in zip(self._layers, relative, strict=True)
        ]
        wanted = torch.stack(wishes)
        alive = torch.stack(
            [(r > _DEAD).any().reshape(1) if self._shared else r > _DEAD for r in relative]
        )
        exponents = _exponents(wanted.detach(), alive)
        scale = (wanted * torch.exp2(-exponents)[:, None]).max(0).values
        step = (scale * torch.exp2(exponents[place]) / relative[place]).clamp_max(_COARSEST)
        weight = self._layers[place].weight
        return _columns(step.to(weight.dtype), weight), exponents[place]

    @torch.no_grad()
    def _relative(self) -> list[Tensor]:
        """Per layer, the value of a code of step 1 in every channel, without the common factors."""
        values = []
        for layer, unit, gains in zip(self._layers, self._units, self._gains, strict=True):
            weight, source = layer.weight, layer.source
            value = torch.full((len(weight),), unit, dtype=torch.float64, device=weight.device)
            if source is not None:
                value = value * source.gamma.double()
            for norm, count in gains:
                value = value * gain([norm], len(weight)).abs().clamp_min(_LEAST_GAIN) ** count
            values.append(value)
        return values


def _columns(vector: Tensor, like: Tensor) -> Tensor:
    return vector.reshape(-1, *[1] * (like.dim() - 1))


def _exponents(wanted: Tensor, alive: Tensor) -> Tensor:
    """Powers of two by which paths are larger than one another, from their requests (paths, C).

    Each is the median over the channels in which the path meets another path and both are alive; a
    path that meets none has 0.
    """
    dead = torch.full_like(wanted, torch.nan)
    sizes = torch.where(alive & (alive.sum(0) > 1), wanted.log2(), dead)
    above = torch.nanmedian(sizes - torch.nanmean(sizes, 0), dim=1).values
    rounded = torch.round(above - torch.nan_to_num(above, nan=torch.inf).amin())
    return torch.nan_to_num(rounded, nan=0.0).clamp(0, MAX_CHOSEN_EXPONENT)
