"""The training loop. It reads from top to bottom: data, network, optimizer, epochs.

A run folder holds ``metrics.jsonl`` (see :mod:`train.metrics`) and the checkpoints ``last`` and
``best`` (see :mod:`train.checkpoint`). What is random in an epoch follows from the seed and the
number of the epoch alone, so a run resumed from ``last`` goes on as if it had not stopped: bit for
bit on a CPU, on a GPU up to the order of sums in the kernels that cuDNN chooses.

Under ``torchrun`` each process takes its share of every batch; the first one tests, logs and saves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lbq_hw import datasets
from train import checkpoint
from train.config import Config, differences
from train.data import DeviceLoader, hold_out, mean_levels
from train.data.augment import AugmentConfig, Pipeline
from train.kernels.fuse import fuse
from train.metrics import Metrics, ranges
from train.optim import build_optimizer, follower, learning_rate
from train.progress import Progress
from train.sam import uphill
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
    train, device, split = config.train, world.device, config.data.split
    if train.threads:
        torch.set_num_threads(train.threads)
    if train.batch % (train.accumulate * world.size):
        parts = train.accumulate * world.size
        raise FitError(f"train.batch must be a multiple of {parts} parts, not {train.batch}")

    # Data: all images lie on the device as raw bytes; batches are gathered and augmented there.
    train_set, test_set = _datasets(config, root, world, download=download)
    spec = config.data.spec(train_set.shape, static=not train_set.temporal)

    mean = mean_levels(train_set) if config.augment.fill == "mean" else ()

    def pipeline(augment: AugmentConfig) -> Pipeline | None:
        if augment == AugmentConfig():
            return None
        made = Pipeline(augment, spec, classes=train_set.classes, mean=mean).to(device)
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
    if init and config.data.validation and _has_seen(Path(init), config):
        raise FitError(
            f"train.init = {init!r} has trained on images that data.validation holds out"
        )
    model = checkpoint.build(config, spec, train_set.classes, init=init).to(device)
    if train.fuse:
        fuse(model)
    average = checkpoint.build(config, spec, train_set.classes).to(device) if train.ema else None
    if train.channels_last:
        model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = build_optimizer(model, train)
    done, best, spent, test = 0, -1.0, 0.0, None
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done, best, spent = state["epoch"], state["best"], state["seconds"]
        test = state["accuracy"]
    if average is not None:
        average.load_state_dict(state["ema"] if state else model.state_dict())
    follow = follower(average, model, train.ema)
    runner: nn.Module = DistributedDataParallel(model) if world.size > 1 else model
    if train.compile != "off":
        runner.compile(mode=train.compile)
    torch.backends.cudnn.benchmark = True
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=train.amp == "bf16")

    def gradients(x: Tensor, y: Tensor) -> Tensor:
        """One pass over a batch; loss and hits (in percent), summed over images, unread."""
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
        return seen

    def step(x: Tensor, y: Tensor, *, sharp: bool) -> Tensor:
        """One step of the optimizer; what its (first) pass has seen."""
        seen = gradients(x, y)
        if sharp:
            with uphill(model, train.sam):
                gradients(x, y)
        if train.grad_clip:
            nn.utils.clip_grad_norm_(model.parameters(), train.grad_clip)
        optimizer.step()
        follow()
        return seen

    revision = checkpoint.revision()
    metrics = Metrics(out / "metrics.jsonl", done) if world.first else None
    line: dict[str, Any] = {"epoch": done, f"{split}_accuracy": test, "total_seconds": spent}
    line |= {} if metrics is None else metrics.last
    with Progress(
        epochs=train.epochs, steps=steps, done=done, split=split, shown=world.first
    ) as progress:
        for epoch in range(done + 1, train.epochs + 1):
            began = time.perf_counter()
            generator.manual_seed(train.seed * 1_000_003 + epoch)
            torch.manual_seed(train.seed * 1_000_003 + epoch)
            sharp = epoch > train.epochs - train.sam_epochs
            loader.augment = mild if epoch > train.epochs - train.refine_epochs else strong
            model.train()
            seen = torch.zeros(2, dtype=torch.float64, device=device)
            count, rate = 0, 0.0
            for index, (x, y) in enumerate(loader):
                rate = learning_rate(train, (epoch - 1) * steps + index, steps)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                seen += step(x, y, sharp=sharp)
                count += len(y)
                # Reading a value waits for the device: seldom, and only where someone looks.
                look = progress.live and index % train.log_every == 0
                progress.advance((seen / count).tolist() if look else None)
            loss, accuracy = (world.total(seen) / (count * world.size)).tolist()
            if not math.isfinite(loss):
                raise FitError(f"the loss became {loss} in epoch {epoch}: lower train.lr")
            final, test, more = epoch == train.epochs, None, {}
            if world.first and (final or epoch % train.eval_every == 0):
                # The last test is the one that is reported: in float32, whatever was trained in.
                test = evaluate(average or model, tests, None if final else autocast)
                if final and average is not None:
                    more = {"last_weights_accuracy": evaluate(model, tests)}
            now = time.perf_counter()
            seconds, spent = now - began, spent + now - began
            stop = world.agree(final or now + seconds > deadline)  # the next would take as long
            if metrics is not None:
                line = {
                    "epoch": epoch,
                    "loss": loss,
                    "train_accuracy": accuracy,
                    f"{split}_accuracy": test,
                    **more,
                    "lr": rate,
                    "seconds": seconds,
                    "total_seconds": spent,
                    **ranges(average or model),
                }
                metrics.write(line)
                progress.report(line)
                common = {
                    "epoch": epoch,
                    "accuracy": test,
                    "split": split,
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
    """The percentage of images classified right; without a context strictly in float32, and as the
    network is written: what was compiled for training is not compiled again for this.
    """
    model.eval()
    hits = torch.zeros((), dtype=torch.int64, device=loader.labels.device)
    with contextlib.ExitStack() as stack:
        if context is None:
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        else:
            stack.enter_context(context)
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()
    return 100 * hits.item() / len(loader.labels)


def _holds_run(out: Path) -> bool:
    """Whether a run, or what an interrupted one has left, lies in the folder."""
    files = (out / name for name in ("last.json", "best.json", "metrics.jsonl"))
    return any(file.is_file() and file.stat().st_size for file in files)


def _previous(
    config: Config, out: Path, world: World, *, resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """The checkpoint to go on from; a run that lies in the folder is never lost by accident. One
    that was cut off before its first checkpoint is begun again where it is to be resumed.
    """
    saved = world.agree((out / "last.json").is_file())
    if saved and resume:
        state = checkpoint.load(out, "last")
        if changed := differences(Config.from_dict(state["config"]), config):
            raise FitError(f"{out} was trained with {'; '.join(changed)}: it can not be resumed so")
        return state
    held = world.agree(_holds_run(out))
    if held and not (overwrite or resume):
        ways = "--resume, --overwrite" if saved else "--overwrite"
        raise FitError(f"{out} holds a run: add {ways} or another --out")
    if held and world.first:
        checkpoint.remove(out, "last")
        checkpoint.remove(out, "best")
    return None


def _datasets(
    config: Config, root: Path, world: World, *, download: bool
) -> tuple[datasets.Dataset, datasets.Dataset]:
    """Images to train and to test on, these of the test split or held out of the training split;
    only the first process downloads, and the others wait for it.
    """
    name, frames = config.data.name, {}
    if datasets.info(name).temporal:
        frames = {"timesteps": config.neuron.timesteps, "size": config.data.size}
    if not world.first:
        world.agree(True)
    fetch = download and world.first
    whole = datasets.load(name, root, split="train", download=fetch, **frames)
    if config.data.validation:
        loaded = hold_out(whole, config.data.validation)
    else:
        loaded = whole, datasets.load(name, root, split="test", **frames)
    if world.first:
        world.agree(True)
    return loaded


def _has_seen(init: Path, config: Config) -> bool:
    """Whether a run has trained on images that this one holds out."""
    data = Config.from_dict(checkpoint.index(init, "last")["config"]).data
    return data.name == config.data.name and data.validation < config.data.validation


def _synced(runner: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[Any]:
    """Gradients travel between processes after the last micro-batch only."""
    if isinstance(runner, DistributedDataParallel) and not last:
        return runner.no_sync()
    return contextlib.nullcontext()
