"""Times a step of one network with different neurons: ReLU (the ANN), LBQ by T, SpikingJelly's."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw.train import checkpoint, models
from lbq_hw.train.data import InputSpec
from lbq_hw.train.settings import config
from lbq_hw.train.settings.config import Config
from tools.bench_gpu.clock import Effort, time_calls
from tools.bench_gpu.training import Training, random_batches

CONFIG = "cifar10-resnet20-t2-fast"
TARGET_RATIOS = {1: 1.1, 2: 1.9, 4: 3.7}  # time of a step relative to the ANN, by T


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The network with one kind of neurons; `fused` with its norms and sums (``train.fuse``)."""

    kind: str
    timesteps: int
    fused: bool

    @property
    def name(self) -> str:
        if self.kind == "relu":
            return "ANN (ReLU)"
        return f"LBQ, T = {self.timesteps}" + ("" if self.fused else ", neuron alone")


ANN = Variant(kind="relu", timesteps=1, fused=False)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The common setting of all networks: the configuration, the input and the batches."""

    base: Config
    spec: InputSpec
    classes: int
    batches: Iterator[tuple[Tensor, Tensor]]
    device: torch.device

    @classmethod
    def of(cls, effort: Effort, device: torch.device) -> Setting:
        """`CONFIG` with random images instead of its dataset."""
        base = config.load(CONFIG)
        spec, classes = base.data.spec((3, 32, 32), static=True), 10
        batches = random_batches(base, spec, classes, effort.images, device)
        torch.backends.cudnn.benchmark = True
        return cls(base=base, spec=spec, classes=classes, batches=batches, device=device)

    def training(self, variant: Variant) -> Training:
        """A network, ready to be trained."""
        fuse = "true" if variant.fused else "false"
        changes = [f"neuron.kind={variant.kind}", f"neuron.timesteps={variant.timesteps}"]
        chosen = config.load(CONFIG, [*changes, f"train.fuse={fuse}"])
        network = checkpoint.build(chosen, self.spec, self.classes)
        return Training(chosen, network, self.batches, self.device)


def measure_steps(effort: Effort, device: torch.device) -> list[dict[str, Any]]:
    """One row per network: the ANN, LBQ by T, SpikingJelly; without a time if it did not run."""
    setting = Setting.of(effort, device)
    rows: list[dict[str, Any]] = []

    def add(name: str, training: Training | None, **more: Any) -> None:
        times = [] if training is None else time_calls(training, effort)
        ms = statistics.median(times) if times else None
        ratio = None if ms is None else ms / (rows[0]["ms"] if rows else ms)
        rows.append({"name": name, "ms": ms, "rounds_ms": times, "ratio": ratio, **more})

    add(ANN.name, setting.training(ANN), target=None)
    for timesteps, fused in itertools.product(effort.timesteps, (True, False)):
        variant = Variant(kind="lbq", timesteps=timesteps, fused=fused)
        target = TARGET_RATIOS.get(timesteps) if fused else None
        add(variant.name, setting.training(variant), target=target)
    training, note = _spikingjelly(setting)
    name = f"SpikingJelly I-LIF, T = {setting.base.neuron.timesteps}"
    add(name, training, target=None, note=note)
    return rows


class SpikingJelly(nn.Module):
    """SpikingJelly's I-LIF neuron, which is the most similar to LBQ: integer levels, a fixed step.

    It chooses its own kernels: Triton's under torch.compile.
    """

    def __init__(self, *, timesteps: int, capacity: int, beta: float) -> None:
        super().__init__()
        package = "spikingjelly.activation_based"
        self.multi_step = importlib.import_module(f"{package}.functional").ilif_multi_step
        surrogate = importlib.import_module(f"{package}.surrogate")
        self.surrogate = surrogate.MultiLevelSpikeCount(capacity)
        self.timesteps, self.tau = timesteps, 1 / (1 - beta)

    def forward(self, current: Tensor) -> Tensor:
        steps = current.unflatten(0, (self.timesteps, -1))
        rest = torch.zeros_like(steps[0], dtype=torch.float32)
        levels, *_ = self.multi_step(steps, rest, self.tau, 1.0, self.surrogate)
        return levels.flatten(0, 1)


def _spikingjelly(setting: Setting) -> tuple[Training | None, str]:
    """The same network with SpikingJelly's neurons, compiled if possible, and a note on this."""
    if importlib.util.find_spec("spikingjelly") is None:
        return None, "not installed"
    base, neuron, reason = setting.base, setting.base.neuron, ""
    assert neuron.beta is not None
    for mode in (base.train.compile, "off"):
        try:
            network = models.build(
                base.model.name,
                neuron=partial(
                    SpikingJelly,
                    timesteps=neuron.timesteps,
                    capacity=neuron.capacity,
                    beta=neuron.beta,
                ),
                timesteps=neuron.timesteps,
                input_shape=setting.spec.shape,
                classes=setting.classes,
                **base.model.options(),
            )
            chosen = config.load(CONFIG, [f"train.compile={mode}"])
            training = Training(chosen, network, setting.batches, setting.device)
            training()
        except Exception as error:  # foreign code: any error is reported as its result
            reason = reason or f"does not run: {str(error).splitlines()[0]}"
        else:
            return training, "not compiled" if mode == "off" else "compiled"
    return None, reason
