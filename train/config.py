"""Configurations: TOML files, checked against frozen dataclasses; no number hides in the code.

A file may name another as its ``base`` and say only what differs. An unknown key is an error that
names the nearest known one; ``--set section.key=value`` goes through the same check.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import tomllib
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
from lbq_hw.train.schema import ConfigError, build, flat, merge, parse, plain, require

SHIPPED = Path(__file__).parent / "configs"
# Keys that say how a run is carried out, not what it computes: a resumed run may change them.
INCIDENTAL = {"name", "description", "train.device", "train.log_every"}
INCIDENTAL |= {"train.save_every", "train.shard_mib"}


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The dataset and how its raw bytes become the network's input (see ``data.InputSpec``)."""

    name: str  # of a dataset, or npz or images for one's own
    bits: int = 8  # planes of the input after the shift
    shift: int = 0  # raw >> shift, saturated to bits
    full_scale: float = 0.0  # the value that becomes 1.0; 0 stands for 2**bits - 1
    mean: tuple[float, ...] = ()  # per channel; empty keeps black pixels and padding at 0
    std: tuple[float, ...] = ()  # per channel, together with mean
    size: int | None = None  # side of a recording's frame, whose blocks are summed, or of pictures
    channels: int | None = None  # of pictures of one's own: 3 (RGB, the default) or 1 (gray)
    layout: Layout | None = None  # of arrays of one's own whose shape leaves it open: nchw or nhwc
    background: Background | None = None  # behind pictures' transparent pixels: black or white
    validation: int = 0  # training images held out to test on, in place of the test split

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
        """What `lbq_hw.datasets.load` is told beside the name, for a network of T timesteps."""
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
        """What is said of data of the user's own."""
        return Reading(layout=self.layout, background=self.background)

    @property
    def default_root(self) -> Path | None:
        """Where the dataset's files lie unless the user says it; the digits have none."""
        return None if self.name == "digits" else Path("data") / self.name

    @property
    def split(self) -> Literal["test", "validation"]:
        """What the network is tested on while it is trained."""
        return "validation" if self.validation else "test"

    def spec(self, shape: Sequence[int], *, static: bool) -> InputSpec:
        """The input of a network fed with frames of that shape, ``(C, H, W)``."""
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
    channels: tuple[int, ...] | None = None  # per convolution: digits, mnist, nmnist
    widths: tuple[int, ...] | None = None  # per stage: ResNets
    blocks: tuple[int, ...] | None = None  # per stage: resnet
    width: int | None = None  # of the first layers: vgg
    head: int | None = None  # of the hidden linear layer: resnet19
    stem_stride: int | None = None  # of the first convolution: resnet, resnet19, resnet20
    residual: bool | None = None  # whether it has a shortcut: digits

    def __post_init__(self) -> None:
        factory = _choose("model.name", self.name, models.MODELS)
        _resolve(self, "model.name", self.name, _defaults(factory))

    def options(self) -> dict[str, Any]:
        return _options(self, {"name"})


@dataclass(frozen=True, kw_only=True)
class NeuronConfig:
    """A neuron of ``train.neurons``; an option left out takes the default of its kind."""

    kind: str = "lbq"  # lbq, burst, binary, ternary, i-lif, mlf, lm-ht, relu, quant-relu
    timesteps: int = 2  # T; a temporal dataset is cut into as many frames
    capacity: int = 5  # N, the largest burst level
    surrogate: Literal["relsg", "box"] | None = None  # relsg or box: lbq, burst
    gamma0: float | None = None  # first step
    eta0: float | None = None  # first tail strength, lambda = sigmoid(eta): lbq, burst
    beta: float | None = None  # decay
    alpha: float | None = None  # reset factor
    eps: float | None = None  # least step
    learn_gamma: bool | None = None  # whether the step is learned: lbq, ternary, quant-relu
    scale_step: bool | None = None  # whether its gradient is scaled as LSQ scales it: likewise
    learn_lambda: bool | None = None  # whether the tail strength is learned: lbq, burst
    learn_beta: bool | None = None  # whether the decay is learned
    learn_alpha: bool | None = None  # whether the reset factor is learned
    sharpness: float | None = None  # of the arctan: binary
    low: float | None = None  # lower end of the surrogate's plateau, in steps: as learn_gamma
    high: float | None = None  # its upper end: likewise; N where it is left out, ternary 1.5

    def __post_init__(self) -> None:
        defaults = _defaults(neurons.Neuron, _choose("neuron.kind", self.kind, neurons.KINDS))
        taken = {name: defaults[name] for name in neurons.options(self.kind)}
        _resolve(self, "neuron.kind", self.kind, taken)

    def build(self) -> nn.Module:
        options = _options(self, {"kind", "timesteps", "capacity"})
        return neurons.build(self.kind, timesteps=self.timesteps, capacity=self.capacity, **options)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The recipe. Batch is the global one: it is divided by processes and by ``accumulate``."""

    epochs: int  # passes over the training images
    batch: int = 64  # images per step, of all processes together
    accumulate: int = 1  # micro-batches per step, each with its own norm statistics
    optimizer: Literal["sgd", "adamw"] = "sgd"  # sgd or adamw
    lr: float = 0.025  # the largest learning rate
    momentum: float = 0.9  # of sgd
    nesterov: bool = True  # whether the momentum of sgd is Nesterov's
    adam_betas: tuple[float, float] = (0.9, 0.999)  # of adamw
    schedule: Literal["cosine", "constant"] = "cosine"  # of the learning rate: cosine or constant
    warmup_epochs: float = 0.0  # in which the learning rate rises, linear from 0
    refine_epochs: int = 0  # the last so many see mildly augmented images: AugmentConfig.mild
    sam_epochs: int = 0  # the last so many take sharpness-aware steps, of two passes: train.sam
    sam: float = 0.1  # how far uphill their gradients are taken, as a norm over all weights
    weight_decay: float = 5e-4  # on all but the neurons' scalars and the quantizers' steps
    decay_norms: bool = True  # whether weight decay takes norms and biases too
    activity: float = 0.0  # weight in the loss of the mean level per accumulation: train.activity
    activity_layers: tuple[str, ...] = ()  # modules whose layers count, by path; none is all
    activity_start: int = 0  # epochs before that weight rises from 0
    activity_ramp: int = 0  # epochs in which it rises, linear
    label_smoothing: float = 0.0  # share of a label that is spread over all classes
    grad_clip: float = 0.0  # largest gradient norm; 0 is off
    ema: float = 0.0  # decay per step of the averaged weights, which tests use; 0 is off
    absorb: bool = True  # levels travel, gamma in the weights: what is trained is deployed
    weight_bits: int = 0  # quantization-aware training at 8, 6, 4, 3, 2 bits; 0 is float
    init: str = ""  # what to start the weights from: a run, an .lbq file or a name of the zoo
    seed: int = 0  # of weights, order and augmentation
    eval_every: int = 1  # epochs between tests; the last epoch is always tested
    save_every: int = 1  # epochs between writes of `last`; where a run stops it is written too
    eval_batch: int = 500  # images at a time in a test
    amp: Literal["off", "bf16"] = "off"  # off, or bf16: half precision
    channels_last: bool = False  # how tensors lie in memory, which GPUs may like better
    compile: Literal["off", "default", "reduce-overhead"] = "off"  # off, or torch.compile's mode
    fuse: bool = False  # norm, sum and neuron in one kernel where it covers them; best compiled
    device: str = "auto"  # auto is cuda where there is one
    threads: int = 0  # of the CPU, sums depend on it in their last bits; 0 is torch's choice
    log_every: int = 50  # steps between updates of the progress bar
    shard_mib: int = 0  # checkpoint parts of at most so many MiB; 0 is one file


# What a choice leaves without effect, or can not do, must keep the value that is given here.
FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("train.optimizer", "sgd"): {"train.adam_betas": TrainConfig.adam_betas},
    ("train.optimizer", "adamw"): {
        "train.momentum": TrainConfig.momentum,
        "train.nesterov": TrainConfig.nesterov,
    },
    # The gradients of an earlier part would lie in memory that the next replay writes to.
    ("train.compile", "reduce-overhead"): {"train.accumulate": 1},
    ("neuron.kind", "binary"): {"neuron.capacity": 1},
    ("neuron.kind", "ternary"): {"neuron.capacity": 1},
    ("neuron.kind", "burst"): {"neuron.scale_step": False},
    ("neuron.surrogate", "box"): {"neuron.eta0": 0.0, "neuron.learn_lambda": True},
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole run; ``to_dict`` and ``from_dict`` are inverse and JSON-safe."""

    name: str = ""  # the file's, unless given
    description: str = ""  # one line for --list
    data: DataConfig
    model: ModelConfig
    neuron: NeuronConfig = field(default_factory=NeuronConfig)
    train: TrainConfig
    augment: AugmentConfig = field(default_factory=AugmentConfig)

    def __post_init__(self) -> None:
        train, neuron, held = self.train, self.neuron, self.data.validation
        require(held >= 0, "data.validation", "at least 0", held)
        ones = ("epochs", "batch", "accumulate", "eval_every", "save_every", "eval_batch")
        for key in (*ones, "log_every"):
            require(getattr(train, key) >= 1, f"train.{key}", "at least 1", getattr(train, key))
        lengths = ("warmup_epochs", "refine_epochs", "sam_epochs", "activity_start")
        counts = ("activity", "weight_decay", "grad_clip", "shard_mib", "threads")
        for key in (*lengths, "activity_ramp", *counts):
            require(getattr(train, key) >= 0, f"train.{key}", "at least 0", getattr(train, key))
        for key in ("label_smoothing", "ema", "momentum"):
            ok = 0 <= getattr(train, key) < 1
            require(ok, f"train.{key}", "in [0, 1)", getattr(train, key))
        for key in ("lr", "sam"):
            require(getattr(train, key) > 0, f"train.{key}", "positive", getattr(train, key))
        bits = train.weight_bits
        require(bits in (0, 2, 3, 4, 6, 8), "train.weight_bits", "0, 2, 3, 4, 6 or 8", bits)
        ok = train.batch % train.accumulate == 0
        require(ok, "train.batch", "a multiple of train.accumulate", train.batch)
        for key in lengths:
            ok = getattr(train, key) <= train.epochs
            require(ok, f"train.{key}", "at most train.epochs", getattr(train, key))
        if self.augment == self.augment.mild():
            want = "0 where augment has no autoaugment, cutout, mixup or cutmix"
            require(not train.refine_epochs, "train.refine_epochs", want, train.refine_epochs)
        if not train.sam_epochs:
            ok = train.sam == TrainConfig.sam
            require(ok, "train.sam", f"{TrainConfig.sam} where train.sam_epochs is 0", train.sam)
        if not train.activity:
            for key in ("activity_start", "activity_ramp"):
                length = getattr(train, key)
                require(not length, f"train.{key}", "0 where train.activity is 0", length)
            parts = train.activity_layers
            require(not parts, "train.activity_layers", "[] where train.activity is 0", parts)
        elif neuron.kind == "relu":
            want = "0 with neuron.kind = 'relu', which has no levels"
            require(False, "train.activity", want, train.activity)
        require(neuron.timesteps >= 1, "neuron.timesteps", "at least 1", neuron.timesteps)
        require(neuron.capacity >= 1, "neuron.capacity", "at least 1", neuron.capacity)
        values = flat(dataclasses.asdict(self))
        for (key, choice), fixed in FIXED.items():
            for name, value in fixed.items() if values[key] == choice else ():
                want = f"{value!r} with {key} = {choice!r}"
                require(values[name] == value, name, want, values[name])

    def to_dict(self) -> dict[str, Any]:
        return plain(dataclasses.asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        return build(cls, values)


def load(name: str, overrides: Sequence[str] = ()) -> Config:
    """A shipped configuration, or the file at that path, with ``key=value`` overrides."""
    path = _find(name, None)
    values = _read(path, ())
    values["name"] = path.stem
    return override(values, overrides)


def override(values: dict[str, Any], overrides: Sequence[str]) -> Config:
    """A configuration from its dictionary, with ``key=value`` overrides."""
    for text in overrides:
        merge(values, parse(text))
    return Config.from_dict(values)


def shipped() -> dict[str, str]:
    """The shipped configurations and their one-line descriptions."""
    return {path.stem: load(path.stem).description for path in sorted(SHIPPED.glob("*.toml"))}


def differences(old: Config, new: Config) -> list[str]:
    """The keys in which two runs differ, as ``key = old, not new``; incidental ones left out."""
    before, after = flat(old.to_dict()), flat(new.to_dict())
    return [
        f"{key} = {before[key]!r}, not {after[key]!r}"
        for key in before
        if before[key] != after[key] and key not in INCIDENTAL
    ]


def _resolve(section: Any, key: str, choice: str, options: Mapping[str, Any]) -> None:
    """Check that the choice has the options given, and write down the defaults of those left out,
    so that a checkpoint's configuration says everything."""
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


def _find(name: str, parent: Path | None) -> Path:
    for path in (SHIPPED / f"{name}.toml", (parent or Path()) / name):
        if path.is_file():
            return path
    known = sorted(path.stem for path in SHIPPED.glob("*.toml"))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    raise ConfigError(
        f"{name!r} is neither a shipped configuration (nearest: {near[0]}) nor a file; "
        "`python -m train --list` shows what is shipped"
    )


def _read(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    if path in seen:
        raise ConfigError(f"{path} is its own base")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    base = values.pop("base", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise ConfigError(f"base must be a string, not {base!r}")
    below = _read(_find(base, path.parent), (*seen, path))
    merge(below, values)
    return below
