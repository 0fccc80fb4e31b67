"""The loop: resumed, interrupted and shared runs equal a plain one."""

import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import SMALL, interrupted_at, lines, metrics, small, tensors
from torch import fx, nn

from lbq_hw import datasets
from lbq_hw.train import batches, checkpoint, command, fitting, loop
from lbq_hw.train.batches import Batches
from lbq_hw.train.checkpoint import load_run
from lbq_hw.train.data import DeviceLoader, hold_out, mean_levels
from lbq_hw.train.data.augment import Pipeline
from lbq_hw.train.metrics import ranges
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.settings import config
from lbq_hw.train.settings.config import Config
from lbq_hw.train.world import World

ROOT = Path(__file__).parents[2]
COMMAND = "python -m train --resume --out"
RECIPES = {
    "sgd": ("train.optimizer=sgd", "train.lr=0.1", "train.ema=0.9", "train.warmup_epochs=1"),
    "refined": ("augment.cutout=2", "train.refine_epochs=1"),
    "sharp": ("train.optimizer=sgd", "train.sam_epochs=2", "train.sam=0.05", "train.batch=480"),
    "held out": (
        "data.validation=200",
        "augment.fill=mean",
        "train.label_smoothing=0.1",
        "train.sam_epochs=2",
    ),
    "adamw 4 bits": ("train.weight_bits=4", "neuron.timesteps=2", "augment.mixup=0.5"),
}


def assert_same_run(one: Path, other: Path) -> None:
    first, second = (checkpoint.load(folder, "last") for folder in (one, other))
    left, right = tensors(first), tensors(second)
    assert left.keys() == right.keys()
    assert len(left) > 20
    for name in left:
        assert torch.equal(left[name], right[name]), name
    assert first["best"] == second["best"]
    assert metrics(one) == metrics(other)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_run_in_pieces_equals_an_uninterrupted_one(tmp_path, recipe):
    chosen = small(*recipe)
    whole = loop.train(chosen, tmp_path / "whole")
    assert whole["finished"]
    assert whole["epoch"] == 3
    seldom = small(*recipe, "train.save_every=7")
    for piece in (1, 2):  # no time is left after one epoch
        result = loop.train(seldom, tmp_path / "pieces", resume=True, max_seconds=0)
        assert (result["finished"], result["epoch"]) == (False, piece)
    assert loop.train(chosen, tmp_path / "pieces", resume=True)["finished"]
    assert_same_run(tmp_path / "whole", tmp_path / "pieces")
    clock = lines(tmp_path / "pieces")
    totals = itertools.accumulate(line["seconds"] for line in clock)
    assert [line["total_seconds"] for line in clock] == pytest.approx(list(totals))


def test_the_last_epochs_refine_on_mildly_augmented_images(tmp_path):
    mild, strong = ["augment.shift=0.1", "augment.flip=true"], ["augment.cutout=2"]
    strong += ["augment.mixup=0.5"]

    def run(name: str, *changes: str) -> list[dict]:
        loop.train(small("augment.rotate=0", "augment.zoom=0", *changes), tmp_path / name)
        return metrics(tmp_path / name)

    never, always = run("never", *mild, *strong), run("always", *mild)
    refined = run("refined", *mild, *strong, "train.refine_epochs=1")
    assert refined[:2] == never[:2]
    assert refined[2] != never[2]
    assert run("all", *mild, *strong, "train.refine_epochs=3") == always
    assert never[0] != always[0]


def test_only_the_last_epochs_take_sharpness_aware_steps(tmp_path):
    def run(name: str, *changes: str) -> list[dict]:
        loop.train(small(*changes), tmp_path / name)
        return metrics(tmp_path / name)

    never, sharp = run("never"), run("sharp", "train.sam_epochs=1", "train.sam=0.5")
    assert sharp[:2] == never[:2]
    assert sharp[2] != never[2]


def test_both_passes_of_a_sharpness_aware_step_see_the_same_augmented_images(tmp_path, monkeypatch):
    build, seen = checkpoint.formed, []

    def look(model, inputs) -> None:
        if model.training:
            seen.append(inputs[0])

    def watched(*args, **options):
        model = build(*args, **options)
        model.register_forward_pre_hook(look)
        return model

    monkeypatch.setattr(fitting, "formed", watched)
    loop.train(small("train.epochs=1", "train.sam_epochs=1", "augment.mixup=0.5"), tmp_path)
    assert len(seen) == 2 * 5  # of 5 steps
    assert all(torch.equal(*pair) for pair in zip(seen[::2], seen[1::2], strict=True))
    assert not any(torch.equal(*pair) for pair in zip(seen[1:-1:2], seen[2::2], strict=True))


def test_a_run_that_holds_images_out_tests_on_these_and_says_so(tmp_path, monkeypatch, capsys):
    load, asked = datasets.load, []

    def watched(*args, split, **options):
        asked.append(split)
        return load(*args, split=split, **options)

    monkeypatch.setattr(datasets, "load", watched)
    changes = [word for change in (*SMALL, "data.validation=200") for word in ("--set", change)]
    options = ["--config", "digits", *changes, "--out", str(tmp_path)]
    assert command.main([*options, "--set", "train.eval_every=2"]) == 0
    assert asked == ["train"]
    seen = metrics(tmp_path)
    assert not any("test_accuracy" in line for line in seen)
    found = [line["validation_accuracy"] for line in seen]
    assert found[0] is None
    shown = capsys.readouterr().out.splitlines()
    assert "  validation        -  " in shown[0]
    assert f"  validation {found[1]:6.2f} %  " in shown[1]
    assert shown[3].startswith(
        f"{found[2]:.2f} % of the validation images at the last epoch "
        "(best epoch, chosen on these images: "
    )
    assert "test" not in " ".join(shown).replace(str(tmp_path), "")
    index, (model, _, spec) = checkpoint.index(tmp_path, "last"), load_run(tmp_path)
    assert (index["split"], index["accuracy"]) == ("validation", found[2])
    kept, held = hold_out(load("digits", split="train"), 200)
    assert (len(kept), len(held)) == (1238, 200)
    assert fitting.evaluate(model, DeviceLoader(held, spec, batch=500)) == found[2]


def test_a_mean_fill_is_the_mean_of_the_images_that_are_trained_on(tmp_path, monkeypatch):
    seen = []

    def watched(*args, mean, **options):
        seen.append(mean)
        return Pipeline(*args, mean=mean, **options)

    monkeypatch.setattr(batches, "Pipeline", watched)
    chosen = small("train.epochs=1", "data.validation=1000", "augment.fill=mean")
    loop.train(chosen, tmp_path)
    kept, _ = hold_out(datasets.load("digits", split="train"), 1000)
    assert seen == [mean_levels(kept)] * 2


def test_a_run_without_held_out_images_says_that_it_was_tested_on_the_test_split(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path)
    assert checkpoint.index(tmp_path, "last")["split"] == "test"


def test_held_out_images_must_be_new_to_the_weights_that_a_run_begins_with(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path / "all")
    loop.train(small("train.epochs=1", "data.validation=200"), tmp_path / "held")
    tuned = ["train.epochs=1", f"train.init={tmp_path / 'held'}", "data.validation=100"]
    assert loop.train(small(*tuned), tmp_path / "tuned")["finished"]
    init = str(tmp_path / "all")
    message = f"train.init = {init!r} has trained on images that data.validation holds out"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(
            small("data.validation=200", f"train.init={init}"), tmp_path / "tuned", overwrite=True
        )


def test_a_run_interrupted_within_an_epoch_goes_on_from_the_last_whole_one(
    tmp_path, monkeypatch, capsys
):
    loop.train(small(), tmp_path / "whole")
    changes = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", "--out", str(tmp_path / "run"), *changes]
    with interrupted_at(8, monkeypatch):  # of 5 steps an epoch
        assert command.main(arguments) == 130
    again = f"{COMMAND} {tmp_path / 'run'}"
    assert capsys.readouterr().err == f"interrupted; go on with: {again}\n"
    assert not list((tmp_path / "run").glob("*.tmp"))
    assert command.main(["--resume", "--out", str(tmp_path / "run")]) == 0
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_finished_run_that_is_resumed_stays_as_it_is(tmp_path):
    chosen = small("train.epochs=1")
    result = loop.train(chosen, tmp_path)
    before = (tmp_path / "last.json").read_text(encoding="utf-8")
    assert loop.train(chosen, tmp_path, resume=True) == result
    assert (tmp_path / "last.json").read_text(encoding="utf-8") == before


def test_a_finished_run_whose_metrics_are_gone_still_says_how_it_ended(tmp_path, capsys):
    result = loop.train(small("train.epochs=1"), tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    assert command.main(["--resume", "--out", str(tmp_path)]) == 0
    accuracy = f"{result['test_accuracy']:.2f} %"
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"{accuracy} of the test images at the last epoch "
        f"(best epoch, chosen on these images: {accuracy}), "
        f"{result['total_seconds']:.0f} s, in {tmp_path}"
    )


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param([], marks=pytest.mark.slow),
        ["train.activity=0.25", "train.sam_epochs=1"],
    ],
)
def test_two_processes_train_the_weights_of_one_that_accumulates_two_halves(tmp_path, cost):
    """Each half of a batch has its own norm statistics in both cases. Gradients are scaled by a
    power of two and summed from two terms, so that all weights and momenta are equal to the bit.
    Running statistics are not compared: two processes keep those of the first half.
    """
    changes = ["train.epochs=2", "neuron.timesteps=2", "train.optimizer=sgd", "train.lr=0.1"]
    changes += cost
    loop.train(small(*changes, "train.accumulate=2"), tmp_path / "one")
    words = [word for change in [*SMALL, *changes] for word in ("--set", change)]
    words += ["--config", "digits", "--out", str(tmp_path / "two")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [sys.executable, *torchrun, "-m", "train", *words],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        timeout=900,  # a busy machine takes its time
    )
    one, two = (checkpoint.load(tmp_path / name, "last") for name in ("one", "two"))
    assert one["config"]["train"].pop("accumulate") == 2
    assert two["config"]["train"].pop("accumulate") == 1
    assert one["config"] == two["config"]
    model = load_run(tmp_path / "one")[0]
    for name, _ in model.named_parameters():
        assert torch.equal(one["model"][name], two["model"][name]), name
    left, right = tensors(one["optimizer"]), tensors(two["optimizer"])
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    for ours, theirs in zip(metrics(tmp_path / "one"), metrics(tmp_path / "two"), strict=True):
        assert ours["train_accuracy"] == theirs["train_accuracy"]
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-6)  # summed in another order


def test_a_batch_that_can_not_be_shared_is_refused(tmp_path):
    chosen = small("train.accumulate=16")
    world = replace(World.join("cpu"), size=2)
    with pytest.raises(RunError, match=r"^train.batch must be a multiple of 32 parts, not 240$"):
        Batches.load(chosen, tmp_path, world, download=False)


def test_the_loop_reads_no_value_from_the_device_inside_an_epoch(tmp_path, monkeypatch):
    reads = {}
    for batch in (240, 120):
        count = 0

        def reading(method):
            def read(self, *args):
                nonlocal count
                count += 1
                return method(self, *args)

            return read

        with monkeypatch.context() as patch:
            for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
                patch.setattr(torch.Tensor, name, reading(getattr(torch.Tensor, name)))
            changes = ["train.epochs=1", "train.grad_clip=1.0", "train.optimizer=sgd"]
            loop.train(small(f"train.batch={batch}", *changes), tmp_path / str(batch))
        reads[batch] = count
    assert reads[240] == reads[120]  # whatever the number of steps


def test_recordings_train_with_mixed_targets(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    split = datasets.Dataset(
        name="nmnist",
        images=rng.integers(0, 5, (20, 3, 2, 34, 34), dtype=np.uint8),
        labels=np.arange(20, dtype=np.int64) % 10,
        classes=10,
    )
    asked = []

    def load(*_, **options):
        asked.append(options)
        return split

    monkeypatch.setattr(datasets, "load", load)
    changes = ["train.epochs=1", "train.batch=10", "train.accumulate=2", "neuron.timesteps=3"]
    chosen = config.load("nmnist", [*changes, "augment.mixup=0.5", "train.device=cpu"])
    assert loop.train(chosen, tmp_path)["finished"]
    frames = {"timesteps": 3, "size": None, "download": False}
    assert asked == [{"split": "train"} | frames, {"split": "test", "timesteps": 3, "size": None}]
    model, _, spec = load_run(tmp_path)
    assert not spec.static
    x = spec.normalize(torch.from_numpy(split.images)).transpose(0, 1)
    assert model(x).shape == (20, 10)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_bf16_and_channels_last_train_on_the_cpu_and_the_last_test_is_in_float32(
    tmp_path, monkeypatch
):
    chosen = small("train.amp=bf16", "train.channels_last=true", "train.epochs=2")
    evaluate, seen = fitting.evaluate, []

    def watched(model, *rest):
        def look(*_) -> None:
            seen.append((torch.is_autocast_enabled("cpu"), torch.backends.cudnn.allow_tf32))

        with model.register_forward_hook(look):
            return evaluate(model, *rest)

    monkeypatch.setattr(fitting, "evaluate", watched)
    result = loop.train(chosen, tmp_path)
    assert seen == [(True, True), (False, False)]  # a batch of images an epoch
    assert result["loss"] < 2.3


def test_what_is_compiled_is_evaluated_as_it_is_written():
    compiled = []

    def backend(graph, _):
        compiled.append(graph)
        return graph

    model = fx.symbolic_trace(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))
    model.compile(backend=backend)
    digits = datasets.load("digits", split="test")
    tests = DeviceLoader(digits, small().data.spec(digits.shape, static=True), batch=500)
    exact = fitting.evaluate(model, tests)
    assert compiled == []
    assert fitting.evaluate(model, tests, torch.autocast("cpu", enabled=False)) == exact
    assert len(compiled) == 1


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    message = "the loss became nan in epoch 1: lower train.lr"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.optimizer=sgd", "train.lr=1e30"), tmp_path)


ONE_STEP = (
    *("train.epochs=1", "train.batch=1438", "train.optimizer=sgd", "train.momentum=0"),
    *("train.weight_decay=0", "train.schedule=constant", "train.lr=1"),
)


def first_weights(chosen: Config) -> dict[str, torch.Tensor]:
    torch.manual_seed(chosen.train.seed)
    spec = chosen.data.spec((1, 8, 8), static=True)
    return checkpoint.build(chosen, spec, 10).state_dict()


def test_the_average_moves_by_one_minus_its_decay(tmp_path):
    chosen = small(*ONE_STEP, "train.ema=0.75")
    loop.train(chosen, tmp_path)
    old, state = first_weights(chosen), checkpoint.load(tmp_path, "last")
    for name, new in state["model"].items():
        moved = old[name] + (new - old[name]) / 4 if new.is_floating_point() else new
        assert torch.equal(state["ema"][name], moved), name
        assert not torch.equal(new, old[name]), name


def test_the_last_line_has_the_accuracy_of_the_average_and_of_the_last_weights(tmp_path):
    result = loop.train(small("train.ema=0.9"), tmp_path)
    model, _, spec = load_run(tmp_path)
    tests = DeviceLoader(datasets.load("digits", split="test"), spec, batch=500)
    assert result.items() >= ranges(model).items()
    assert result["test_accuracy"] == fitting.evaluate(model, tests)
    model.load_state_dict(checkpoint.load(tmp_path, "last")["model"])
    assert result["last_weights_accuracy"] == fitting.evaluate(model, tests)
    assert result["last_weights_accuracy"] != result["test_accuracy"]
    assert not result.items() >= ranges(model).items()
    assert ["last_weights_accuracy" in line for line in metrics(tmp_path)] == [False, False, True]


def test_fine_tuning_starts_from_the_averaged_weights(tmp_path):
    loop.train(small(*ONE_STEP, "train.ema=0.75"), tmp_path)
    average = checkpoint.load(tmp_path, "last")["ema"]
    spec = load_run(tmp_path)[2]
    tuned = checkpoint.build(small(), spec, 10, init=str(tmp_path)).state_dict()
    assert all(torch.equal(tuned[name], average[name]) for name in average)


def test_a_clipped_step_has_the_norm_that_is_allowed(tmp_path):
    chosen = small(*ONE_STEP, "train.grad_clip=0.25")
    loop.train(chosen, tmp_path)
    old, model = first_weights(chosen), load_run(tmp_path)[0]
    moved = [(new - old[name]).flatten() for name, new in model.named_parameters()]
    assert torch.cat(moved).norm().item() == pytest.approx(0.25, rel=1e-3)


def test_the_loss_goes_in_line_with_label_smoothing(tmp_path):
    def loss(smoothing: float) -> float:
        chosen = small(*ONE_STEP, f"train.label_smoothing={smoothing}")
        return loop.train(chosen, tmp_path / str(smoothing))["loss"]  # of the first weights

    plain, some, more = loss(0.0), loss(0.25), loss(0.5)
    assert some != plain
    assert more - some == pytest.approx(some - plain, rel=1e-3)
