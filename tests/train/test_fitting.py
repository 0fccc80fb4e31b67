"""`fit`: a model and loaders of one's own, with all that the command has."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from relu_nets import ReluResNet
from small_runs import interrupted_at, metrics, tensors
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from lbq_hw import datasets, predict
from lbq_hw.train import (
    LBQ,
    Callback,
    GraphError,
    InputSpec,
    Log,
    MergeTime,
    Recipe,
    Repeat,
    TensorBoard,
    TimeMean,
    checkpoint,
    fit,
    integer_network,
    loop,
    prepare,
)
from lbq_hw.train.checkpoint import CheckpointError
from lbq_hw.train.data import Feed, LoaderError
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.settings.config import ConfigError

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16)
RECIPE = {"epochs": 3, "optimizer": "adamw", "lr": 0.01, "device": "cpu"}
CPU = torch.device("cpu")


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), Repeat(2)),
        LBQ(timesteps=2, capacity=5),
        *(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(16, 10), TimeMean(2)),
    )


def digits(split: str, *, raw: bool = True, count: int = 480) -> DataLoader:
    found = datasets.load("digits", split=split).at(np.arange(count if split == "train" else 100))
    images = torch.from_numpy(found.images)
    data = TensorDataset(images if raw else SPEC.normalize(images), torch.from_numpy(found.labels))
    return DataLoader(data, batch_size=96, shuffle=split == "train")


def same(one: nn.Module, other: nn.Module) -> bool:
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[n], right[n]) for n in left)


def refused(kind: type[Exception], message: str):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_raw_integers_and_normalized_floats_of_any_kind_train_the_same():
    model = net()
    first = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    raw = fit(model, SPEC, digits("train"), digits("test"), RECIPE)
    assert all(torch.equal(first[name], tensor) for name, tensor in model.state_dict().items())
    assert (raw.finished, raw.epoch, raw.metrics["epoch"]) == (True, 3, 3)
    assert raw.metrics["loss"] < 2.2
    floats = fit(model, SPEC, digits("train", raw=False), digits("test"), Recipe(**RECIPE))
    assert same(raw.model, floats.model)
    assert raw.metrics["test_accuracy"] == floats.metrics["test_accuracy"]
    wide = [(x.long(), y) for x, y in digits("test")]
    assert fit(model, SPEC, wide, None, RECIPE).metrics["test_accuracy"] is None


def test_a_run_that_is_killed_goes_on_as_if_it_had_not_stopped(tmp_path, monkeypatch):
    recipe = RECIPE | {"ema": 0.5, "weight_bits": 4, "layer_bits": {"6": 8}, "sam_epochs": 1}

    def run(out: Path, **options):
        return fit(net(), SPEC, digits("train"), digits("test"), recipe, out=out, **options)

    whole = run(tmp_path / "whole")
    with interrupted_at(8, monkeypatch), pytest.raises(KeyboardInterrupt):  # of 5 steps an epoch
        run(tmp_path / "killed")
    assert len(metrics(tmp_path / "killed")) == 1
    again = run(tmp_path / "killed", resume=True)
    assert same(whole.model, again.model)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "killed")
    states = [tensors(checkpoint.load(tmp_path / n, "last")) for n in ("whole", "killed")]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    once_more = run(tmp_path / "killed", resume=True)  # it is done: the model comes back
    assert same(once_more.model, whole.model)
    message = f"{tmp_path / 'whole'} was trained with train.epochs = 3, not 4: to resume"
    with refused(RunError, f"{message} it, keep these"):
        fit(
            *(net(), SPEC, digits("train"), None, recipe | {"epochs": 4}),
            out=tmp_path / "whole",
            resume=True,
        )


def test_a_model_that_returns_a_tuple_is_refused():
    model = nn.Sequential(nn.Flatten(1, 2), nn.LSTM(8, 10, batch_first=True))
    message = (
        "the model has no integer form (1 violation):\n"
        "  output: the model returns a tuple, not one tensor; return the logits alone, or join "
        "several outputs with torch.cat(outputs, 1)"
    )
    with refused(GraphError, message):
        fit(model, SPEC, digits("train"), None, RECIPE)


@pytest.mark.parametrize("label", [14, -1])
def test_a_label_beyond_the_outputs_is_refused(label):
    wrong = [(x, torch.full_like(y, label)) for x, y in digits("train")]
    with refused(
        LoaderError, f"train_loader yields the label {label}, but the model has 10 outputs"
    ):
        fit(net(), SPEC, wrong, None, RECIPE)


def test_a_model_without_neurons_is_trained_with_a_warning(capsys):
    ann = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    fit(ann, SPEC, digits("train"), None, RECIPE | {"epochs": 1})
    note = "no neuron: this trains a float ANN; put LBQ() in place of the ReLUs, or convert() it"
    assert f"warning: {note} afterwards\n" in capsys.readouterr().err
    fit(net(), SPEC, digits("train"), None, RECIPE | {"epochs": 1})
    assert "no neuron" not in capsys.readouterr().err


def test_bits_by_layer_are_trained_and_exported():
    recipe = RECIPE | {"weight_bits": 4, "layer_bits": {"0": 2}}
    fitted = fit(net(), SPEC, digits("train"), digits("test"), recipe)
    made = integer_network(fitted.model, SPEC)
    assert made.weight_bits == 4
    assert [layer.weight_bits for layer in made.layers] == [2, None]
    assert integer_network(fitted.model, SPEC, weight_bits=8).narrow_bits == (2,)
    stem, readout = (int(abs(layer.paths[0].weight).max()) for layer in made.layers)
    assert stem == 1 < readout <= 7
    test = datasets.load("digits", split="test").at(np.arange(100))
    right = 100 * np.mean(predict(made, test.images) == test.labels)
    assert right == pytest.approx(fitted.metrics["test_accuracy"], abs=2)


def test_what_is_fused_for_training_is_exported_all_the_same():
    fitted = fit(net(), SPEC, digits("train"), None, RECIPE | {"fuse": True})
    assert same(fitted.model, fit(net(), SPEC, digits("train"), None, RECIPE).model)
    assert integer_network(fitted.model, SPEC, most_different=1).timesteps == 2


def test_callbacks_see_every_epoch_and_may_add_to_its_metrics(tmp_path):
    class Mine(Callback):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def begin(self, run) -> None:
            self.calls.append(f"begin {run.epoch}")

        def end_epoch(self, run, line):
            self.calls.append(f"{run.epoch} {line['epoch']} {run.model.training}")
            return {"weights": sum(p.numel() for p in run.model.parameters())}

        def end(self, run) -> None:
            self.calls.append(f"end {run.epoch}")

    mine, told = Mine(), []
    fit(
        *(net(), SPEC, digits("train"), digits("test"), RECIPE),
        out=tmp_path,
        callbacks=[mine, TensorBoard(), Log(told.append)],
    )
    assert mine.calls == ["begin 0", "1 1 False", "2 2 False", "3 3 False", "end 3"]
    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert told == written
    assert {line["weights"] for line in written} == {40 + 8 + 170 + 2}
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    for name in ("loss", "test_accuracy", "gamma_min", "weights"):
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert found == [(n["epoch"], np.float32(n[name])) for n in written]


def test_a_tensorboard_without_a_folder_must_be_told_one():
    message = "give TensorBoard a folder: the run has none"
    with refused(ValueError, message):
        fit(net(), SPEC, digits("train"), None, RECIPE, callbacks=[TensorBoard()])


class Recordings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.merge, self.conv, self.norm = MergeTime(), nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.neuron, self.flat = LBQ(timesteps=3, capacity=5), nn.Flatten()
        self.fc, self.mean = nn.Linear(144, 10), TimeMean(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.mean(self.fc(self.flat(self.neuron(self.norm(self.conv(self.merge(x)))))))


def test_recordings_come_with_the_batch_first_or_with_time_first():
    class TimeFirst(list):
        time_first = True

    spec = InputSpec(shape=(1, 8, 8), static=False, bits=5)
    torch.manual_seed(0)
    x, y = torch.randint(0, 32, (24, 3, 1, 8, 8), dtype=torch.int16), torch.arange(24) % 10
    model = Recordings()
    batch_first = fit(model, spec, [(x, y)], None, RECIPE)
    time_first = fit(model, spec, TimeFirst([(x.transpose(0, 1), y)]), None, RECIPE)
    assert same(batch_first.model, time_first.model)


def test_an_ann_is_trained_as_it_is_and_so_is_a_prepared_model():
    ann = fit(ReluResNet(1, (4,)), SPEC, digits("train"), None, RECIPE | {"ema": 0.9})
    assert type(ann.model) is ReluResNet
    message = (
        "train.init and train.weight_bits must be left out for a model without burst neurons, "
        "which is trained as it is"
    )
    with refused(RunError, message):
        fit(ann.model, SPEC, digits("train"), None, RECIPE | {"weight_bits": 4})
    message = "train.activity and train.fuse need a model with burst neurons"
    with refused(RunError, message):
        fit(ann.model, SPEC, digits("train"), None, RECIPE | {"fuse": True})
    given = fit(prepare(net(), SPEC, weight_bits=4), SPEC, digits("train"), None, RECIPE)
    asked = fit(net(), SPEC, digits("train"), None, RECIPE | {"weight_bits": 4})
    assert same(given.model, asked.model)


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(1, 8, 8), 0


class Stream(IterableDataset):
    """Samples in their order, by batches, as a pipeline of WebDataset yields them."""

    def __init__(self, samples: TensorDataset) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples) // 96

    def __iter__(self):
        for first in range(0, 96 * len(self), 96):
            yield self.samples[first : first + 96]


def test_a_stream_of_batches_trains_as_its_samples_do():
    samples = digits("train").dataset
    streamed = fit(net(), SPEC, DataLoader(Stream(samples), batch_size=None), None, RECIPE)
    indexed = fit(net(), SPEC, DataLoader(samples, batch_size=96), None, RECIPE)
    assert same(streamed.model, indexed.model)


LOADERS = {
    "no length": (
        DataLoader(Endless()),
        "train_loader must have a length, the batches of an epoch: give its dataset a __len__",
    ),
    "empty": ([], "train_loader must have batches, and its length is 0"),
    "no pairs": (
        [torch.zeros(2, 1, 8, 8)],
        "train_loader must yield pairs of images and targets",
    ),
    "shape": (
        [(torch.zeros(2, 8, 8, 1), torch.zeros(2))],
        "train_loader must yield images of shape (B, 1, 8, 8), as the InputSpec says, not "
        "(2, 8, 8, 1)",
    ),
    "targets": (
        [(torch.zeros(2, 1, 8, 8), torch.zeros(3))],
        "train_loader must yield a target per image, and 2 images have 3",
    ),
    "range": (
        [(torch.full((2, 1, 8, 8), 300), torch.zeros(2))],
        "train_loader must yield raw values of 0 to 255, not 300 to 300: scale them, or give "
        "floats that are normalized already",
    ),
    "a mean that the spec does not have": (
        [((torch.rand(2, 1, 8, 8) > 0.5).float() - 0.25, torch.zeros(2))],
        "train_loader yields floats from -0.25 to 0.75, but the InputSpec makes 0 to 1.938 of raw "
        "pixels: yield raw integers, or normalize with the mean and std of the InputSpec",
    ),
    "not a number": (
        [(torch.full((2, 1, 8, 8), float("nan")), torch.zeros(2))],
        "train_loader yields floats from nan to nan, but the InputSpec makes 0 to 1.938 of raw "
        "pixels: yield raw integers, or normalize with the mean and std of the InputSpec",
    ),
}


@pytest.mark.parametrize(("loader", "message"), LOADERS.values(), ids=LOADERS)
def test_a_loader_that_a_network_can_not_take_is_refused(loader, message):
    with refused(LoaderError, message):
        fit(net(), SPEC, loader, None, RECIPE)


def test_floats_without_the_mean_that_the_spec_has_are_refused():
    spec = replace(SPEC, mean=(0.3,), std=(0.35,))
    message = (
        "test_loader yields floats from 0 to 1, none below 0, but the InputSpec subtracts a mean: "
        "yield raw integers, or normalize with its mean and std"
    )
    raw = 16 * (torch.arange(2 * 64).view(2, 1, 8, 8) % 2).to(torch.uint8)
    for x, good in ((SPEC.normalize(raw), False), (spec.normalize(raw), True), (raw, True)):
        feed = Feed([(x, torch.zeros(2))], spec, CPU, role="test_loader")
        with nullcontext() if good else refused(LoaderError, message):
            [(given, _)] = feed
            assert torch.equal(given, spec.normalize(raw))


def test_several_processes_must_share_the_images():
    data = digits("train")
    message = (
        "train_loader must give each of the 2 processes its share of the images: make it with a "
        "torch.utils.data.DistributedSampler or, if it shares them itself, give it an attribute "
        "world = 2"
    )
    with refused(LoaderError, message):
        Feed(data, SPEC, CPU, role="train_loader").check_shared(2)
    sampler = torch.utils.data.DistributedSampler(data.dataset, num_replicas=2, rank=0)
    shared = Feed(DataLoader(data.dataset, 8, sampler=sampler), SPEC, CPU, role="train_loader")
    shared.check_shared(2)
    shared.begin(7, seed=0)
    assert sampler.epoch == 7
    stream = Stream(data.dataset)
    stream.world = 2
    Feed(stream, SPEC, CPU, role="train_loader").check_shared(2)
    with pytest.raises(LoaderError):
        Feed(stream, SPEC, CPU, role="train_loader").check_shared(3)


def test_a_recipe_is_checked_as_a_configuration_is():
    with refused(ConfigError, "epoch is not a configuration key (nearest: epochs)"):
        fit(net(), SPEC, digits("train"), None, {"epoch": 3})
    with refused(
        ConfigError, "train.layer_bits must be {} where train.weight_bits is 0, not {'fc': 4}"
    ):
        Recipe(epochs=1, layer_bits={"fc": 4})


def test_runs_of_fit_and_of_the_command_are_not_mixed_up(tmp_path):
    from small_runs import small

    fit(net(), SPEC, digits("train"), None, RECIPE, out=tmp_path / "fit")
    loop.train(small("train.epochs=1"), tmp_path / "command")
    message = (
        f"{tmp_path / 'fit'} was trained by fit, and cannot be resumed by python -m train: "
        "choose another folder"
    )
    with refused(RunError, message):
        loop.train(small("train.epochs=1"), tmp_path / "fit", resume=True)
    message = (
        f"{tmp_path / 'fit'} is a run of fit, which does not say what its model is: call fit as "
        "before with resume=True, and it returns the model with its weights"
    )
    with refused(CheckpointError, message):
        checkpoint.load_run(tmp_path / "fit")
    with refused(RunError, "a run without a folder cannot be resumed or replaced: give fit an out"):
        fit(net(), SPEC, digits("train"), None, RECIPE, resume=True)
