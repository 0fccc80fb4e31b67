"""Configurations: TOML files, checked against frozen dataclasses.

An unknown key is an error that names the nearest known key; ``--set section.key=value`` goes
through the same check. :mod:`train.settings.files` reads what a file may have besides the keys: a
base and variants.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import nn

from lbq_hw import datasets
from lbq_hw.datasets import Reading
from lbq_hw.datasets.reading import Background, Layout
from lbq_hw.train import models, neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.data.augment import AugmentConfig
from lbq_hw.train.settings import files
from lbq_hw.train.settings.recipe import Recipe
from lbq_hw.train.settings.schema import (
    ConfigError,
    build,
    check_fixed,
    flat,
    merge,
    parse,
    plain,
    require,
)

# Keys that do not change the results of a run: a resumed run may change them.
INCIDENTAL = {"name", "description", "train.device", "train.log_every"}
INCIDENTAL |= {"train.save_every", "train.shard_mib"}


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The dataset and how its raw bytes become the network's input (see ``data.InputSpec``)."""

    name: str  # a dataset, or npz or images for your own data
    bits: int = 8  # bit planes of the input, after the shift
    shift: int = 0  # raw >> shift, saturated to bits
    full_scale: float = 0.0  # the value that becomes 1.0; 0 stands for 2**bits - 1
    mean: tuple[float, ...] = ()  # per channel; empty keeps black pixels and padding at 0
    std: tuple[float, ...] = ()  # per channel, together with mean
    size: int | None = None  # side of a recording's frame, or of a resized picture
    channels: int | None = None  # channels of your own pictures: 3 (RGB, the default) or 1 (gray)
    layout: Layout | None = None  # axes of your own arrays, if ambiguous: nchw or nhwc
    background: Background | None = None  # colour behind transparent pixels: black or white
    validation: int = 0  # training images to hold out and test on, instead of the test split

    def __post_init__(self) -> None:
        if self.name == "images":
            channels = 3 if self.channels is None else self.channels
            object.__setattr__(self, "channels", channels)
            require(channels in (1, 3), "data.channels", "1 or 3", channels)
            side = self.size
            want = "the side to which pictures are resized, such as 32"
            require(side is not None and side >= 1, "data.size", want, side)
        else:
            want = f"left out with data.name = {self.name!r}"
            require(self.channels is None, "data.channels", want, self.channels)
            require(self.background is None, "data.background", want, self.background)
        want = f"left out with data.name = {self.name!r}"
        require(self.layout is None or self.name == "npz", "data.layout", want, self.layout)

    def options(self, timesteps: int) -> dict[str, Any]:
        """The options of `lbq_hw.datasets.load`, for a network of T timesteps."""
        if self.name == "images":
            shape = (self.channels, self.size, self.size)
            return {"shape": shape, "reading": self.reading}
        if datasets.is_own(self.name):
            return {"timesteps": timesteps, "reading": self.reading}
        if datasets.info(self.name).temporal:
            return {"timesteps": timesteps, "size": self.size}
        return {}

    @property
    def reading(self) -> Reading:
        """How to read the user's own data."""
        return Reading(layout=self.layout, background=self.background)

    @property
    def default_root(self) -> Path | None:
        """The default folder of the dataset's files; None for the digits, which have no files."""
        return None if self.name == "digits" else Path("data") / self.name

    @property
    def split(self) -> Literal["test", "validation"]:
        """The images on which the network is tested while it is trained."""
        return "validation" if self.validation else "test"

    def spec(self, shape: Sequence[int], *, static: bool) -> InputSpec:
        """The input of a network that takes frames of this shape, ``(C, H, W)``."""
        ok = not static or self.size is None or self.name == "images"
        require(ok, "data.size", "left out for still images", self.size)
        return InputSpec(
            shape=(shape[0], shape[1], shape[2]),
            static=static,
            bits=self.bits,
            shift=self.shift,
            full_scale=self.full_scale,
            mean=self.mean,
            std=self.std,
        )


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model of ``train.models``; an option left out takes the model's own default."""

    name: str  # digits, mnist, nmnist, vgg, resnet, resnet18, resnet19, resnet20 or resnet34
    channels: tuple[int, ...] | None = None  # channels of each convolution (digits, mnist, nmnist)
    widths: tuple[int, ...] | None = None  # channels of each stage (ResNets)
    blocks: tuple[int, ...] | None = None  # blocks of each stage (resnet)
    width: int | None = None  # channels of the first layers (vgg)
    head: int | None = None  # width of the hidden linear layer (resnet19)
    stem_stride: int | None = None  # stride of the first convolution (resnet, resnet19, resnet20)
    residual: bool | None = None  # whether there is a shortcut (digits)
    bias: bool | None = None  # whether layers have norms and biases (nmnist)

    def __post_init__(self) -> None:
        factory = _choose("model.name", self.name, models.MODELS)
        _resolve(self, "model.name", self.name, _defaults(factory))

    def options(self) -> dict[str, Any]:
        return _options(self, {"name"})


@dataclass(frozen=True, kw_only=True)
class NeuronConfig:
    """A neuron of ``train.neurons``; an option left out takes the default of its kind."""

    kind: str = "lbq"  # lbq, burst, binary, ternary, i-lif, mlf, lm-ht, relu, quant-relu
    timesteps: int = 2  # T; recordings are cut into T frames
    capacity: int = 5  # N, the largest burst level
    surrogate: Literal["relsg", "box"] | None = None  # relsg or box (lbq, burst)
    gamma0: float | None = None  # initial step gamma
    eta0: float | None = None  # initial eta; the tail strength lambda is sigmoid(eta) (lbq, burst)
    beta: float | None = None  # decay
    alpha: float | None = None  # reset factor
    eps: float | None = None  # smallest step
    learn_gamma: bool | None = None  # whether the step is learned (lbq, ternary, quant-relu)
    scale_step: bool | None = None  # whether the step's gradient is scaled as in LSQ
    learn_lambda: bool | None = None  # whether the tail strength is learned (lbq, burst)
    learn_beta: bool | None = None  # whether the decay is learned
    learn_alpha: bool | None = None  # whether the reset factor is learned
    sharpness: float | None = None  # sharpness of the arctan surrogate (binary)
    low: float | None = None  # lower end of the surrogate's plateau, in steps
    high: float | None = None  # upper end of the plateau; default: N, or 1.5 for ternary

    def __post_init__(self) -> None:
        defaults = _defaults(neurons.Neuron, _choose("neuron.kind", self.kind, neurons.KINDS))
        taken = {name: defaults[name] for name in neurons.options(self.kind)}
        _resolve(self, "neuron.kind", self.kind, taken)

    def build(self) -> nn.Module:
        options = _options(self, {"kind", "timesteps", "capacity"})
        return neurons.build(self.kind, timesteps=self.timesteps, capacity=self.capacity, **options)


# For a (key, value): other keys that have no effect or are impossible with it, each with the only
# value that it may then have.
FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("neuron.kind", "binary"): {"neuron.capacity": 1},
    ("neuron.kind", "ternary"): {"neuron.capacity": 1},
    ("neuron.kind", "burst"): {"neuron.scale_step": False},
    ("neuron.surrogate", "box"): {"neuron.eta0": 0.0, "neuron.learn_lambda": True},
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole run; ``to_dict`` and ``from_dict`` are inverse and JSON-safe."""

    name: str = ""  # default: the name of the file
    description: str = ""  # one line for --list
    data: DataConfig
    model: ModelConfig
    neuron: NeuronConfig = field(default_factory=NeuronConfig)
    train: Recipe
    augment: AugmentConfig = field(default_factory=AugmentConfig)

    def __post_init__(self) -> None:
        train, neuron, held = self.train, self.neuron, self.data.validation
        require(held >= 0, "data.validation", "at least 0", held)
        if self.augment == self.augment.mild():
            want = "0 where augment has no autoaugment, cutout, mixup or cutmix"
            require(not train.refine_epochs, "train.refine_epochs", want, train.refine_epochs)
        if train.activity and neuron.kind == "relu":
            want = "0 with neuron.kind = 'relu', which has no levels"
            require(False, "train.activity", want, train.activity)
        require(neuron.timesteps >= 1, "neuron.timesteps", "at least 1", neuron.timesteps)
        require(neuron.capacity >= 1, "neuron.capacity", "at least 1", neuron.capacity)
        check_fixed(flat(dataclasses.asdict(self)), FIXED)

    def to_dict(self) -> dict[str, Any]:
        return plain(dataclasses.asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        return build(cls, values)


def load(name: str, overrides: Sequence[str] = ()) -> Config:
    """The shipped configuration of this name, or the file at this path, with ``key=value``
    overrides.
    """
    source = files.find(name)
    values = files.read(source)
    values["name"] = source.name
    return override(values, overrides)


def override(values: dict[str, Any], overrides: Sequence[str]) -> Config:
    """A configuration from its dictionary, with ``key=value`` overrides."""
    for text in overrides:
        merge(values, parse(text))
    return Config.from_dict(values)


def shipped() -> dict[str, str]:
    """The shipped configurations and their one-line descriptions."""
    return {name: load(name).description for name in files.shipped()}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys in which two runs differ, as ``key = old, not new``; incidental ones left out."""
    before, after = flat(old), flat(new)
    return [
        f"{key} = {before.get(key)!r}, not {after.get(key)!r}"
        for key in (*before, *(key for key in after if key not in before))
        if before.get(key) != after.get(key) and key not in INCIDENTAL
    ]


def _resolve(section: Any, key: str, choice: str, options: Mapping[str, Any]) -> None:
    """Check that the choice takes the given options, and fill in the defaults of the others, so
    that the configuration in a checkpoint is complete.
    """
    for entry in dataclasses.fields(section):
        given = getattr(section, entry.name)
        if entry.name in options and given is None:
            object.__setattr__(section, entry.name, options[entry.name])
        elif entry.name not in options and entry.default is None and given is not None:
            path = f"{key.split('.')[0]}.{entry.name}"
            raise ConfigError(f"{path} is not an option of {key} = {choice!r}")


def _defaults(*callables: Callable[..., Any]) -> dict[str, Any]:
    """The keyword defaults of several callables, later ones first."""
    found: dict[str, Any] = {}
    for each in callables:
        parameters = inspect.signature(each).parameters.values()
        found |= {p.name: p.default for p in parameters if p.default is not p.empty}
    return found


def _choose(key: str, choice: str, table: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if choice in table:
        return table[choice]
    near = difflib.get_close_matches(choice, table, n=1, cutoff=0)[0]
    names = ", ".join(table)
    raise ConfigError(f"{key} must be one of {names}, not {choice!r} (nearest: {near})")


def _options(section: Any, fixed: set[str]) -> dict[str, Any]:
    given = {entry.name: getattr(section, entry.name) for entry in dataclasses.fields(section)}
    return {k: v for k, v in given.items() if k not in fixed and v is not None}
