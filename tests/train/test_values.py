"""The range of values and the names of classes, from data to run, file and table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nir
import numpy as np
import pytest
from simulators import needs_verilator
from small_runs import SMALL, metrics

from lbq_hw import datasets, file, golden
from lbq_hw.datasets import Dataset, mapping
from lbq_hw.datasets.fitting import draw_from
from lbq_hw.evaluate import main as evaluate
from lbq_hw.sim import on_board
from lbq_hw.train.command import main as train
from lbq_hw.train.data import InputSpec, in_range
from lbq_hw.train.export import main as export
from lbq_hw.train.nir.__main__ import main as read_nir
from tests.digit_pictures import WORDS, whitened, write

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16)
PICTURES = ("data.name=images", "data.size=8", "data.channels=1")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("digits") / "pictures"
    for split in ("train", "test"):
        write(root / split, WORDS, split=split)
    return root


@pytest.fixture(scope="module")
def arrays(pictures: Path) -> Path:
    """The same images in the same order, as raw values of 0 to 16."""
    found = {}
    for split in ("train", "test"):
        digits = datasets.load("digits", split=split)
        by_name = np.array([WORDS[label] for label in digits.labels])
        order = np.argsort(by_name, kind="stable")
        found[f"{split}_images"] = digits.images[order]
        found[f"{split}_labels"] = np.unique(by_name[order], return_inverse=True)[1]
    np.savez(pictures.parent / "mine.npz", **found)
    return pictures.parent / "mine.npz"


def trained(out: Path, data: Path, *changes: str) -> list[dict]:
    sets = [word for change in (*SMALL, *changes) for word in ("--set", change)]
    assert train(["--config", "digits", *sets, "--data", str(data), "--out", str(out)]) == 0
    return metrics(out)


@pytest.fixture(scope="module")
def run(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "mine"
    trained(out, pictures, *PICTURES)
    return out


def test_pictures_train_like_the_values_that_they_show(
    run: Path, arrays: Path, tmp_path: Path
) -> None:
    assert metrics(run) == trained(tmp_path / "npz", arrays, "data.name=npz")
    assert json.loads((run / "data.json").read_text("utf-8"))["class_names"] == sorted(WORDS)


def test_a_start_from_a_network_sees_pictures_in_its_range(
    pictures: Path, arrays: Path, tmp_path: Path
) -> None:
    still = ("train.init=digits", "train.lr=1e-9", "train.epochs=1")
    words = [word for change in (*still, "train.device=cpu") for word in ("--set", change)]
    found = []
    for name, data, sizes in (("a", pictures, PICTURES), ("b", arrays, ("data.name=npz",))):
        sets = [word for change in sizes for word in ("--set", change)]
        out = tmp_path / name
        command = ["--config", "digits", *words, *sets, "--data", str(data), "--out", str(out)]
        assert train(command) == 0
        found.append(metrics(out))
    assert found[0] == found[1]


def test_a_start_from_a_network_of_another_range_is_refused(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = ("train.init=digits", "data.full_scale=31", *PICTURES)
    words = [word for change in sets for word in ("--set", change)]
    command = ["--config", "digits", *words, "--data", str(pictures)]
    assert train([*command, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        "error: train.init = 'digits' holds another network than this configuration's: its full "
        "scale is a raw value of 16, and the model's 31\n"
    )


def test_values_out_of_range_are_warned_about_in_training(
    arrays: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = (
        "data.name=npz",
        "data.bits=4",
        "data.shift=4",
        "data.full_scale=0",
        "train.epochs=1",
    )
    trained(tmp_path / "run", arrays, *changes)
    assert (
        "warning: the largest pixel is 16, and the network's full scale is 255: scale the pixels "
        "to 0 to 255, or let an .npz file say its own full_scale\n"
    ) in capsys.readouterr().err


def test_recordings_are_counted_not_scaled() -> None:
    counts = np.full((1, 2, 1, 8, 8), 9, np.uint8)
    data = Dataset(name="npz", images=counts, labels=np.array([0]), classes=1)
    spec = InputSpec(shape=(1, 8, 8), static=False, bits=3)
    found = in_range(data, spec)
    np.testing.assert_array_equal(found.images, counts)
    assert found.notes == (
        "100.0 % of the pixels count more than 7 events, the most that the network tells apart: "
        "cut the recordings into more frames",
    )


@needs_verilator
def test_an_export_keeps_range_and_names_and_shows_one_table(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.lbq"
    words = [str(run), "--out", str(path), "--data", str(pictures), "--test", "30"]
    capsys.readouterr()
    assert export([*words, "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)["accuracies"]
    assert printed.err == (
        "simulating the board on 20 images; compiling a new core takes a minute "
        "(--board-images 0 skips this)\n"
    )
    network = file.load(path)
    assert network.input.full_scale == 16
    assert network.class_names == tuple(sorted(WORDS))
    data = datasets.load("images", pictures, split="test", shape=(1, 8, 8))
    test = draw_from(mapping.fitted(network, data, "here"), 30)
    right = golden.predict(network, test.images) == test.labels
    first = 100 * float(np.mean(right[:20]))
    assert found["drawn"] == {"of": 359, "seed": 0}
    assert (found["images"], found["split"]) == (30, "test")
    assert found["integer"] == 100 * float(np.mean(right))
    simulated = found["simulated"]
    assert (simulated["images"], simulated["reason"], simulated["equal"]) == (20, None, True)
    assert (simulated["integer"], simulated["board"]) == (first, first)
    assert export(words) == 0
    shown = capsys.readouterr().out
    assert "30 of 359 test images (seed 0) ┃ the first 20 of these ┃" in shown
    for row, cells in (
        ("float model", (f"{found['float']:.2f} %", f"{simulated['float']:.2f} %")),
        ("integer network", (f"{found['integer']:.2f} %", f"{first:.2f} %")),
        ("simulated board", ("-", f"{first:.2f} %")),
    ):
        assert re.search(rf"│ {row} +│ +{re.escape(cells[0])} │ +{re.escape(cells[1])} │", shown)
    assert "simulated board: all logits equal to the integer network's" in shown
    assert evaluate(["--model", str(path), "--data", str(pictures), "--limit", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == found["integer"]


def test_a_board_that_differs_ends_with_exit_code_1(
    run: Path,
    pictures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(on_board, "logits", lambda _, images: np.zeros((len(images), 10), int))
    words = ["--data", str(pictures), "--board-images", "2"]
    assert export([str(run), "--out", str(tmp_path / "net.lbq"), *words]) == 1
    nets = ["--dataset", "digits", "--timesteps", "16", "--board-images", "2"]
    assert read_nir([str(classifier(tmp_path)), *nets, "--reset", "subtract"]) == 1
    said = "simulated board: logits DIFFER from the integer network's"
    assert capsys.readouterr().out.count(said) == 2


def test_an_export_of_the_embedded_digits_shows_the_table_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for change in (*SMALL, "train.epochs=1") for word in ("--set", change)]
    assert train(["--config", "digits", *words, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert export([str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "┃ 200 of 359 test images (seed 0) ┃\n" in shown
    assert "simulated" not in shown  # a minute that nobody asked for


def weights() -> tuple[np.ndarray, np.ndarray]:
    """Of one layer, fitted to the digits as values of 0 to 1."""
    digits = datasets.load("digits", split="train")
    pixels = digits.images.reshape(-1, 64) / 16
    inputs = np.hstack([pixels, np.ones((len(pixels), 1))])
    wanted = np.eye(10)[digits.labels]
    fitted = np.linalg.lstsq(inputs.T @ inputs + 0.1 * np.eye(65), inputs.T @ wanted, rcond=None)[0]
    return fitted[:64].T, fitted[64]


def accuracy(steps: int) -> float:
    """Of the layer on the test digits, as its graph says it: spikes are counted."""
    weight, bias = weights()
    digits = datasets.load("digits", split="test")
    current = digits.images.reshape(-1, 64) / 16 @ weight.T + bias
    membrane, spikes = np.zeros_like(current), np.zeros_like(current)
    for _ in range(steps):
        membrane += current
        fired = membrane > 1
        membrane -= fired
        spikes += fired
    return float(np.mean(spikes.argmax(axis=1) == digits.labels))


def classifier(folder: Path) -> Path:
    weight, bias = weights()
    graph = nir.NIRGraph.from_list(
        nir.Input(input_type={"input": np.array([64])}),
        nir.Affine(weight=weight, bias=bias),
        nir.IF(r=np.ones(10), v_threshold=np.ones(10)),
        type_check=False,
    )
    nir.write(folder / "net.nir", graph)
    return folder / "net.nir"


@pytest.mark.parametrize("bits", [4, 5, 8])
def test_an_import_with_few_bits_drops_the_lower_ones_and_tests_the_graph_on_all(
    bits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = {}
    for split in ("train", "test"):
        digits = datasets.load("digits", split=split)
        entries |= {f"{split}_images": whitened(digits.images), f"{split}_labels": digits.labels}
    np.savez(tmp_path / "mine.npz", **entries)
    words = [str(classifier(tmp_path)), "--dataset", "npz", "--data", str(tmp_path / "mine.npz")]
    words += ["--timesteps", "16", "--reset", "subtract", "--test", "359", "--json"]
    words += ["--board-images", "0"]
    words += ["--most-different", "1", "--input-bits", str(bits)]
    assert read_nir(words) == 0
    facts = json.loads(capsys.readouterr().out)
    network = file.load(tmp_path / "net.lbq")
    assert (network.input.bits, network.input.shift) == (bits, 8 - bits)
    assert network.input.full_scale == 255
    assert facts["graph_accuracy"] == facts["accuracies"]["float"] / 100
    assert facts["accuracies"]["float"] == 100 * accuracy(16)
    assert facts["network_accuracy"] > 0.9


def test_an_import_takes_names_and_range_of_its_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(classifier(tmp_path)), "--dataset", "digits", "--timesteps", "16"]
    words += ["--reset", "subtract", "--test", "20", "--input-bits", "4"]
    assert read_nir(words) == 0
    shown = capsys.readouterr().out
    network = file.load(tmp_path / "net.lbq")
    assert (network.input.bits, network.input.shift, network.input.full_scale) == (4, 1, 16)
    assert network.class_names == tuple("0123456789")
    assert "┃ 20 of 359 test images (seed 0) ┃\n" in shown
    assert "simulated" not in shown
