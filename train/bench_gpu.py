"""How long a training step of ResNet-20 takes on the GPU, and how near the neurons come to a copy.

``python -m train.bench_gpu [--json FILE] [--quick]`` times, in one run:

* a step (augmentation, forward, backward, optimizer) of the network with ReLU, the ANN, and with
  LBQ neurons at several T, each over the ANN's; set up as :mod:`train.fit` does for the
  configuration ``cifar10-resnet20-t2-fast``, with random images in place of CIFAR-10; norms and
  sums fused with the neurons (``train.fuse``) and, for comparison, not;
* the same network with SpikingJelly's I-LIF neurons, where that package is installed;
* the neuron's two kernels, whose floor is memory, against a copy of the same tensor.

Times are read off the device's clock after a warm-up, each the median of several rounds.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, fx, nn

from lbq_hw.datasets import Dataset
from train import checkpoint, config, kernels_jit, models, neurons
from train.augment import Pipeline
from train.config import Config
from train.data import DeviceLoader, InputSpec
from train.fuse import fuse
from train.optim import build_optimizer

CONFIG = "cifar10-resnet20-t2-fast"
TARGET_RATIOS = {1: 1.1, 2: 1.9, 4: 3.7}  # of a step to the ANN's, by T
TARGET_FRACTION = 0.7  # of a copy's bandwidth
WIDEST = (128, 32, 32)  # the neurons of an image in the first stage, where most time is spent


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is measured: rounds of so many calls each, after a warm-up that compiles."""

    timesteps: tuple[int, ...] = (1, 2, 4)
    images: int = 50_000
    warmup: int = 30
    rounds: int = 9
    calls: int = 30
    captured: int = 10  # kernels in a CUDA graph


QUICK = Effort(timesteps=(2,), images=5_000, warmup=10, rounds=3, calls=10)


class Training:
    """A network in training as :mod:`train.fit` sets it up; a call is one step of the optimizer."""

    def __init__(
        self,
        chosen: Config,
        model: nn.Module,
        batches: Iterator[tuple[Tensor, Tensor]],
        device: torch.device,
    ) -> None:
        self.config, self.batches, self.device = chosen, batches, device
        self.model = model.to(device)
        if chosen.train.fuse and isinstance(model, fx.GraphModule):
            fuse(model)
        if chosen.train.channels_last:
            self.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.optimizer = build_optimizer(self.model, chosen.train)
        if chosen.train.compile != "off":
            self.model.compile(mode=chosen.train.compile)
        self.model.train()

    def __call__(self) -> Tensor:
        """The loss, unread: nothing waits for the device."""
        train = self.config.train
        images, targets = next(self.batches)
        self.optimizer.zero_grad()
        if train.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=train.amp == "bf16"):
            logits = self.model(images)
        loss = F.cross_entropy(logits.float(), targets, label_smoothing=train.label_smoothing)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def random_batches(
    chosen: Config, spec: InputSpec, classes: int, images: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """Augmented batches of random images and labels, without end."""
    rng = np.random.default_rng(0)
    dataset = Dataset(
        name="random",
        images=rng.integers(0, 256, (images, *spec.shape), dtype=np.uint8),
        labels=rng.integers(0, classes, images),
        classes=classes,
    )
    augment = Pipeline(chosen.augment, spec, classes=classes).to(device)
    if chosen.train.compile != "off":
        augment.compile()
    loader = DeviceLoader(
        dataset,
        spec,
        batch=chosen.train.batch,
        device=device,
        augment=augment,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator(device).manual_seed(0),
    )
    return itertools.chain.from_iterable(itertools.repeat(loader))


class SpikingJelly(nn.Module):
    """SpikingJelly's I-LIF neuron, of the kind nearest to LBQ: integer levels, a fixed step.

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


def time_calls(call: Callable[[], object], effort: Effort) -> list[float]:
    """Milliseconds a call of each round."""
    for _ in range(effort.warmup):
        call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(effort.rounds + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(effort.calls):
            call()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / effort.calls for a, b in itertools.pairwise(marks)]


def captured(call: Callable[[], object], times: int) -> Callable[[], object]:
    """So many calls as one CUDA graph: what the host does for a launch is not timed."""
    call()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    return graph.replay


def measure_steps(effort: Effort, device: torch.device) -> list[dict[str, Any]]:
    """One row a network: the ANN, LBQ by T, SpikingJelly; without a time where it did not run."""
    base = config.load(CONFIG)
    spec, classes = base.data.spec((3, 32, 32), static=True), 10
    batches = random_batches(base, spec, classes, effort.images, device)
    torch.backends.cudnn.benchmark = True
    rows: list[dict[str, Any]] = []

    def add(name: str, training: Training | None, **more: Any) -> None:
        times = [] if training is None else time_calls(training, effort)
        ms = statistics.median(times) if times else None
        ratio = None if ms is None else ms / (rows[0]["ms"] if rows else ms)
        rows.append({"name": name, "ms": ms, "rounds_ms": times, "ratio": ratio, **more})

    lbq = itertools.product(("lbq",), effort.timesteps, ("true", "false"))
    for kind, timesteps, fused in (("relu", 1, "false"), *lbq):
        changes = [f"neuron.kind={kind}", f"neuron.timesteps={timesteps}", f"train.fuse={fused}"]
        chosen = config.load(CONFIG, changes)
        network = checkpoint.build(chosen, spec, classes)
        name, target = "ANN (ReLU)", None
        if kind == "lbq":
            name = f"LBQ, T = {timesteps}"
            if chosen.train.fuse:
                target = TARGET_RATIOS.get(timesteps)
            else:
                name += ", neuron alone"
        add(name, Training(chosen, network, batches, device), target=target)
    training, note = _spikingjelly(base, spec, classes, batches, device)
    add(f"SpikingJelly I-LIF, T = {base.neuron.timesteps}", training, target=None, note=note)
    return rows


def _spikingjelly(
    base: Config,
    spec: InputSpec,
    classes: int,
    batches: Iterator[tuple[Tensor, Tensor]],
    device: torch.device,
) -> tuple[Training | None, str]:
    """The same network with its neurons, compiled if they can be, and what became of that."""
    if importlib.util.find_spec("spikingjelly") is None:
        return None, "not installed"
    neuron, reason = base.neuron, ""
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
                input_shape=spec.shape,
                classes=classes,
                **base.model.options(),
            )
            chosen = config.load(CONFIG, [f"train.compile={mode}"])
            training = Training(chosen, network, batches, device)
            training()
        except Exception as error:  # foreign code: whatever stops it is its result
            reason = reason or f"does not run: {str(error).splitlines()[0]}"
        else:
            return training, "not compiled" if mode == "off" else "compiled"
    return None, reason


def measure_neuron(timesteps: int, effort: Effort, device: torch.device) -> dict[str, Any]:
    """Both kernels on the widest current of the network at batch 256, and a copy of it.

    Bytes are those that must move: a copy and the forward pass read and write one tensor; the
    backward pass reads the current and a gradient and writes a gradient.
    """
    chosen = config.load(CONFIG)
    shape = (timesteps * chosen.train.batch, *WIDEST)
    torch.manual_seed(0)
    current, grad = (
        torch.randn(shape, device=device)
        .to(torch.bfloat16)
        .contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    copy = torch.empty_like(current)
    size = current.numel() * current.element_size()
    copy_ms = statistics.median(time_calls(lambda: copy.copy_(current), effort))
    passes: dict[str, Any] = {"copy": {"ms": copy_ms, "gb_per_s": 2 * size / copy_ms / 1e6}}
    for name, tensors, call in neuron_passes(timesteps, current, grad):
        times = time_calls(captured(call, effort.captured), effort)
        ms = statistics.median(times) / effort.captured
        passes[name] = {"ms": ms, "gb_per_s": tensors * size / ms / 1e6}
    for name in ("forward", "backward"):
        passes[name]["of_copy"] = passes[name]["gb_per_s"] / passes["copy"]["gb_per_s"]
    return {"timesteps": timesteps, "shape": shape, "bytes": size, **passes}


def neuron_passes(
    timesteps: int, current: Tensor, grad: Tensor
) -> list[tuple[str, int, Callable[[], object]]]:
    """Name, tensors moved and call of the passes of an LBQ neuron that sends levels."""
    neuron = neurons.LBQ(timesteps=timesteps, capacity=5).to(current.device)
    assert neuron.lam is not None
    scalars = neuron.gamma.detach(), neuron.lam.detach()
    quantizer = neuron.quantizer
    options = (
        *(timesteps, neuron.beta, neuron.alpha, True, quantizer.capacity, quantizer.signed),
        *(quantizer.surrogate, quantizer.low, quantizer.high, quantizer.sharpness),
    )
    operators = torch.ops.lbq
    return [
        ("forward", 2, lambda: operators.recurrence(current, *scalars, *options)),
        ("backward", 3, lambda: operators.recurrence_backward(grad, current, *scalars, *options)),
    ]


def show(report: dict[str, Any]) -> Table:
    """Everything in one table."""
    table = Table(title=f"ResNet-20, batch {report['batch']}, {report['device']}")
    for column in ("", "ms", "of", "target"):
        table.add_column(column, justify="right" if column else "left")
    for row in report["steps"]:
        if row["ms"] is None:
            table.add_row(f"step, {row['name']}", row["note"])
            continue
        low, high = min(row["rounds_ms"]), max(row["rounds_ms"])
        target = f"<= {row['target']:g}" if row["target"] else ""
        note = f" ({row['note']})" if "note" in row else ""
        spread = f"{row['ms']:.2f} ({low:.2f} to {high:.2f})"
        table.add_row(f"step, {row['name']}{note}", spread, f"{row['ratio']:.2f} ANN", target)
    for row in report["neurons"]:
        table.add_section()
        timesteps, copy = row["timesteps"], row["copy"]
        name = f"copy, T = {timesteps}, {row['bytes'] / 1e6:.0f} MB"
        table.add_row(name, f"{copy['ms']:.3f}", f"{copy['gb_per_s']:.0f} GB/s")
        for name in ("forward", "backward"):
            share = f"{100 * row[name]['of_copy']:.0f} % of copy"
            target = f">= {100 * TARGET_FRACTION:.0f} %"
            table.add_row(
                f"neuron {name}, T = {timesteps}", f"{row[name]['ms']:.3f}", share, target
            )
    return table


def missed(report: dict[str, Any]) -> list[str]:
    """What is slower than its target."""
    names = [
        f"the step of {row['name']}"
        for row in report["steps"]
        if row["target"] and row["ratio"] > row["target"]
    ]
    for row in report["neurons"]:
        names += [
            f"neuron {name} at T = {row['timesteps']}"
            for name in ("forward", "backward")
            if row[name]["of_copy"] < TARGET_FRACTION
        ]
    return names


def measure(effort: Effort, device: torch.device) -> dict[str, Any]:
    """All figures; the networks first, which brings the device's clock up."""
    return {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "triton": kernels_jit.triton.__version__,
        "config": CONFIG,
        "batch": config.load(CONFIG).train.batch,
        "effort": asdict(effort),
        "target_fraction": TARGET_FRACTION,
        "steps": measure_steps(effort, device),
        "neurons": [measure_neuron(t, effort, device) for t in effort.timesteps],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m train.bench_gpu",
        description="Time training steps and neuron kernels on the GPU; exits 1 if one is over"
        " its target.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--quick", action="store_true", help="T = 2 alone, with few repetitions")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available() or kernels_jit.triton is None:
        lack = "Triton" if torch.cuda.is_available() else "a CUDA GPU, and torch sees none"
        print(f"train.bench_gpu: the benchmark needs {lack}", file=sys.stderr)
        return 2
    console = Console()
    with console.status("compiling and timing networks, a few minutes"):
        report = measure(QUICK if options.quick else Effort(), torch.device("cuda"))
    console.print(show(report))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    slow = missed(report)
    if slow:
        console.print(f"over target: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
