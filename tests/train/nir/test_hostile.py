"""Broken and forged files of NIR are refused in one sentence or with the node's name."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import h5py
import nir
import numpy as np
import pytest

from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.agreement import DisagreementError
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError
from lbq_hw.train.nir import read
from lbq_hw.train.nir.__main__ import main
from lbq_hw.train.nir.read import NirError
from tests.forged import assert_a_line, assert_both, bounded, counts

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=4)
ROOT = "node/nodes"
NODES = ("conv", "lif", "pool", "flatten", "affine", "if")


def graph() -> nir.NIRGraph:
    rng = np.random.default_rng(0)
    ones = np.ones((4, 8, 8))
    nodes = {
        "input": nir.Input(input_type={"input": np.array([1, 8, 8])}),
        "conv": nir.Conv2d(
            input_shape=(8, 8),
            weight=rng.normal(0, 0.5, (4, 1, 3, 3)),
            stride=1,
            padding=1,
            dilation=1,
            groups=1,
            bias=rng.normal(0, 0.1, 4),
        ),
        "lif": nir.LIF(
            tau=2 * ones, r=2 * ones, v_leak=0 * ones, v_threshold=ones, v_reset=0 * ones
        ),
        "pool": nir.AvgPool2d(
            kernel_size=np.array([2, 2]), stride=np.array([2, 2]), padding=np.array([0, 0])
        ),
        "flatten": nir.Flatten(input_type={"input": np.array([4, 4, 4])}, start_dim=0, end_dim=-1),
        "affine": nir.Affine(weight=rng.normal(0, 0.4, (5, 64)), bias=rng.normal(0, 0.1, 5)),
        "if": nir.IF(r=np.ones(5), v_threshold=np.ones(5)),
        "output": nir.Output(output_type={"output": np.array([5])}),
    }
    names = list(nodes)
    return nir.NIRGraph(nodes=nodes, edges=list(pairwise(names)), type_check=False)


def written(folder: Path) -> Path:
    path = folder / "net.nir"
    nir.write(path, graph())
    return path


def put(file: h5py.File, name: str, value: object) -> None:
    if name in file:
        del file[name]
    file[name] = value


def edges(file: h5py.File, change: Callable[[list], object]) -> None:
    found = [[end.decode() for end in edge] for edge in file["node/edges"][()]]
    change(found)
    put(file, "node/edges", np.array(found, dtype=h5py.string_dtype()))


def imported(path: Path) -> Network:
    told, reading = read.load(path, dt=1.0)
    model = read.module(told, reading, timesteps=3, static=True)
    return integer_network(model, SPEC, samples=np.zeros((1, 1, 8, 8), np.uint8), most_different=1)


def test_the_graph_itself_is_imported(tmp_path: Path) -> None:
    imported(written(tmp_path))


def complex_weight(file: h5py.File) -> None:
    put(file, f"{ROOT}/conv/weight", file[f"{ROOT}/conv/weight"][()] * (1 + 1j))


def to_itself(file: h5py.File) -> None:
    file[f"{ROOT}/again"] = file[ROOT]


def enormous(file: h5py.File) -> None:
    del file[f"{ROOT}/affine/weight"]
    file.create_dataset(f"{ROOT}/affine/weight", (400_000, 200_000), "f8", chunks=(1000, 1000))


BROKEN = {
    "an edge to nowhere": (
        lambda file: edges(file, lambda found: found.append(["lif", "ghost"])),
        "lif -> ghost: an end of the edge is not a node; remove the edge, or write its node",
    ),
    "a time constant of 0": (
        lambda file: put(file, f"{ROOT}/lif/tau", np.zeros((4, 8, 8))),
        "lif: its time constant is 0 timesteps, less than 1; give the dt with which it was trained",
    ),
    "weights of three axes": (
        lambda file: put(file, f"{ROOT}/conv/weight", np.ones((4, 3, 3))),
        "conv: its weights have 3 axes; use 4, (out, in, height, width)",
    ),
    "complex weights": (
        complex_weight,
        "conv: its weight has complex numbers; write real numbers",
    ),
    "a node without input": (
        lambda file: edges(file, lambda found: found.remove(["lif", "pool"])),
        "lif: nothing reads it; connect it, or take it out\n"
        "  pool: it has no input; connect it, or take it out",
    ),
    "two nodes before the output": (
        lambda file: edges(file, lambda found: found.append(["affine", "output"])),
        "output: it is the output, and has 2 inputs; give it one, or put a node that sums them "
        "before it",
    ),
    "a bias too many": (
        lambda file: put(file, f"{ROOT}/affine/bias", np.ones(6)),
        "affine: its bias has the shape (6,), and its weights (5, 64); use one bias per output",
    ),
    "a stride of 0": (
        lambda file: put(file, f"{ROOT}/pool/stride", np.array([0, 0])),
        "pool: its stride is [0, 0]; use whole numbers from 1 to 4096",
    ),
    "thresholds that differ within a channel": (
        lambda file: put(file, f"{ROOT}/lif/v_threshold", np.linspace(1, 2, 256).reshape(4, 8, 8)),
        "lif: threshold differs within a channel; use one threshold per channel, or one for all",
    ),
    "a threshold that is not a number": (
        lambda file: put(file, f"{ROOT}/if/v_threshold", np.full(5, np.nan)),
        "if: its v_threshold must be finite, and some values are not; train it again",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_graph_is_refused_with_its_places(tmp_path: Path, what: str) -> None:
    path = written(tmp_path)
    change, violations = BROKEN[what]
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(GraphError) as error:
        imported(path)
    assert str(error.value).partition("\n  ")[2] == violations


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: put(file, f"{ROOT}/if/r", "one"), "/node/nodes/if/r has no numbers"),
        (
            lambda file: put(file, f"{ROOT}/if/r", np.ones(4)),
            "All parameters must have the same shape",
        ),
        (to_itself, "its groups are nested more than 16 deep"),
        (enormous, "its arrays take more than 2 GiB"),
        (
            lambda file: put(file, f"{ROOT}/soft", h5py.SoftLink("/node")),
            "/node/nodes/soft is a link to another place",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_no_nir_file(tmp_path: Path, change, reason: str) -> None:
    path = written(tmp_path)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(NirError) as error:
        imported(path)
    assert str(error.value) == f"{path} is not a NIR file ({reason}): give one that nir.write made"


def test_a_timestep_of_0_is_not_the_default(tmp_path: Path, capsys) -> None:
    words = [str(written(tmp_path)), "--dataset", "digits", "--timesteps", "2", "--dt", "0"]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "error: dt must be above 0, not 0: give the timestep of the graph\n"
    )


def test_an_input_of_another_size_than_the_data_is_refused(tmp_path: Path, capsys) -> None:
    """A pool over all of the image would hide it."""
    told = graph()
    told.nodes["input"] = nir.Input(input_type={"input": np.array([1, 28, 28])})
    nir.write(tmp_path / "net.nir", told)
    words = [str(tmp_path / "net.nir"), "--dataset", "digits", "--timesteps", "2", "--dt", "1"]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "error: the graph's input has the shape (1, 28, 28), and the dataset's (1, 8, 8): give "
        "the data that it was trained on\n"
    )


VALUES = (
    *(0, -1, 1e308, np.nan, np.inf, 1j, "text", b"\xff\xfe", 2**40, np.zeros(0)),
    *(np.ones((2, 2, 2)), np.zeros((3, 0)), np.array(["a", "b"], dtype="S1"), True),
)


def forge(file: h5py.File, chance: random.Random) -> str:
    """Break something at random; what it was."""
    fields: list[str] = []
    file["node"].visit(fields.append)
    arrays = [f"node/{name}" for name in fields if isinstance(file[f"node/{name}"], h5py.Dataset)]
    groups = [f"node/{name}" for name in fields if isinstance(file[f"node/{name}"], h5py.Group)]
    kind = chance.choice(("value", "value", "value", "axes", "remove", "edge", "rename", "link"))
    if not arrays or "node/edges" not in file:
        return "nothing"
    name = chance.choice(arrays if kind in ("value", "axes") else arrays + groups)
    if kind == "value":
        put(file, name, chance.choice(VALUES))
    elif kind == "axes" and file[name].shape:
        put(file, name, file[name][()][None])
    elif kind == "remove":
        del file[name]
    elif kind == "edge" and file["node/edges"].dtype == "O" and file["node/edges"].ndim == 2:
        ends = (*NODES, "input", "output", "ghost", "")
        edges(file, lambda found: found.append([chance.choice(ends), chance.choice(ends)]))
    elif kind == "rename" and name.startswith(f"{ROOT}/"):
        file.move(name, name + chance.choice((".x", "\u00fc", "_", " ")))
    elif kind == "link":
        put(file, f"{name}_", h5py.SoftLink(f"/{chance.choice(groups)}"))
    return f"{kind} {name}"


def assert_weights(network: Network, path: Path) -> None:
    """The integers of a network are the weights of its file, but for a scale per channel."""
    mine = {one.weight.size: one.weight for layer in network.layers for one in layer.paths}
    told: list[np.ndarray] = []
    with h5py.File(path) as file:
        file.visititems(lambda name, it: told.append(it[()]) if name.endswith("/weight") else None)
    assert len(told) == 2
    for weight in told:
        rows = weight.reshape(len(weight), -1), mine[weight.size].reshape(len(weight), -1)
        for row, integers in zip(*rows, strict=True):
            assert np.corrcoef(row, integers)[0, 1] > 0.99


def assert_said(error: Exception, path: Path) -> None:
    """A line that names the file, or a line for each of the nodes that are wrong."""
    if isinstance(error, NirError):
        assert_a_line(str(error), path)
    for line in str(error).split("\n"):
        assert line.isprintable(), line


@counts(100)
@pytest.mark.filterwarnings("ignore")
def test_a_forged_file_ends_in_a_network_of_its_weights_or_in_a_sentence(
    count: int, tmp_path: Path
) -> None:
    ends: Counter[str] = Counter()
    whole = written(tmp_path).read_bytes()
    path = tmp_path / "forged.nir"
    for seed in range(count):
        chance = random.Random(seed)
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            told = [forge(file, chance) for _ in range(chance.randint(1, 3))]
        try:
            with bounded():
                network = imported(path)
        except (NirError, GraphError, DisagreementError) as error:
            assert_said(error, path)
            ends["refused"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {told}") from error
        else:
            assert_weights(network, path)
            ends["accepted"] += 1
    assert_both(ends, count)
