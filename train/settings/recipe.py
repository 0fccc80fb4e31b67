"""The recipe of a run: everything about training that is not the network or its images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lbq_hw.train.settings.schema import build, check_fixed, flat, require

_BITS = (2, 3, 4, 6, 8)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained: the section ``[train]`` of a configuration, and what `fit` takes.

    ``batch`` is the global batch: it is divided by processes and by ``accumulate``. A loader of
    your own makes its batches itself; ``batch`` and ``eval_batch`` then have no effect.
    """

    epochs: int  # passes over the training images
    batch: int = 64  # images per step, of all processes together
    accumulate: int = 1  # micro-batches per step, each with its own norm statistics
    optimizer: Literal["sgd", "adamw"] = "sgd"  # sgd or adamw
    lr: float = 0.025  # the largest learning rate
    momentum: float = 0.9  # momentum of sgd
    nesterov: bool = True  # whether sgd uses Nesterov momentum
    adam_betas: tuple[float, float] = (0.9, 0.999)  # betas of adamw
    schedule: Literal["cosine", "constant"] = "cosine"  # learning rate schedule: cosine or constant
    warmup_epochs: float = 0.0  # epochs in which the learning rate rises linearly from 0
    refine_epochs: int = 0  # epochs at the end with mild augmentation (AugmentConfig.mild)
    sam_epochs: int = 0  # epochs at the end with sharpness-aware steps (SAM), two passes each
    sam: float = 0.1  # radius of these steps, as a norm over all weights
    weight_decay: float = 5e-4  # weight decay, except of neurons' scalars and quantizers' steps
    decay_norms: bool = True  # whether weight decay acts on norms and biases, too
    activity: float = 0.0  # weight of the activity (mean level per accumulation) in the loss
    activity_layers: tuple[str, ...] = ()  # modules whose layers count for it; empty: all
    activity_start: int = 0  # epochs before the weight of the activity rises from 0
    activity_ramp: int = 0  # epochs in which this weight rises linearly
    label_smoothing: float = 0.0  # share of a label that is spread over all classes
    grad_clip: float = 0.0  # largest gradient norm; 0 is off
    ema: float = 0.0  # decay per step of averaged weights, which are then tested; 0 is off
    absorb: bool = True  # neurons send levels, and weights absorb gamma, as in the deployed network
    weight_bits: int = 0  # quantization-aware training at 8, 6, 4, 3, 2 bits; 0 is float
    layer_bits: dict[str, int] = field(default_factory=dict)  # other bits by layer, as {"fc" = 8}
    init: str = ""  # source of the initial weights: a run, an .lbq file or a name of the zoo
    seed: int = 0  # seed of weights, order and augmentation
    eval_every: int = 1  # epochs between tests; the last epoch is always tested
    save_every: int = 1  # epochs between writes of `last`; it is also written when a run stops
    eval_batch: int = 500  # batch size of tests
    amp: Literal["off", "bf16"] = "off"  # off, or bf16: half precision
    channels_last: bool = False  # memory format of tensors, which may be faster on GPUs
    compile: Literal["off", "default", "reduce-overhead"] = "off"  # off, or torch.compile's mode
    fuse: bool = False  # norm, sum and neuron in one kernel, if it covers them; best with compile
    device: str = "auto"  # auto is cuda if there is a GPU
    threads: int = 0  # CPU threads, which affect the last bits of sums; 0 is torch's default
    log_every: int = 50  # steps between updates of the progress bar
    shard_mib: int = 0  # largest part of a checkpoint in MiB; 0 is one file

    def __post_init__(self) -> None:
        ones = ("epochs", "batch", "accumulate", "eval_every", "save_every", "eval_batch")
        for key in (*ones, "log_every"):
            require(getattr(self, key) >= 1, f"train.{key}", "at least 1", getattr(self, key))
        lengths = ("warmup_epochs", "refine_epochs", "sam_epochs", "activity_start")
        counts = ("activity", "weight_decay", "grad_clip", "shard_mib", "threads")
        for key in (*lengths, "activity_ramp", *counts):
            require(getattr(self, key) >= 0, f"train.{key}", "at least 0", getattr(self, key))
        for key in ("label_smoothing", "ema", "momentum"):
            ok = 0 <= getattr(self, key) < 1
            require(ok, f"train.{key}", "in [0, 1)", getattr(self, key))
        for key in ("lr", "sam"):
            require(getattr(self, key) > 0, f"train.{key}", "positive", getattr(self, key))
        self._check_bits()
        ok = self.batch % self.accumulate == 0
        require(ok, "train.batch", "a multiple of train.accumulate", self.batch)
        for key in lengths:
            ok = getattr(self, key) <= self.epochs
            require(ok, f"train.{key}", "at most train.epochs", getattr(self, key))
        if not self.sam_epochs:
            ok = self.sam == Recipe.sam
            require(ok, "train.sam", f"{Recipe.sam} where train.sam_epochs is 0", self.sam)
        if not self.activity:
            for key in ("activity_start", "activity_ramp"):
                length = getattr(self, key)
                require(not length, f"train.{key}", "0 where train.activity is 0", length)
            parts = self.activity_layers
            require(not parts, "train.activity_layers", "[] where train.activity is 0", parts)
        check_fixed(flat({"train": dataclasses.asdict(self)}), FIXED)

    def _check_bits(self) -> None:
        bits = self.weight_bits
        require(bits in (0, *_BITS), "train.weight_bits", "0, 2, 3, 4, 6 or 8", bits)
        if not bits:
            want = "{} where train.weight_bits is 0"
            require(not self.layer_bits, "train.layer_bits", want, self.layer_bits)
        for layer, own in self.layer_bits.items():
            require(own in _BITS, f"train.layer_bits.{layer}", "2, 3, 4, 6 or 8", own)

    @property
    def bits(self) -> dict[str, int] | None:
        """Weight bits per pattern of layers, as `prepare` takes them; None for float weights."""
        return {"*": self.weight_bits, **self.layer_bits} if self.weight_bits else None

    @classmethod
    def of(cls, values: Recipe | Mapping[str, Any]) -> Recipe:
        """A recipe, unchanged, or made from a dictionary of its fields."""
        return values if isinstance(values, Recipe) else build(cls, dict(values))


# For a (key, value): other keys that have no effect or are impossible with it, each with the only
# value that it may then have.
FIXED: dict[tuple[str, str], dict[str, Any]] = {
    ("train.optimizer", "sgd"): {"train.adam_betas": Recipe.adam_betas},
    ("train.optimizer", "adamw"): {
        "train.momentum": Recipe.momentum,
        "train.nesterov": Recipe.nesterov,
    },
    # With CUDA graphs, the next replay would overwrite the gradients of an earlier micro-batch.
    ("train.compile", "reduce-overhead"): {"train.accumulate": 1},
}
