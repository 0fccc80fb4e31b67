"""The loop: resumed, interrupted and shared runs equal a plain one; checkpoints; the command."""

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import fx, nn

from lbq_hw import datasets
from train import __main__ as command
from train import batches, checkpoint, config, loop
from train.batches import Batches
from train.checkpoint import CheckpointError, load_run
from train.config import Config
from train.data import DeviceLoader, hold_out, mean_levels
from train.data.augment import Pipeline
from train.metrics import ranges
from train.optim import build_optimizer, learning_rate
from train.run_folder import RunError
from train.world import World

ROOT = Path(__file__).parents[2]
COMMAND = "python -m train --resume --out"
SMALL = (
    "train.epochs=3",
    "train.batch=240",
    "train.device=cpu",
    "model.channels=[4, 4]",
    "neuron.timesteps=1",
)
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


def small(*changes: str, name: str = "digits") -> Config:
    return config.load(name, [*SMALL, *changes])


def tensors(value, path=""):
    """Every tensor of a checkpoint by its path."""
    if isinstance(value, torch.Tensor):
        return {path: value}
    if isinstance(value, dict):
        return {k: v for key in value for k, v in tensors(value[key], f"{path}/{key}").items()}
    return {}


def assert_same_run(one: Path, other: Path) -> None:
    first, second = (checkpoint.load(folder, "last") for folder in (one, other))
    left, right = tensors(first), tensors(second)
    assert left.keys() == right.keys()
    assert len(left) > 20
    for name in left:
        assert torch.equal(left[name], right[name]), name
    assert first["best"] == second["best"]
    assert metrics(one) == metrics(other)


def lines(folder: Path) -> list[dict]:
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def metrics(folder: Path) -> list[dict]:
    """The lines without what a clock says."""
    clock = ("seconds", "total_seconds")
    return [{k: v for k, v in line.items() if k not in clock} for line in lines(folder)]


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
    build, seen = checkpoint.build, []

    def look(model, inputs) -> None:
        if model.training:
            seen.append(inputs[0])

    def watched(*args, **options):
        model = build(*args, **options)
        model.register_forward_pre_hook(look)
        return model

    monkeypatch.setattr(checkpoint, "build", watched)
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
        f"{found[2]:.2f} % of the validation images at the last epoch (best "
    )
    assert "test" not in " ".join(shown).replace(str(tmp_path), "")
    index, (model, _, spec) = checkpoint.index(tmp_path, "last"), load_run(tmp_path)
    assert (index["split"], index["accuracy"]) == ("validation", found[2])
    kept, held = hold_out(load("digits", split="train"), 200)
    assert (len(kept), len(held)) == (1238, 200)
    assert loop.evaluate(model, DeviceLoader(held, spec, batch=500)) == found[2]


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


@contextlib.contextmanager
def interrupted_at(step: int, monkeypatch):
    """As if a user interrupted the run within that step, counted from 1."""
    calls = itertools.count(1)

    def rate(*values):
        if next(calls) == step:
            raise KeyboardInterrupt
        return learning_rate(*values)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "learning_rate", rate)
        yield


def test_a_run_interrupted_within_an_epoch_goes_on_from_the_last_whole_one(
    tmp_path, monkeypatch, capsys
):
    loop.train(small(), tmp_path / "whole")
    changes = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", "--out", str(tmp_path / "run"), *changes]
    with interrupted_at(8, monkeypatch):  # of 5 steps an epoch
        assert command.main(arguments) == 130
    again = f"{COMMAND} {tmp_path / 'run'}"
    assert capsys.readouterr().err == f"\ntrain: interrupted; go on with: {again}\n"
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
        f"{accuracy} at the last epoch (best {accuracy}), "
        f"{result['total_seconds']:.0f} s, in {tmp_path}"
    )


def test_two_processes_train_the_weights_of_one_that_accumulates_two_halves(tmp_path):
    """Each half of a batch has its own norm statistics in both cases. Gradients are scaled by a
    power of two and summed from two terms, so that all weights and momenta are equal to the bit.
    Running statistics are not compared: two processes keep those of the first half.
    """
    changes = ["train.epochs=2", "neuron.timesteps=2", "train.optimizer=sgd", "train.lr=0.1"]
    loop.train(small(*changes, "train.accumulate=2"), tmp_path / "one")
    words = [word for change in [*SMALL, *changes] for word in ("--set", change)]
    words += ["--config", "digits", "--out", str(tmp_path / "two")]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [sys.executable, *torchrun, "-m", "train", *words],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        timeout=120,
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


@pytest.mark.parametrize("changes", [(), ("train.weight_bits=4",), ("train.ema=0.5",)])
def test_a_run_that_is_loaded_classifies_as_its_metrics_say(tmp_path, changes):
    loop.train(small("train.epochs=2", *changes), tmp_path)
    for loaded, which in (
        (load_run(tmp_path), "last"),
        (load_run(tmp_path, "best"), "best"),
    ):
        model, chosen, spec = loaded
        index = checkpoint.index(tmp_path, which)
        assert chosen == small("train.epochs=2", *changes)
        assert which == "best" or index["epoch"] == 2
        assert not model.training
        tests = DeviceLoader(datasets.load("digits", split="test"), spec, batch=500)
        assert loop.evaluate(model, tests) == index["accuracy"]


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # this CPU has no bf16 of its own
def test_bf16_and_channels_last_train_on_the_cpu_and_the_last_test_is_in_float32(
    tmp_path, monkeypatch
):
    chosen = small("train.amp=bf16", "train.channels_last=true", "train.epochs=2")
    evaluate, seen = loop.evaluate, []

    def watched(model, *rest):
        def look(*_) -> None:
            seen.append((torch.is_autocast_enabled("cpu"), torch.backends.cudnn.allow_tf32))

        with model.register_forward_hook(look):
            return evaluate(model, *rest)

    monkeypatch.setattr(loop, "evaluate", watched)
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
    exact = loop.evaluate(model, tests)
    assert compiled == []
    assert loop.evaluate(model, tests, torch.autocast("cpu", enabled=False)) == exact
    assert len(compiled) == 1


def test_fine_tuning_starts_from_the_weights_of_another_run(tmp_path):
    loop.train(small("train.epochs=2"), tmp_path / "float")
    source = checkpoint.load(tmp_path / "float", "last")["model"]
    spec = load_run(tmp_path / "float")[2]
    init = str(tmp_path / "float")
    tuned = checkpoint.build(small("train.weight_bits=4"), spec, 10, init=init)
    steps = [name for name in tuned.state_dict() if name not in source]
    assert steps
    assert all(name.endswith(".step") for name in steps)
    assert all(torch.equal(tuned.state_dict()[name], source[name]) for name in source)
    fresh = checkpoint.build(small("train.weight_bits=4"), spec, 10)
    assert not torch.equal(tuned.state_dict()[steps[0]], fresh.state_dict()[steps[0]])
    result = loop.train(small("train.weight_bits=4", f"train.init={init}"), tmp_path / "tuned")
    assert result["loss"] < metrics(tmp_path / "float")[-1]["loss"]


def test_steps_of_the_same_width_are_taken_over_too_and_another_network_is_refused(tmp_path):
    loop.train(small("train.epochs=1", "train.weight_bits=4"), tmp_path)
    source = checkpoint.load(tmp_path, "last")["model"]
    spec = load_run(tmp_path)[2]
    tuned = checkpoint.build(small("train.weight_bits=4"), spec, 10, init=str(tmp_path))
    assert all(torch.equal(tuned.state_dict()[name], source[name]) for name in source)
    message = f"train.init = '{tmp_path}' holds another network than this configuration's"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.build(small("model.channels=[4, 6]"), spec, 10, init=str(tmp_path))


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    message = "the loss became nan in epoch 1: lower train.lr"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.optimizer=sgd", "train.lr=1e30"), tmp_path)


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        (["momentum=0.8", "nesterov=false"], {"momentum": 0.8, "nesterov": False}),
        (["momentum=0.8"], {"momentum": 0.8, "nesterov": True}),
        (["momentum=0"], {"momentum": 0.0, "nesterov": False}),
        (["optimizer=adamw", "adam_betas=[0.8, 0.99]"], {"betas": (0.8, 0.99)}),
    ],
)
def test_the_optimizer_has_what_the_recipe_says(changes, options):
    given = ["optimizer=sgd", *changes, "lr=0.3", "weight_decay=0.02"]
    chosen = small(*(f"train.{change}" for change in given))
    model = checkpoint.build(chosen, chosen.data.spec((1, 8, 8), static=True), 10)
    weights, scales = build_optimizer(model, chosen.train).param_groups
    wanted = options | {"lr": 0.3}
    assert wanted | {"weight_decay": 0.02} == {k: weights[k] for k in (*wanted, "weight_decay")}
    assert wanted | {"weight_decay": 0.0} == {k: scales[k] for k in (*wanted, "weight_decay")}


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
    assert result["test_accuracy"] == loop.evaluate(model, tests)
    model.load_state_dict(checkpoint.load(tmp_path, "last")["model"])
    assert result["last_weights_accuracy"] == loop.evaluate(model, tests)
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


def test_scales_are_never_decayed_and_norms_only_where_asked():
    spec = small().data.spec((1, 8, 8), static=True)
    for norms in (True, False):
        chosen = small(f"train.decay_norms={str(norms).lower()}", "train.weight_bits=4")
        model = checkpoint.build(chosen, spec, 10)
        groups = build_optimizer(model, chosen.train).param_groups
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        decayed = {names[id(p)] for g in groups if g["weight_decay"] for p in g["params"]}
        free = {names[id(p)] for g in groups if not g["weight_decay"] for p in g["params"]}
        assert decayed | free == set(names.values())
        assert {name.rsplit(".", 1)[1] for name in free} >= {"rho", "eta", "step"}
        assert {name.rsplit(".", 1)[1] for name in decayed} == (
            {"weight", "bias"} if norms else {"weight"}
        )
        assert any("norm" in name for name in decayed) == norms


def test_the_rate_warms_up_in_line_and_falls_to_zero_as_a_cosine():
    train = small("train.epochs=10", "train.lr=0.5", "train.warmup_epochs=2").train
    rates = [learning_rate(train, step, 4) for step in range(40)]
    assert rates[:8] == [0.5 * k / 8 for k in range(1, 9)]
    assert rates[8] == 0.5
    assert rates[24] == pytest.approx(0.25)
    assert rates[39] == pytest.approx(0.25 * (1 + math.cos(math.pi * 31 / 32)))
    constant = replace(train, schedule="constant")
    assert [learning_rate(constant, step, 4) for step in (7, 8, 39)] == [0.5] * 3


def state(epoch: int) -> dict:
    torch.manual_seed(epoch)
    weights = {"a": torch.rand(600_000), "b": torch.arange(3)}
    shown = {"epoch": epoch, "accuracy": 0.5, "split": "test", "revision": "r", "config": {}}
    return shown | {"model": weights}


def test_a_checkpoint_in_parts_reads_as_written_and_keeps_no_older_part(tmp_path):
    for epoch in (1, 2):
        checkpoint.save(tmp_path, "last", state(epoch), shard_mib=1)
    *parts, index = sorted(path.name for path in tmp_path.iterdir())
    assert [re.sub("-[0-9a-f]{8}", "", name) for name in parts] == [
        f"last-0002.00{k}.part" for k in range(3)
    ]
    assert index == "last.json"
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.part"))]
    assert sizes[:2] == [2**20] * 2
    loaded, written = checkpoint.load(tmp_path, "last"), state(2)
    assert loaded.keys() == written.keys()
    assert torch.equal(loaded["model"]["a"], written["model"]["a"])
    checkpoint.save(tmp_path, "last", state(3))
    archive, index = sorted(tmp_path.iterdir())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert archive.name == f"last-0003-{digest[:8]}.pt"
    assert torch.load(archive, weights_only=True)["epoch"] == 3


def test_a_checkpoint_whose_parts_have_other_names_is_read(tmp_path):
    checkpoint.save(tmp_path, "last", state(1))
    archive, index = sorted(tmp_path.iterdir())
    text = index.read_text(encoding="utf-8").replace(archive.name, "last-0001.pt")
    index.write_text(text, encoding="utf-8")
    archive.rename(tmp_path / "last-0001.pt")
    assert checkpoint.load(tmp_path, "last")["epoch"] == 1


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_save_that_fails_midway_leaves_the_previous_checkpoint(tmp_path, monkeypatch, epoch):
    checkpoint.save(tmp_path, "last", state(1), shard_mib=1)
    other = state(epoch)
    other["model"]["a"] += 1
    replace_, moves = Path.replace, []

    def failing(self, target):
        moves.append(target)
        if len(moves) == 2:
            raise KeyboardInterrupt
        return replace_(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, "last", other, shard_mib=1)
    loaded = checkpoint.load(tmp_path, "last")
    assert loaded["epoch"] == 1
    assert torch.equal(loaded["model"]["a"], state(1)["model"]["a"])
    assert not list(tmp_path.glob("*.tmp"))


def test_a_damaged_or_missing_checkpoint_is_an_error(tmp_path):
    message = f"{tmp_path} holds no checkpoint 'last': {tmp_path / 'last.json'} is missing"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.load(tmp_path, "last")
    checkpoint.save(tmp_path, "last", state(1), shard_mib=1)
    (part,) = tmp_path.glob("last-0001-*.001.part")
    data = bytearray(part.read_bytes())
    data[7] ^= 1
    part.write_bytes(data)
    index = tmp_path / "last.json"
    message = f"{part} is damaged: its digest differs from the one in {index}"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.load(tmp_path, "last")
    part.unlink()
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{part}, a part of checkpoint ')}'last', is missing$"
    ):
        checkpoint.load(tmp_path, "last")
    index.write_text('{"format": 9, "parts": []}', encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{index} has format 9, and this code reads 1')}$"
    ):
        checkpoint.load(tmp_path, "last")
    index.write_text("[]", encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=f"^{re.escape(f'{index} is not the index of a checkpoint')}$"
    ):
        checkpoint.load(tmp_path, "last")


def test_a_checkpoint_names_its_configuration_and_the_revision_of_the_code(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path)
    index = checkpoint.index(tmp_path, "last")
    assert Config.from_dict(index["config"]) == small("train.epochs=1")
    assert index["revision"] == checkpoint.revision()
    assert re.fullmatch(r"unknown|[0-9a-f]{40}(-dirty)?", index["revision"])


def test_a_run_is_not_overwritten_nor_resumed_otherwise_unless_asked(tmp_path):
    loop.train(small("train.epochs=1"), tmp_path)
    message = f"{tmp_path} holds a run: add --resume, --overwrite or another --out"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.epochs=1"), tmp_path)
    message = f"{tmp_path} was trained with train.seed = 0, not 1: it can not be resumed so"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(small("train.epochs=1", "train.seed=1"), tmp_path, resume=True)
    loop.train(small("train.epochs=1", "train.seed=1"), tmp_path, overwrite=True)
    assert checkpoint.index(tmp_path, "last")["config"]["train"]["seed"] == 1
    assert len(metrics(tmp_path)) == 1


def test_what_is_left_of_a_run_without_a_checkpoint_is_not_lost_either(
    tmp_path, monkeypatch, capsys
):
    seldom = small("train.save_every=9")
    with interrupted_at(8, monkeypatch), pytest.raises(KeyboardInterrupt):
        loop.train(seldom, tmp_path)
    assert not (tmp_path / "last.json").exists()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert len(metrics(tmp_path)) == 1
    words = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", *words, "--out", str(tmp_path)]
    assert command.main(arguments) == 2
    message = f"{tmp_path} holds a run: add --overwrite or another --out"
    assert capsys.readouterr() == ("", f"train: {message}\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert command.main([*arguments, "--resume"]) == 0  # nothing to go on from: begun again
    assert capsys.readouterr().out.startswith(f"{tmp_path} holds no checkpoint yet: a new run")
    assert [line["epoch"] for line in metrics(tmp_path)] == [1, 2, 3]


def test_a_run_interrupted_in_its_first_epoch_leaves_nothing_to_lose(tmp_path, monkeypatch):
    with interrupted_at(2, monkeypatch), pytest.raises(KeyboardInterrupt):
        loop.train(small(), tmp_path)
    assert loop.train(small("train.epochs=1"), tmp_path)["finished"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a configuration with --config (--list shows them, --help explains)"),
        (
            ["--config", "digits", "--set", "train.epoch=3"],
            "train.epoch is not a configuration key (nearest: train.epochs)",
        ),
        (
            ["--config", "digits", "--set", "train.device=tpu9"],
            "train.device must be auto, cpu or cuda, not 'tpu9'",
        ),
        (
            ["--config", "digits", "--set", "train.batch=5000", "--set", "train.device=cpu"],
            "batch must be at most 1438 with drop_last, not 5000",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, message, tmp_path, capsys):
    out = ["--out", str(tmp_path / "run")] if arguments else []
    assert command.main([*arguments, *out]) == 2
    assert capsys.readouterr() == ("", f"train: {message}\n")
    assert not (tmp_path / "run").exists()


def test_a_process_that_is_not_the_first_says_which_it_is(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert command.main([]) == 2
    assert capsys.readouterr().err.startswith("train (rank 1): name a configuration with --config ")


def test_a_folder_without_the_dataset_is_one_sentence_too(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--data", str(tmp_path / "none")]
    assert command.main(["--config", "mnist", "--set", "train.device=cpu", *out]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"train: {tmp_path / 'none'}")
    assert captured.err.count("\n") == 1


def test_the_command_trains_prints_a_line_an_epoch_and_says_how_it_ended(tmp_path, capsys):
    words = [word for change in SMALL for word in ("--set", change)]
    arguments = ["--config", "digits", *words, "--out", str(tmp_path)]
    assert command.main([*arguments, "--data", "my data", "--max-seconds", "0"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[0].startswith("epoch 1/3  loss ")
    again = f"{COMMAND} {tmp_path} --data 'my data' --max-seconds 0"
    assert shown[1] == f"stopped after epoch 1 of 3; go on with: {again}"
    assert command.main(["--resume", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line[:9] for line in shown[:2]] == ["epoch 2/3", "epoch 3/3"]
    last = metrics(tmp_path)[-1]["test_accuracy"]
    assert shown[2].startswith(f"{last:.2f} % at the last epoch (best ")


def test_the_command_lists_what_is_shipped(capsys):
    assert command.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(config.shipped())
