"""Modules as users write them, drawn from a seed, and the answer that is right for each.

A module of `random_modules`, or a small one of snnTorch or SpikingJelly, gets one peculiarity: a
subclass of a layer, a hook, a forward that knows its mode, a second output. What must come of it is
known by construction: the network of a `reference` of plain layers, the spikes that the framework
itself computes, or a refusal or a note with its text.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import snntorch
import torch
import torch.nn.functional as F
from random_modules import RandomModule, draw
from spikingjelly.activation_based import layer, neuron
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune, weight_norm

from lbq_hw.train.data import InputSpec
from lbq_hw.train.layers import TimeMean
from lbq_hw.train.neurons import LBQ


@dataclass(kw_only=True)
class Draw:
    """A module and its answer: `reference` where there is a network, else `refused`, violations, or
    `disagrees`; `note` is a warning beside the network. `prepare` refuses it with `untrained`."""

    kind: str
    model: nn.Module
    spec: InputSpec
    timesteps: int = 1
    reference: nn.Module | None = None
    refused: tuple[str, ...] = ()
    note: str = ""
    disagrees: bool = False
    untrained: tuple[str, ...] = ()


# Layers that users make of torch's


class Named(nn.Conv2d):
    pass


class Calls(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Standardized(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight = weight / (1 + weight.flatten(1).norm(dim=1).reshape(-1, 1, 1, 1))
        options = (self.stride, self.padding, self.dilation, self.groups)
        return F.conv2d(x, weight, self.bias, *options)


class Halved(nn.Conv2d):
    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super()._conv_forward(x, weight / 2, bias)


class Masked(nn.Linear):
    def __init__(self, *sizes: int, bias: bool = True) -> None:
        super().__init__(*sizes, bias=bias)
        self.register_buffer("mask", (torch.rand(self.weight.shape) < 0.5).float())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.mask, self.bias)


class Doubles(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Clamps(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.clamp(0, 1))


class Decides(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.sum() > 0 else x.new_zeros(len(x), self.out_features)


class NamedNorm(nn.BatchNorm2d):
    pass


class Shifts(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


class Negates(nn.Flatten):
    def forward(self, x: Tensor) -> Tensor:
        return -super().forward(x)


class Inverts(LBQ):
    def forward(self, current: Tensor) -> Tensor:
        return super().forward(-current)


class Sums(TimeMean):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.timesteps


def _with(kind: type[nn.Module], old: nn.Module) -> nn.Module:
    """A layer of another class with all that the old one has."""
    new = kind.__new__(kind)
    new.__dict__.update(vars(old))
    return new


# Forwards that users write


class ScalesInTraining(RandomModule):
    def forward(self, x: Tensor) -> Tensor:
        logits = super().forward(x)
        return 2 * logits if self.training else logits


class TwoInTraining(RandomModule):
    def forward(self, x: Tensor):
        logits = super().forward(x)
        return (logits, logits) if self.training else logits


class SkipsInTraining(RandomModule):
    def forward(self, x: Tensor) -> Tensor:
        whole = self.program
        if self.training:
            self.program = whole[:-1]
        logits = super().forward(x)
        self.program = whole
        return logits


class Drops(RandomModule):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.dropout(x, 0.5, self.training))


class Pair(RandomModule):
    def forward(self, x: Tensor):
        logits = super().forward(x)
        return logits, logits


class Listed(RandomModule):
    def forward(self, x: Tensor):
        return [super().forward(x)]


class ByName(RandomModule):
    def forward(self, x: Tensor):
        return {"logits": super().forward(x)}


class Louder(RandomModule):
    def __call__(self, x: Tensor) -> Tensor:
        return 1 + super().__call__(x)


def doubles(_module: nn.Module, _args: tuple[Tensor], output: Tensor) -> Tensor:
    return 2 * output


def watches(_module: nn.Module, _args: tuple[Tensor], _output: Tensor) -> None:
    pass


def shifts(_module: nn.Module, args: tuple[Tensor]) -> Tensor:
    return args[0] + 1


ONE_FORWARD = "write one forward for both, with layers that know their mode (nn.Dropout)"
MODES = "its forward differs between training and evaluation: "
HOOKED = (
    "{place}: has a forward {kind} ({name}), and hooks are no part of a network; remove it, or "
    "make what it computes a layer"
)
COMPUTED = (
    "{path}: {name} computes its weights, which no layer that is trained here does; train "
    "nn.{kind}; once it is trained, export takes the model without prepare"
)


class _Own:
    """A module of this project's layers with a peculiarity."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model, self.spec, _ = draw(seed)
        self.seed = seed
        self.reference: nn.Module = copy.deepcopy(self.model)

    def draw(self) -> Draw:
        while True:
            kind = self.random.choice(OWN)
            made = kind(self)
            if made is not None:
                made.kind = kind.__name__
                if self.random.random() < 0.5:
                    made.model.train()  # the mode in which it is given must not matter
                return made

    def _path(self, kind: type[nn.Module]) -> str | None:
        paths = [path for path, module in self.model.named_modules() if type(module) is kind]
        return self.random.choice(paths) if paths else None

    def _replace(self, old: type[nn.Module], new: type[nn.Module]) -> str | None:
        path = self._path(old)
        if path is not None:
            setattr(self.model, path, _with(new, self.model.get_submodule(path)))
        return path

    def _right(self, *, untrained: str = "", note: str = "") -> Draw:
        return Draw(
            kind="",
            model=self.model,
            spec=self.spec,
            reference=self.reference,
            note=note,
            untrained=(untrained,) if untrained else (),
        )

    def _refused(self, text: str) -> Draw:
        return Draw(kind="", model=self.model, spec=self.spec, refused=(text,), untrained=(text,))

    # What is right

    def nothing(self) -> Draw:
        return self._right()

    def subclass(self) -> Draw:
        self._replace(nn.Conv2d, self.random.choice((Named, Calls)))
        return self._right()

    def named_norm(self) -> Draw | None:
        return self._right() if self._replace(nn.BatchNorm2d, NamedNorm) else None

    def standardized(self) -> Draw:
        path = self._replace(nn.Conv2d, Standardized)
        assert path is not None
        weight = self.reference.get_submodule(path).weight.data
        weight -= weight.mean((1, 2, 3), keepdim=True)
        weight /= 1 + weight.flatten(1).norm(dim=1).reshape(-1, 1, 1, 1)
        return self._computed(path, "Standardized", "Conv2d")

    def halved(self) -> Draw:
        path = self._replace(nn.Conv2d, Halved)
        assert path is not None
        self.reference.get_submodule(path).weight.data /= 2
        return self._computed(path, "Halved", "Conv2d")

    def masked(self) -> Draw:
        path = self._replace(nn.Linear, Masked)
        assert path is not None
        linear = self.model.get_submodule(path)
        mask = (torch.rand(linear.weight.shape) < 0.5).float()
        linear.register_buffer("mask", mask)
        self.reference.get_submodule(path).weight.data *= mask
        return self._computed(path, "Masked", "Linear")

    def parametrized(self) -> Draw:
        path = self._path(nn.Conv2d)
        assert path is not None
        conv = self.model.get_submodule(path)
        parametrizations.weight_norm(conv)
        conv.parametrizations.weight.original0.data *= 0.5  # its lengths
        self.reference.get_submodule(path).weight.data = conv.weight.detach().clone()
        return self._computed(path, "ParametrizedConv2d", "Conv2d")

    def _computed(self, path: str, name: str, kind: str) -> Draw:
        return self._right(untrained=COMPUTED.format(path=path, name=name, kind=kind))

    def dropping(self) -> Draw:
        self.model.__class__ = Drops
        return self._right(
            untrained="dropout (dropout): the function dropout stays in the mode it was traced in, "
            "training or not; use the layer of torch.nn, such as nn.Dropout"
        )

    # What is right, with a note

    def _mode(self, kind: type[nn.Module], what: str) -> Draw:
        self.model.__class__ = kind
        text = f"{kind.__name__}: {MODES}{what}; "
        return self._right(
            untrained=text + ONE_FORWARD,
            note=f"{text}the network does what the model does in evaluation",
        )

    def scaling(self) -> Draw:
        return self._mode(ScalesInTraining, "it calls mul in training alone")

    def two_in_training(self) -> Draw:
        return self._mode(TwoInTraining, "it returns something else in training than in evaluation")

    def skipping(self) -> Draw:
        last = self.model.program[-1][1]
        return self._mode(SkipsInTraining, f"it calls {last} in evaluation alone")

    # What is refused

    def other_forward(self) -> Draw | None:
        choices = (
            *((nn.Conv2d, Doubles), (nn.Conv2d, Clamps), (nn.Linear, Decides)),
            *((nn.BatchNorm2d, Shifts), (nn.Flatten, Negates)),
        )
        old, new = self.random.choice(choices)
        path = self._replace(old, new)
        if path is None:
            return None
        text = f"{path}: {new.__name__} is a {old.__name__} with a forward of its own"
        if old in (nn.Conv2d, nn.Linear):
            what = "convolution" if old is nn.Conv2d else "product with its weights"
            text = f"{path}: {new.__name__} is a {old.__name__} whose forward is not one {what}"
        mend = f"use nn.{old.__name__}, and make what else it computes a layer"
        return self._refused(f"{text}; {mend}")

    def other_neuron(self) -> Draw:
        old, new = self.random.choice(((LBQ, Inverts), (TimeMean, Sums)))
        path, name = self._replace(old, new), old.__name__
        return self._refused(
            f"{path}: {new.__name__} is a {name} with a forward of its own; use {name}, and make "
            "what else it computes a layer"
        )

    def replaced_forward(self) -> Draw:
        path = self.random.choice(("", self._path(nn.Conv2d), self._path(nn.Linear)))
        assert path is not None
        module = self.model.get_submodule(path)
        own = module.forward
        module.forward = lambda x: 2 * own(x)  # type: ignore[method-assign]
        return self._refused(
            f"{path or 'RandomModule'}: its forward was replaced, and is not the forward of "
            "its class; put it into a class"
        )

    def hooked(self) -> Draw:
        path = self.random.choice(("", self._path(nn.Conv2d), self._path(LBQ)))
        assert path is not None
        module = self.model.get_submodule(path)
        hook = self.random.choice((doubles, watches, shifts))
        if hook is shifts:
            module.register_forward_pre_hook(hook)
        else:
            module.register_forward_hook(hook)
        kind = "pre-hook" if hook is shifts else "hook"
        return self._refused(
            HOOKED.format(place=path or "RandomModule", kind=kind, name=hook.__name__)
        )

    def old_style(self) -> Draw:
        path = self._path(nn.Linear)
        assert path is not None
        linear = self.model.get_submodule(path)
        if self.random.random() < 0.5:
            prune.l1_unstructured(linear, "weight", 0.5)
            name = "L1Unstructured"
            mend = "call torch.nn.utils.prune.remove, which leaves the pruned weights"
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                weight_norm(linear)
            name = "WeightNorm"
            mend = "call torch.nn.utils.remove_weight_norm, which leaves the weights that it gives"
        return self._refused(
            f"{path}: has a forward pre-hook ({name}), and hooks are no part of a network; {mend}"
        )

    def several_outputs(self) -> Draw:
        kind, what = self.random.choice(((Pair, "tuple"), (Listed, "list"), (ByName, "dict")))
        self.model.__class__ = kind
        return self._refused(
            f"output: the model returns a {what}, not one tensor; return the logits alone, or join "
            "several outputs with torch.cat(outputs, 1)"
        )

    def louder(self) -> Draw:
        self.model.__class__ = Louder
        return Draw(kind="", model=self.model, spec=self.spec, disagrees=True)


OWN: tuple[Callable[[_Own], Draw | None], ...] = (
    *(_Own.nothing, _Own.subclass, _Own.named_norm, _Own.standardized, _Own.halved, _Own.masked),
    *(_Own.parametrized, _Own.dropping, _Own.scaling, _Own.two_in_training, _Own.skipping),
    *(_Own.other_forward, _Own.other_neuron, _Own.replaced_forward, _Own.hooked, _Own.old_style),
    *(_Own.several_outputs, _Own.louder),
)


def own(seed: int) -> Draw:
    """A module of this project's layers."""
    return _Own(seed).draw()


def own_of(name: str) -> Draw:
    """One with a peculiarity of that name."""
    kind = next(kind for kind in OWN if kind.__name__ == name)
    return next(made for seed in range(100) if (made := kind(_Own(seed))) is not None)


# Modules of other frameworks


class NamedLeaky(snntorch.Leaky):
    pass


class SpikesAndMembrane(nn.Sequential):
    def forward(self, x: Tensor):
        spikes, membrane = super().forward(x)
        return spikes, membrane


class Membrane(nn.Sequential):
    def forward(self, x: Tensor):
        return super().forward(x)[1]


class TwoHeads(nn.Sequential):
    def forward(self, x: Tensor):
        *body, first, second = self
        for part in body:
            x = part(x)
        return first(x), second(x)


class NoisyInTraining(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + torch.rand_like(x) if self.training else x)


FOREIGN_HEADS = "return one tensor, the spikes or the current of the last layer"


class _Foreign:
    """A network of snnTorch or SpikingJelly whose numbers are all sums of powers of two, so that
    floats and integers are exact, with a peculiarity."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.timesteps = self.random.randint(2, 4)
        side, bits = 4, self.random.randint(1, 4)
        self.channels = self.random.choice((1, 2))
        self.spec = InputSpec(
            shape=(self.channels, side, side),
            static=self.random.random() < 0.7,
            bits=bits,
            full_scale=2.0 ** (bits - 1),
        )
        self.images = self.random.random() < 0.6  # neurons of images, not of vectors
        self.width = self.random.choice((side, 3))
        self.jelly = self.random.random() < 0.5
        parts = [*self._synapse(), self._neuron(), *self._readout()]
        self.model: nn.Sequential = nn.Sequential(*parts)

    def draw(self) -> Draw:
        while True:
            kind = self.random.choice(FOREIGN)
            made = kind(self)
            if made is not None:
                made.kind = kind.__name__
                return made

    def _dyadic(self, module: nn.Module) -> nn.Module:
        for tensor in module.parameters():
            codes = torch.randint(-7, 8, tensor.shape, generator=self.generator)
            tensor.data = codes / 16
        return module

    def _synapse(self) -> list[nn.Module]:
        if self.images:
            conv = layer.Conv2d if self.jelly else nn.Conv2d
            return [self._dyadic(conv(self.channels, self.width, 3, padding=1))]
        flatten, linear = (layer.Flatten, layer.Linear) if self.jelly else (nn.Flatten, nn.Linear)
        return [flatten(), self._dyadic(linear(self.channels * 16, self.width))]

    def _neuron(self, **options) -> nn.Module:
        threshold = self.random.choice((0.5, 0.75, 1.0))
        if self.jelly:
            return neuron.LIFNode(
                tau=2.0,
                decay_input=False,
                v_threshold=threshold,
                v_reset=self.random.choice((None, 0.0)),
            )
        options = {"threshold": threshold, "beta": self.random.choice((0.5, 1.0))} | options
        reset = self.random.choice(("subtract", "zero"))
        return snntorch.Leaky(init_hidden=True, reset_mechanism=reset, **options)

    def _readout(self) -> list[nn.Module]:
        parts: list[nn.Module] = []
        size = self.width
        if self.images:
            parts = [
                *((layer.AvgPool2d(2), layer.Flatten()) if self.jelly else ()),
                *((nn.AvgPool2d(2), nn.Flatten()) if not self.jelly else ()),
            ]
            size *= 4
        linear = layer.Linear if self.jelly else nn.Linear
        return [*parts, self._dyadic(linear(size, 5)), self._neuron()]

    @property
    def _place(self) -> int:
        """Of the first synapse; its neuron comes next."""
        return 0 if self.images else 1

    def _right(self, reference: nn.Module | None = None, note: str = "") -> Draw:
        return Draw(
            kind="",
            model=self.model,
            spec=self.spec,
            timesteps=self.timesteps,
            reference=reference or self.model,
            note=note,
        )

    def _refused(self, text: str) -> Draw:
        return Draw(
            kind="",
            model=self.model,
            spec=self.spec,
            timesteps=self.timesteps,
            refused=(text,),
        )

    def nothing(self) -> Draw:
        return self._right()

    def multi_step(self) -> Draw | None:
        for part in self.model.modules():
            if hasattr(part, "step_mode"):
                part.step_mode = "m"
        return self._right() if self.jelly else None

    def subclass(self) -> Draw | None:
        if self.jelly or not self.images:
            return None
        self.model[0] = _with(self.random.choice((Named, Calls)), self.model[0])
        return self._right()

    def standardized(self) -> Draw | None:
        """SpikingJelly's own layers with standardized weights."""
        if not self.jelly:
            return None
        reference = copy.deepcopy(self.model)
        place, last = self._place, len(self.model) - 2
        wide = self.model[place]
        if self.images:
            wide = layer.WSConv2d(self.channels, self.width, 3, padding=1)
        self.model[place] = wide
        self.model[last] = layer.WSLinear(self.model[last].in_features, 5)
        for index in (place, last) if self.images else (last,):
            made = self.model[index]
            reference[index].weight.data = made.get_weight().detach()
            reference[index].bias.data = made.bias.detach().clone()
        return self._right(reference)

    def spread(self) -> Draw | None:
        """A convolution with taps apart, or with groups."""
        if not self.images:
            return None
        options = {"dilation": 2, "padding": 2}
        if self.channels == 2 and self.random.random() < 0.5:
            options = {"groups": 2, "padding": 1}
        width = 4 if "groups" in options else self.width
        kind = layer.Conv2d if self.jelly else nn.Conv2d
        self.model[0] = self._dyadic(kind(self.channels, width, 3, **options))
        linear = layer.Linear if self.jelly else nn.Linear
        self.model[-2] = self._dyadic(linear(4 * width, 5))
        return self._right()

    def lines(self) -> Draw:
        """Convolutions along one axis."""
        flatten, conv, pool, linear = (
            (layer.Flatten, layer.Conv1d, layer.AvgPool1d, layer.Linear)
            if self.jelly
            else (nn.Flatten, nn.Conv1d, nn.AvgPool1d, nn.Linear)
        )
        self.spec = replace(self.spec, shape=(self.channels, 1, 16))
        width = self.random.choice((2, 4))
        options = {"padding": "same", "dilation": self.random.choice((1, 2))}
        options |= {"groups": self.random.choice((1, self.channels))}
        self.model = nn.Sequential(
            *(flatten(2), self._dyadic(conv(self.channels, width, 3, **options)), self._neuron()),
            *(pool(2), self._dyadic(conv(width, 4, 2, stride=2)), self._neuron()),
            *(flatten(), self._dyadic(linear(16, 5)), self._neuron()),
        )
        return self._right()

    def thresholds(self) -> Draw | None:
        """One per channel, in a shape that broadcasts so."""
        if self.jelly:
            return None
        values = torch.tensor([0.5, 0.75, 1.0, 1.25])[: self.width]
        if self.images:
            values = values.reshape(self.random.choice(((-1, 1, 1), (1, -1, 1, 1))))
        self.model[self._place + 1] = self._neuron(threshold=values)
        return self._right()

    def along_the_width(self) -> Draw | None:
        """As many thresholds as channels and columns: snnTorch broadcasts them over columns."""
        if self.jelly or not self.images or self.width != 4:
            return None
        self.model[1] = self._neuron(threshold=torch.tensor([0.5, 0.75, 1.0, 1.25]))
        return self._refused(
            "1: its threshold of shape (4,) applies along the last axes of its images, not per "
            "channel; give it the shape (4, 1, 1) for one threshold per channel"
        )

    def with_membrane(self) -> Draw | None:
        if self.jelly:
            return None
        self.model[-1] = self._neuron(output=True)
        if self.random.random() < 0.5:
            self.model.__class__ = SpikesAndMembrane
        return self._right()

    def membrane(self) -> Draw | None:
        if self.jelly:
            return None
        self.model[-1] = self._neuron(output=True)
        self.model.__class__ = Membrane
        last = len(self.model) - 1
        return self._refused(
            f"{last}: its membrane is read; read its spikes, or end the network with a linear"
        )

    def noisy(self) -> Draw:
        self.model.__class__ = NoisyInTraining
        return self._right(
            note=f"NoisyInTraining: {MODES}it calls rand_like, add in training alone; the network "
            "does what the model does in evaluation"
        )

    def other_forward(self) -> Draw | None:
        if not self.images:
            return None
        kind, mine = (layer.Conv2d, "JellyDoubles") if self.jelly else (nn.Conv2d, "Doubles")
        doubles = type(mine, (kind,), {"forward": lambda s, x: 2 * kind.forward(s, x)})
        self.model[0] = _with(doubles, self.model[0])
        return self._refused(
            f"0: {mine} is a Conv2d whose forward is not one convolution; use nn.Conv2d, and make "
            "what else it computes a layer"
        )

    def other_neuron(self) -> Draw | None:
        if self.jelly:
            return None
        place = self._place + 1
        self.model[place] = NamedLeaky(beta=0.5, init_hidden=True)
        return self._refused(
            f"{place}: snnTorch's NamedLeaky has no integer form; use snntorch.Leaky"
        )

    def hooked(self) -> Draw:
        place = self.random.choice((self._place, self._place + 1, len(self.model) - 1))
        self.model[place].register_forward_hook(watches)
        return self._refused(HOOKED.format(place=place, kind="hook", name="watches"))

    def two_heads(self) -> Draw:
        self.model.__class__ = TwoHeads
        last = len(self.model) - 1
        self.model[last] = copy.deepcopy(self.model[last - 1])
        return self._refused(
            f"output: the model returns 2 values ({last - 1}, {last}); {FOREIGN_HEADS}"
        )


FOREIGN: tuple[Callable[[_Foreign], Draw | None], ...] = (
    *(_Foreign.nothing, _Foreign.multi_step, _Foreign.subclass, _Foreign.standardized),
    *(_Foreign.thresholds, _Foreign.along_the_width, _Foreign.with_membrane, _Foreign.membrane),
    *(_Foreign.noisy, _Foreign.other_forward, _Foreign.other_neuron, _Foreign.hooked),
    *(_Foreign.spread, _Foreign.lines),
    _Foreign.two_heads,
)


def foreign(seed: int) -> Draw:
    """A module of snnTorch or SpikingJelly."""
    return _Foreign(seed).draw()


def foreign_of(name: str) -> Draw:
    """One with a peculiarity of that name."""
    kind = next(kind for kind in FOREIGN if kind.__name__ == name)
    return next(made for seed in range(100) if (made := kind(_Foreign(seed))) is not None)
