"""The training loop. It reads from top to bottom: data, network, optimizer, epochs.

A run folder holds ``metrics.jsonl`` (one line an epoch) and the checkpoints ``last`` and ``best``
(see :mod:`train.checkpoint`). What is random in an epoch follows from the seed and the number of
the epoch alone, so a run resumed from ``last`` goes on exactly as if it had not stopped.

Under ``torchrun`` each process takes its share of every batch; the first one tests, logs and saves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import get_ema_multi_avg_fn

from lbq_hw import datasets
from train import checkpoint, models
from train.augment import AugmentConfig, Pipeline
from train.config import Config, TrainConfig, differences
from train.data import DeviceLoader
from train.fuse import fuse
from train.neurons import Neuron
from train.progress import Progress
from train.world import World


class FitError(ValueError):
    """A run that can not start or go on; the message is one sentence for the user."""


def fit(
    config: Config,
    out: Path,
    *,
    data: Path | None = None,
    download: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    max_seconds: float = math.inf,
) -> dict[str, Any]:
    """Train until the last epoch, or until another one would not fit into ``max_seconds``.

    ``data`` is the folder of the dataset's files, by default ``data/NAME``. Returns the last line
    of the metrics with ``finished`` and ``best_accuracy`` added.
    """
    with World.join(config.train.device) as world:
        return _fit(
            config,
            out,
            world,
            root=data or Path("data") / config.data.name,
            download=download,
            state=_previous(config, out, world, resume=resume, overwrite=overwrite),
            deadline=time.perf_counter() + max_seconds,
        )


def _fit(
    config: Config,
    out: Path,
    world: World,
    *,
    root: Path,
    download: bool,
    state: dict[str, Any] | None,
    deadline: float,
) -> dict[str, Any]:
    train, device = config.train, world.device
    if train.threads:
        torch.set_num_threads(train.threads)
    if train.batch % (train.accumulate * world.size):
        parts = train.accumulate * world.size
        raise FitError(f"train.batch must be a multiple of {parts} parts, not {train.batch}")

    # Data: both splits lie on the device as raw bytes; batches are gathered and augmented there.
    train_set, test_set = _datasets(config, root, world, download=download)
    spec = config.data.spec(train_set.shape, static=not train_set.temporal)

    def pipeline(augment: AugmentConfig) -> Pipeline | None:
        if augment == AugmentConfig():
            return None
        made = Pipeline(augment, spec, classes=train_set.classes).to(device)
        if train.compile != "off":
            made.compile()
        return made

    strong, mild = pipeline(config.augment), pipeline(config.augment.mild())
    generator = torch.Generator(device)
    loader = DeviceLoader(
        train_set,
        spec,
        batch=train.batch,
        device=device,
        augment=strong,
        shuffle=True,
        drop_last=True,
        generator=generator,
        rank=world.rank,
        world=world.size,
    )
    tests = DeviceLoader(test_set, spec, batch=train.eval_batch, device=device)
    steps, batch_axis = len(loader), 0 if spec.static else 1

    # Network: in the form that is deployed. `runner` is what the loop calls to train it.
    torch.manual_seed(train.seed)
    init = train.init if state is None else ""
    model = checkpoint.build(config, spec, train_set.classes, init=init).to(device)
    if train.fuse:
        fuse(model)
    average = checkpoint.build(config, spec, train_set.classes).to(device) if train.ema else None
    if train.channels_last:
        model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = _optimizer(model, train)
    done, best, spent = 0, -1.0, 0.0
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done, best, spent = state["epoch"], state["best"], state["seconds"]
    if average is not None:
        average.load_state_dict(state["ema"] if state else model.state_dict())
    follow = _follower(average, model, train.ema)
    runner: nn.Module = DistributedDataParallel(model) if world.size > 1 else model
    if train.compile != "off":
        runner.compile(mode=train.compile)
    torch.backends.cudnn.benchmark = True
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=train.amp == "bf16")

    def step(x: Tensor, y: Tensor) -> Tensor:
        """One step of the optimizer; loss and hits (in percent), summed over images, unread."""
        seen = torch.zeros(2, dtype=torch.float64, device=device)
        optimizer.zero_grad()
        parts = zip(x.chunk(train.accumulate, batch_axis), y.chunk(train.accumulate), strict=True)
        for index, (images, targets) in enumerate(parts, 1):
            if train.channels_last and spec.static:
                images = images.contiguous(memory_format=torch.channels_last)
            with _synced(runner, last=index == train.accumulate):
                with autocast:
                    logits = runner(images)
                logits = logits.float()
                loss = F.cross_entropy(logits, targets, label_smoothing=train.label_smoothing)
                (loss / train.accumulate).backward()
            labels = targets if targets.ndim == 1 else targets.argmax(1)
            hits = (logits.argmax(1) == labels).sum()
            seen += torch.stack((loss.detach() * len(labels), 100 * hits))
        if train.grad_clip:
            nn.utils.clip_grad_norm_(model.parameters(), train.grad_clip)
        optimizer.step()
        follow()
        return seen

    revision = checkpoint.revision()
    metrics = Metrics(out / "metrics.jsonl", done) if world.first else None
    line: dict[str, Any] = {"epoch": done} if metrics is None else metrics.last
    with Progress(epochs=train.epochs, steps=steps, done=done, shown=world.first) as progress:
        for epoch in range(done + 1, train.epochs + 1):
            began = time.perf_counter()
            generator.manual_seed(train.seed * 1_000_003 + epoch)
            torch.manual_seed(train.seed * 1_000_003 + epoch)
            loader.augment = mild if epoch > train.epochs - train.refine_epochs else strong
            model.train()
            seen = torch.zeros(2, dtype=torch.float64, device=device)
            count, rate = 0, 0.0
            for index, (x, y) in enumerate(loader):
                rate = learning_rate(train, (epoch - 1) * steps + index, steps)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                seen += step(x, y)
                count += len(y)
                # Reading a value waits for the device: seldom, and only where someone looks.
                look = progress.live and index % train.log_every == 0
                progress.advance((seen / count).tolist() if look else None)
            loss, accuracy = (world.total(seen) / (count * world.size)).tolist()
            if not math.isfinite(loss):
                raise FitError(f"the loss became {loss} in epoch {epoch}: lower train.lr")
            final, test = epoch == train.epochs, None
            if world.first and (final or epoch % train.eval_every == 0):
                # The last test is the one that is reported: in float32, whatever was trained in.
                test = evaluate(average or model, tests, None if final else autocast)
            now = time.perf_counter()
            seconds, spent = now - began, spent + now - began
            stop = world.agree(final or now + seconds > deadline)  # the next would take as long
            if metrics is not None:
                line = {
                    "epoch": epoch,
                    "loss": loss,
                    "train_accuracy": accuracy,
                    "test_accuracy": test,
                    "lr": rate,
                    "seconds": seconds,
                    "total_seconds": spent,
                    **ranges(model),
                }
                metrics.write(line)
                progress.report(line)
                common = {
                    "epoch": epoch,
                    "accuracy": test,
                    "revision": revision,
                    "config": config.to_dict(),
                    "spec": dataclasses.asdict(spec),
                    "classes": train_set.classes,
                }
                if test is not None and test > best:
                    best = test
                    weights = {"model": (average or model).state_dict(), "ema": None}
                    checkpoint.save(out, "best", common | weights, shard_mib=train.shard_mib)
                if stop or epoch % train.save_every == 0:
                    everything = {
                        "model": model.state_dict(),
                        "ema": None if average is None else average.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "best": best,
                        "seconds": spent,
                    }
                    checkpoint.save(out, "last", common | everything, shard_mib=train.shard_mib)
            if stop:
                break
    return line | {"finished": line["epoch"] == train.epochs, "best_accuracy": best}


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DeviceLoader, context: torch.autocast | None = None
) -> float:
    """The percentage of images classified right; strictly in float32 without a context."""
    model.eval()
    hits = torch.zeros((), dtype=torch.int64, device=loader.labels.device)
    exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with exact if context is None else context:
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()
    return 100 * hits.item() / len(loader.labels)


def learning_rate(train: TrainConfig, step: int, steps: int) -> float:
    """The rate of a step, counted from 0, in a run of ``steps`` steps an epoch."""
    warmup, total = train.warmup_epochs * steps, train.epochs * steps
    if step < warmup:
        return train.lr * min(1.0, (step + 1) / warmup)
    if train.schedule == "constant":
        return train.lr
    return train.lr * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2


def ranges(model: nn.Module) -> dict[str, float]:
    """The smallest and the largest step and tail strength of the network's neurons."""
    neurons = [module for module in model.modules() if isinstance(module, Neuron)]
    learned = {"gamma": [n.gamma for n in neurons], "lambda": [n.lam for n in neurons]}
    found: dict[str, float] = {}
    for name, tensors in learned.items():
        values = [tensor.item() for tensor in tensors if tensor is not None]
        if values:
            found |= {f"{name}_min": min(values), f"{name}_max": max(values)}
    return found


class Metrics:
    """``metrics.jsonl``, one JSON object an epoch; lines after epoch ``done``, written by a piece
    that was cut off before its next checkpoint, are dropped.
    """

    def __init__(self, path: Path, done: int) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if done and path.is_file() else ""
        lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        kept = [line for line in lines if line["epoch"] <= done]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        self.last: dict[str, Any] = kept[-1] if kept else {"epoch": done}

    def write(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _previous(
    config: Config, out: Path, world: World, *, resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """The checkpoint to go on from; a run that lies in the folder is never lost by accident."""
    if not world.agree((out / "last.json").is_file()):
        return None
    if resume:
        state = checkpoint.load(out, "last")
        if changed := differences(Config.from_dict(state["config"]), config):
            raise FitError(f"{out} was trained with {'; '.join(changed)}: it can not be resumed so")
        return state
    if not overwrite:
        raise FitError(f"{out} holds a run: add --resume, --overwrite or another --out")
    if world.first:
        checkpoint.remove(out, "last")
        checkpoint.remove(out, "best")
    return None


def _datasets(
    config: Config, root: Path, world: World, *, download: bool
) -> tuple[datasets.Dataset, datasets.Dataset]:
    """Both splits; only the first process downloads, and the others wait for it."""
    name, frames = config.data.name, {}
    if datasets.info(name).temporal:
        frames = {"timesteps": config.neuron.timesteps, "size": config.data.size}
    if not world.first:
        world.agree(True)
    loaded = (
        datasets.load(name, root, split="train", download=download and world.first, **frames),
        datasets.load(name, root, split="test", **frames),
    )
    if world.first:
        world.agree(True)
    return loaded


def _optimizer(model: nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    """Weight decay acts on weights, and on norms and biases where ``decay_norms``; never on the
    neurons' scalars nor on the weight quantizers' steps, which are scales, not weights.
    """
    scales = set(models.neuron_parameters(model))
    groups: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
    for name, parameter in model.named_parameters():
        scale = name in scales or name.endswith(".step")
        decays = not scale and (train.decay_norms or parameter.ndim > 1)
        groups[0 if decays else 1].append(parameter)
    options = [
        {"params": group, "weight_decay": decay}
        for group, decay in zip(groups, (train.weight_decay, 0.0), strict=True)
        if group
    ]
    fused = options[0]["params"][0].is_cuda or None
    if train.optimizer == "adamw":
        return torch.optim.AdamW(options, lr=train.lr, betas=train.adam_betas, fused=fused)
    nesterov = train.nesterov and train.momentum > 0
    return torch.optim.SGD(
        options, lr=train.lr, momentum=train.momentum, nesterov=nesterov, fused=fused
    )


def _synced(runner: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[Any]:
    """Gradients travel between processes after the last micro-batch only."""
    if isinstance(runner, DistributedDataParallel) and not last:
        return runner.no_sync()
    return contextlib.nullcontext()


def _follower(average: nn.Module | None, model: nn.Module, decay: float) -> Callable[[], None]:
    """What moves averaged weights and statistics towards the present ones; counters are copied."""
    if average is None:
        return lambda: None
    pairs = list(zip(average.state_dict().values(), model.state_dict().values(), strict=True))
    floats = [pair for pair in pairs if pair[0].is_floating_point()]
    counters = [pair for pair in pairs if not pair[0].is_floating_point()]
    update = get_ema_multi_avg_fn(decay)

    def follow() -> None:
        update([old for old, _ in floats], [new for _, new in floats], None)
        for old, new in counters:
            old.copy_(new)

    return follow
