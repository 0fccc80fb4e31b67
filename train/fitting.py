"""The training loop. It reads from top to bottom: batches, network, epochs; and in an epoch: train,
test, note, save.

All random numbers of an epoch depend only on the seed and the number of the epoch. So a run resumed
from its checkpoint ``last`` continues as if it had not stopped: bit for bit on a CPU, and on a GPU
up to the order of sums in the kernels that cuDNN chooses. For this, a loader of your own must draw
its random numbers from torch: from the global generator, or from one in its ``generator``.

Under ``torchrun`` each process takes its share of every batch; the first one tests, logs and saves.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw.commands.progress import show_notes
from lbq_hw.train import start
from lbq_hw.train.callbacks import Callback, Run
from lbq_hw.train.checkpoint import formed
from lbq_hw.train.data import Feed, InputSpec
from lbq_hw.train.learner import Learner
from lbq_hw.train.metrics import ranges
from lbq_hw.train.norms import settle
from lbq_hw.train.optim import activity_weight, learning_rate
from lbq_hw.train.progress import Progress
from lbq_hw.train.quantize import Deployed
from lbq_hw.train.run_folder import Record, RunError, RunFolder, previous
from lbq_hw.train.settings.recipe import Recipe
from lbq_hw.train.settings.schema import plain
from lbq_hw.train.world import World

SETTLING_BATCHES = 16  # batches on which the statistics of norms are measured
_FLOAT = (
    "no neuron: this trains a float ANN; put LBQ() in place of the ReLUs, or convert() it "
    "afterwards"
)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The result of a run.

    Members: `model`, in evaluation mode, in the form that was trained and with the weights that
    were tested; `metrics`, the line of the last epoch; `epoch`, the number of epochs done;
    `finished`, whether these are all; `best_accuracy`, the largest accuracy of all tested epochs,
    so chosen on the images of the test loader, or -1 if no epoch was tested.
    """

    model: nn.Module
    metrics: dict[str, Any]
    epoch: int
    finished: bool
    best_accuracy: float


def fit(
    model: nn.Module,
    spec: InputSpec,
    train_loader: Any,
    test_loader: Any,
    recipe: Recipe | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    max_seconds: float = math.inf,
    callbacks: Sequence[Callback] = (),
    trained_only: bool = False,
    world: World | None = None,
    record: Record | None = None,
) -> Fitted:
    """Train a model until the last epoch of a recipe, or until another epoch would not fit into
    ``max_seconds``.

    ``model`` itself is not changed. `prepare` makes the form that is trained, with the weight bits
    of the recipe. A model from `prepare`, or one without burst neurons (an ANN), is trained as it
    is. ``trained_only`` is as for `prepare`.

    The loaders yield batches of raw integers, or of floats that are normalized already: see `Feed`.
    They need not lie on the device. ``test_loader`` may be None.

    ``out`` is the run's folder, with metrics and checkpoints (:mod:`train.run_folder`). ``resume``
    continues the run in it, and ``overwrite`` replaces it. None writes nothing.
    ``callbacks`` are called after every epoch (:mod:`train.callbacks`). ``world`` is for a caller
    that has joined a process group already, ``record`` for one that knows more facts of the run.
    """
    recipe = Recipe.of(recipe)
    if world is None:
        with World.join(recipe.device) as joined:
            return fit(
                model,
                spec,
                train_loader,
                test_loader,
                recipe,
                out=out,
                resume=resume,
                overwrite=overwrite,
                max_seconds=max_seconds,
                callbacks=callbacks,
                trained_only=trained_only,
                world=joined,
                record=record,
            )
    deadline = time.perf_counter() + max_seconds
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    train = Feed(train_loader, spec, world.device, role="train_loader")
    train.check_shared(world.size)
    test = None
    if test_loader is not None:
        test = Feed(test_loader, spec, world.device, role="test_loader")
    if record is None:
        record = Record(config={"train": plain(dataclasses.asdict(recipe))})
    state, folder = None, None
    if out is not None:
        state = previous(record, Path(out), world, resume=resume, overwrite=overwrite)
        if world.first:
            done = 0 if state is None else state["epoch"]
            folder = RunFolder(Path(out), recipe, spec, record, done=done)
    elif resume or overwrite:
        raise RunError("a run without a folder cannot be resumed or replaced: give fit an out")
    init = recipe.init if state is None else ""
    if world.first and not _has_neurons(model):
        show_notes([_FLOAT])
    network = _network(model, spec, recipe, init=init, trained_only=trained_only)
    if start.is_network(init):
        train.begin(1, _seed(recipe, 1))
        settle(network.to(world.device), (x for x, _ in itertools.islice(train, SETTLING_BATCHES)))
    learner = Learner(network, spec, recipe, world, state)
    run = Run(model=learner.tested, spec=spec, recipe=recipe, out=Path(out) if out else None)
    loop = _Loop(recipe, world, learner, train, test, run, callbacks if world.first else ())
    return loop.run(state, folder, record.split, deadline)


def _network(
    model: nn.Module, spec: InputSpec, recipe: Recipe, *, init: str, trained_only: bool
) -> nn.Module:
    """A copy of a model in the form that is trained."""
    prepared = any(isinstance(module, Deployed) for module in model.modules())
    if _has_neurons(model) and not prepared:
        return formed(copy.deepcopy(model), spec, recipe, init=init, trained_only=trained_only)
    what = "that was prepared already" if prepared else "without burst neurons"
    if init or recipe.weight_bits:
        raise RunError(
            f"train.init and train.weight_bits must be left out for a model {what}, which is "
            "trained as it is"
        )
    return copy.deepcopy(model)


def _has_neurons(model: nn.Module) -> bool:
    return any(hasattr(module, "emit_levels") for module in model.modules())


def _seed(recipe: Recipe, epoch: int) -> int:
    return recipe.seed * 1_000_003 + epoch


@dataclass(frozen=True, kw_only=False)
class _Loop:
    """The epochs of a run."""

    recipe: Recipe
    world: World
    learner: Learner
    train: Feed
    test: Feed | None
    seen: Run
    callbacks: Sequence[Callback]

    def run(
        self,
        state: Mapping[str, Any] | None,
        folder: RunFolder | None,
        split: str,
        deadline: float,
    ) -> Fitted:
        """Every epoch that is left to train."""
        recipe, world, learner, accuracy = (
            self.recipe,
            self.world,
            self.learner,
            f"{split}_accuracy",
        )
        done, best, spent, test = 0, -1.0, 0.0, None
        if state is not None:
            done, best, spent, test = (state[k] for k in ("epoch", "best", "seconds", "accuracy"))
        line = {"epoch": done, accuracy: test, "total_seconds": spent}
        if folder is not None:
            line |= folder.last
        self.seen.epoch = done
        for callback in self.callbacks:
            callback.begin(self.seen)
        with Progress(
            epochs=recipe.epochs, steps=len(self.train), done=done, split=split, shown=world.first
        ) as progress:
            for epoch in range(done + 1, recipe.epochs + 1):
                began, final = time.perf_counter(), epoch == recipe.epochs
                means, rate = self._train_epoch(epoch, progress)
                tested: dict[str, float | None] = {accuracy: None}
                if world.first and (final or epoch % recipe.eval_every == 0):
                    tested = self._test(accuracy, final=final)
                now = time.perf_counter()
                seconds, spent = now - began, spent + now - began
                stop = world.agree(final or now + seconds > deadline)  # the next takes as long
                line = {
                    "epoch": epoch,
                    **means,
                    **tested,
                    "lr": rate,
                    "seconds": seconds,
                    "total_seconds": spent,
                    **ranges(learner.tested),
                }
                self.seen.epoch = epoch
                for callback in self.callbacks:
                    line |= callback.end_epoch(self.seen, line) or {}
                progress.report(line)
                test = tested[accuracy]
                improved, best = test is not None and test > best, max(best, test or -1.0)
                if folder is not None:
                    folder.write(line)
                    if improved and test is not None:
                        folder.save_best(epoch, test, learner.tested)
                    if stop or epoch % recipe.save_every == 0:
                        whole = learner.state_dict() | {"best": best, "seconds": spent}
                        folder.save_last(epoch, test, whole)
                if stop:
                    break
        for callback in self.callbacks:
            callback.end(self.seen)
        return Fitted(
            model=learner.result.eval(),
            metrics=line,
            epoch=line["epoch"],
            finished=line["epoch"] == recipe.epochs,
            best_accuracy=best,
        )

    def _train_epoch(self, epoch: int, progress: Progress) -> tuple[dict[str, float], float]:
        """Train on every batch once; returns means over the epoch by name, and the learning rate of
        the last step.
        """
        recipe, world, learner = self.recipe, self.world, self.learner
        self.train.begin(epoch, _seed(recipe, epoch))
        sharp = epoch > recipe.epochs - recipe.sam_epochs
        learner.model.train()
        seen = torch.zeros(3, dtype=torch.float64, device=world.device)
        count, rate, steps = 0, 0.0, len(self.train)
        for index, (x, y) in enumerate(self.train):
            done = (epoch - 1) * steps + index
            rate, cost = learning_rate(recipe, done, steps), activity_weight(recipe, done, steps)
            seen += learner.step(x, y, rate=rate, sharp=sharp, cost=cost)
            count += len(y)
            # Reading a value waits for the device, so it is rare, and only for a visible bar.
            look = progress.live and index % recipe.log_every == 0
            progress.advance((seen / count).tolist() if look else None)
        loss, hits, activity = (world.total(seen) / (count * world.size)).tolist()
        if not math.isfinite(loss):
            raise RunError(f"the loss became {loss} in epoch {epoch}: lower train.lr")
        means = {"loss": loss, "train_accuracy": hits}
        return means | ({"activity": activity} if recipe.activity else {}), rate

    def _test(self, name: str, *, final: bool) -> dict[str, float | None]:
        """The accuracy, called ``name``. After the last epoch it is always measured in float32,
        since it is reported; if weights are averaged, the plain weights are then tested too.
        """
        if self.test is None:
            return {name: None}
        learner, context = self.learner, None if final else self.learner.autocast
        tested: dict[str, float | None] = {name: evaluate(learner.tested, self.test, context)}
        if final and learner.average is not None:
            tested["last_weights_accuracy"] = evaluate(learner.model, self.test)
        return tested


@torch.no_grad()
def evaluate(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    context: torch.autocast | None = None,
) -> float:
    """The percentage of images that are classified correctly.

    Without a context, the network runs strictly in float32 and uncompiled: a network that was
    compiled for training is not compiled again for this.
    """
    model.eval()
    hits, count = None, 0
    with contextlib.ExitStack() as stack:
        if context is None:
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        else:
            stack.enter_context(context)
        for x, y in batches:
            right = (model(x).argmax(1) == y).sum()
            hits = right if hits is None else hits + right
            count += len(y)
    return 0.0 if hits is None else 100 * hits.item() / count
