"""The evaluate command: what it prints, what it refuses, and that its numbers are golden's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from lbq_hw import datasets, file, golden
from lbq_hw.datasets import Dataset
from lbq_hw.datasets.fitting import draw, load_dataset
from lbq_hw.evaluate import evaluate, main
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path


def small(
    shape: tuple[int, int, int] = (1, 8, 8), *, static: bool = True, classes: int = 10
) -> Network:
    """One hidden layer with random weights; by default it takes the digits."""
    random = np.random.default_rng(0)
    hidden = Layer(
        name="hidden",
        shape=(4, *shape[1:]),
        paths=(
            Path(
                source=INPUT,
                weight=random.integers(-7, 8, (4, shape[0], 3, 3)),
                padding=(1, 1),
            ),
        ),
        bias=np.zeros(4, np.int64),
        fraction_bits=0,
        neuron=Neuron(
            capacity=5,
            theta=np.full(4, 40),
            reset=np.full(4, 40),
            decay=1,
            decay_bits=1,
        ),
    )
    weight = random.integers(-7, 8, (classes, *hidden.shape))
    logits = Layer(
        name="logits",
        shape=(classes, 1, 1),
        paths=(Path(source="hidden", weight=weight),),
        bias=np.zeros(classes, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="small",
        input=Input(shape=shape, static=static, bits=5),
        timesteps=2,
        weight_bits=4,
        layers=(hidden, logits),
        meta={"dataset": "digits"},
    )


@pytest.fixture
def model(tmp_path: FilePath) -> str:
    path = tmp_path / "net.lbq"
    file.save(small(), path)
    return str(path)


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_json_has_goldens_accuracy_and_the_promised_keys(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_json(capsys, "--model", model)
    digits = datasets.load("digits", split="test")
    right = golden.predict(small(), digits.images) == digits.labels
    assert result["accuracy"] == 100 * right.mean()
    assert result["images"] == len(digits.labels)
    assert result["model"] == model
    assert result["digest"] == file.digest(small())
    assert result["dataset"] == "digits"
    assert (result["timesteps"], result["capacity"], result["weight_bits"]) == (2, 5, 4)
    for key in (
        "acs_unary",
        "acs_bit_sparse",
        "acs_unary_with_padding",
        "acs_bit_sparse_with_padding",
        "shifts",
        "formation_ops",
    ):
        assert result[key] > 0
        assert result[key] == pytest.approx(sum(layer[key] for layer in result["layers"]))
    assert result["acs_bit_sparse"] < result["acs_unary"]
    assert result["acs_bit_sparse"] < result["acs_bit_sparse_with_padding"]
    lbq = result["energy"]["paper"]["lbq"]
    assert result["energy_mj"] == lbq["mj"]
    assert lbq["acs"] < result["acs_bit_sparse"]  # the paper prices pixels as float MACs
    assert [layer["name"] for layer in result["layers"]] == ["hidden", "logits"]


def test_the_batch_size_changes_nothing(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = run_json(capsys, "--model", model, "--limit", "20")
    assert whole["images"] == 20
    assert run_json(capsys, "--model", model, "--limit", "20", "--batch", "3") == whole


def test_the_tables_name_every_layer(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "--model", model)
    assert main(["--model", model]) == 0
    text = capsys.readouterr().out
    assert "hidden" in text
    assert "logits" in text
    assert f"{result['accuracy']:.2f} % of {result['images']:,} test images right" in " ".join(
        text.split()
    )


def test_progress_counts_every_image() -> None:
    done: list[int] = []
    images = np.zeros((7, 1, 8, 8), np.uint8)
    evaluate(small(), images, np.zeros(7, np.int64), batch=3, advance=done.append)
    assert done == [3, 3, 1]


def test_recordings_are_cut_into_the_networks_timesteps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def load(name: str, root: str | None, **options: Any) -> Dataset:
        asked.update(options, name=name, root=root)
        images = np.zeros((3, 2, 2, 17, 17), np.uint8)
        return Dataset(name=name, images=images, labels=np.arange(3), classes=10)

    monkeypatch.setattr(datasets, "load", load)
    dataset = load_dataset(small((2, 17, 17), static=False), "nmnist", "folder", limit=2)
    assert asked == {
        "name": "nmnist",
        "root": "folder",
        "split": "test",
        "timesteps": 2,
        "size": 17,
        "reading": None,
    }
    assert dataset.labels.tolist() == draw(3, 2).tolist()
    assert len(dataset.images) == 2


DATASETS = ", ".join(datasets.names())


@pytest.mark.parametrize(
    ("network", "name", "message"),
    [
        (
            replace(small(), meta={}),
            None,
            f"the model does not say what it was trained on: give --dataset ({DATASETS})",
        ),
        (
            small(),
            "nmnist",
            "the model takes images, which the dataset 'nmnist' does not have",
        ),
        (
            small((2, 34, 34), static=False),
            "mnist",
            "the model takes recordings, which the dataset 'mnist' does not have",
        ),
        (
            small(),
            "mnist",
            "the model takes images of shape (1, 8, 8), the dataset 'mnist' has (1, 28, 28)",
        ),
        (
            small((2, 20, 20), static=False),
            "nmnist",
            "the model takes recordings of shape (2, 20, 20), the dataset 'nmnist' has (2, 34, 34)",
        ),
        (
            small(classes=9),
            "digits",
            "the model knows 9 classes, the dataset 'digits' has 10",
        ),
        (
            small((1, 28, 28)),
            "mnist",
            "dataset 'mnist' needs the folder of its files, which come from "
            + datasets.info("mnist").source
            + ": give --data DIR, or let lbq train --download fetch them",
        ),
        (
            small(),
            "digit",
            f"dataset must be one of {DATASETS}, not 'digit' (the nearest is 'digits')",
        ),
    ],
)
def test_a_dataset_that_does_not_fit_is_one_sentence(
    network: Network,
    name: str | None,
    message: str,
    tmp_path: FilePath,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "net.lbq"
    file.save(network, path)
    assert main(["--model", str(path), *(["--dataset", name] if name else [])]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"error: {message}\n"
    assert captured.out == ""


def test_a_missing_model_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "no-such-model"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: no model 'no-such-model': give the path of an .lbq file")
    assert error.count("\n") == 1


@pytest.mark.parametrize("option", ["--limit", "--batch"])
def test_a_count_below_1_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([option, "0"])
    assert stopped.value.code == 2
    assert f"argument {option}: must be at least 1, not 0" in capsys.readouterr().err


def test_help_says_what_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for word in ("bit-sparse ACs", "formation ops", "padding taps", "examples:"):
        assert word in text


def test_early_answers_have_the_accuracy_of_each_timestep_and_a_margin_of_training_images(
    model: str, tmp_path: FilePath, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "early.svg"
    arguments = ["--model", model, "--dataset", "digits", "--limit", "40", "--early", "50"]
    assert main([*arguments, "--picture", str(picture), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    found = result["early"]
    assert len(found["accuracy_by_step"]) == result["timesteps"]
    assert found["accuracy_by_step"][-1] == result["accuracy"]
    assert (found["training"]["images"], found["test"]["images"]) == (50, 40)
    assert found["training"]["margin"] == found["test"]["margin"]
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert main(arguments) == 0
    shown = " ".join(capsys.readouterr().out.split())
    whole = f"{found['test']['mean_steps']:.1f} of {result['timesteps']} timesteps"
    assert f"{found['test']['accuracy']:.2f} % right after {whole}" in shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--picture", "x.svg"], "--picture draws what --early finds: give both"),
        (["--early", "5", "--raw", "RAW"], "--early needs labels: give a dataset"),
    ],
)
def test_early_answers_that_cannot_be_found_are_one_sentence(
    arguments: list[str],
    text: str,
    model: str,
    tmp_path: FilePath,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raw = tmp_path / "raw.npy"
    np.save(raw, datasets.load("digits", split="test").images[:2])
    chosen = [str(raw) if word == "RAW" else word for word in arguments]
    more = [] if "--raw" in arguments else ["--dataset", "digits", "--limit", "2"]
    assert main(["--model", model, *more, *chosen]) == 2
    assert capsys.readouterr().err == f"error: {text}\n"
