"""The training loop. It reads from top to bottom: data, network, epochs; and in an epoch: train,
test, note, save.

What is random in an epoch follows from the seed and the number of the epoch alone, so a run resumed
from its checkpoint ``last`` goes on as if it had not stopped: bit for bit on a CPU, on a GPU up to
the order of sums in the kernels that cuDNN chooses.

Under ``torchrun`` each process takes its share of every batch; the first one tests, logs and saves.
"""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lbq_hw.progress import show_notes
from lbq_hw.train.batches import Batches
from lbq_hw.train.config import Config, TrainConfig
from lbq_hw.train.data import DeviceLoader
from lbq_hw.train.learner import Learner
from lbq_hw.train.metrics import ranges
from lbq_hw.train.optim import activity_weight, learning_rate
from lbq_hw.train.progress import Progress
from lbq_hw.train.run_folder import RunError, RunFolder, check_data, previous
from lbq_hw.train.world import World


def train(
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

    ``data`` is the folder of the dataset's files, by default ``data/NAME``; the digits have none.
    Returns the last line
    of the metrics with ``finished`` and ``best_accuracy`` added.
    """
    with World.join(config.train.device) as world:
        state = previous(config, out, world, resume=resume, overwrite=overwrite)
        deadline = time.perf_counter() + max_seconds
        if config.train.threads:
            torch.set_num_threads(config.train.threads)
        root = data or config.data.default_root
        batches = Batches.load(config, root, world, download=download)
        if state is not None:
            check_data(state, batches.origin.digest, out, root)
        if world.first:
            show_notes(batches.origin.notes)
        loader = batches.of_epoch(1, config.train)
        learner = Learner(config, batches.spec, batches.classes, world, state, loader)
        return _epochs(config, out, world, batches, learner, state, deadline)


def _epochs(
    config: Config,
    out: Path,
    world: World,
    batches: Batches,
    learner: Learner,
    state: dict[str, Any] | None,
    deadline: float,
) -> dict[str, Any]:
    """Every epoch that is left to train; what :func:`train` returns."""
    recipe, split, accuracy = config.train, config.data.split, f"{config.data.split}_accuracy"
    done, best, spent, test = 0, -1.0, 0.0, None
    if state is not None:
        done, best, spent, test = (state[k] for k in ("epoch", "best", "seconds", "accuracy"))
    line = {"epoch": done, accuracy: test, "total_seconds": spent}
    folder = None
    if world.first:
        folder = RunFolder(out, config, batches.spec, batches.classes, batches.origin, done=done)
        line |= folder.last
    steps = len(batches.train)
    with Progress(
        epochs=recipe.epochs, steps=steps, done=done, split=split, shown=world.first
    ) as progress:
        for epoch in range(done + 1, recipe.epochs + 1):
            began, final = time.perf_counter(), epoch == recipe.epochs
            means, rate = _train_epoch(epoch, recipe, world, batches, learner, progress)
            tested: dict[str, float | None] = {accuracy: None}
            if world.first and (final or epoch % recipe.eval_every == 0):
                tested = _test(learner, batches.test, accuracy, final=final)
            now = time.perf_counter()
            seconds, spent = now - began, spent + now - began
            stop = world.agree(final or now + seconds > deadline)  # the next would take as long
            if folder is not None:
                line = {
                    "epoch": epoch,
                    **means,
                    **tested,
                    "lr": rate,
                    "seconds": seconds,
                    "total_seconds": spent,
                    **ranges(learner.tested),
                }
                folder.write(line)
                progress.report(line)
                test = tested[accuracy]
                if test is not None and test > best:
                    best = test
                    folder.save_best(epoch, test, learner.tested)
                if stop or epoch % recipe.save_every == 0:
                    whole = learner.state_dict() | {"best": best, "seconds": spent}
                    folder.save_last(epoch, test, whole)
            if stop:
                break
    return line | {"finished": line["epoch"] == recipe.epochs, "best_accuracy": best}


def _train_epoch(
    epoch: int,
    recipe: TrainConfig,
    world: World,
    batches: Batches,
    learner: Learner,
    progress: Progress,
) -> tuple[dict[str, float], float]:
    """Train on every batch once; the means over it by name, and the learning rate of the last
    step."""
    loader, sharp = batches.of_epoch(epoch, recipe), epoch > recipe.epochs - recipe.sam_epochs
    learner.model.train()
    seen = torch.zeros(3, dtype=torch.float64, device=world.device)
    count, rate, steps = 0, 0.0, len(loader)
    for index, (x, y) in enumerate(loader):
        done = (epoch - 1) * steps + index
        rate, cost = learning_rate(recipe, done, steps), activity_weight(recipe, done, steps)
        seen += learner.step(x, y, rate=rate, sharp=sharp, cost=cost)
        count += len(y)
        # Reading a value waits for the device: seldom, and only where someone looks.
        look = progress.live and index % recipe.log_every == 0
        progress.advance((seen / count).tolist() if look else None)
    loss, hits, activity = (world.total(seen) / (count * world.size)).tolist()
    if not math.isfinite(loss):
        raise RunError(f"the loss became {loss} in epoch {epoch}: lower train.lr")
    means = {"loss": loss, "train_accuracy": hits}
    return means | ({"activity": activity} if recipe.activity else {}), rate


def _test(
    learner: Learner, loader: DeviceLoader, name: str, *, final: bool
) -> dict[str, float | None]:
    """The accuracy, called ``name``. The last one is the one that is reported: it is taken in
    float32, whatever was trained in, and without the average too where there is one.
    """
    context = None if final else learner.autocast
    tested: dict[str, float | None] = {name: evaluate(learner.tested, loader, context)}
    if final and learner.average is not None:
        tested["last_weights_accuracy"] = evaluate(learner.model, loader)
    return tested


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DeviceLoader, context: torch.autocast | None = None
) -> float:
    """The percentage of images classified right.

    Without a context strictly in float32, and as the network is written: what was compiled for
    training is not compiled again for this.
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
