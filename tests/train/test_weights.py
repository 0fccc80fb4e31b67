"""Float weights as a file of half precision: a start, a run to export, and what is no such file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_runs import small

from lbq_hw import file, zoo
from lbq_hw.train import checkpoint, export, loop, weights
from lbq_hw.train.checkpoint import CheckpointError
from lbq_hw.train.data import Origin
from lbq_hw.train.data.origin import read as read_origin
from lbq_hw.train.weights import WeightsError

SHIPPED = sorted(path.name for path in zoo.find("digits").parent.glob("*.safetensors"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "float"
    loop.train(small("train.epochs=1"), out)
    return out


def test_weights_are_those_of_the_run_in_half_precision(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    arguments = [str(run), "--out", str(tmp_path / "run.lbq"), "--test", "0"]
    assert export.main([*arguments, "--weights", str(path)]) == 0
    assert weights.origin(path) == read_origin(run)
    before, config, spec = checkpoint.load_run(run)
    model, again, seen = checkpoint.load_run(path)
    assert (again, seen) == (config, spec)
    for name, tensor in before.state_dict().items():
        half = tensor.half().float() if tensor.is_floating_point() else tensor
        assert torch.equal(model.state_dict()[name], half)
    assert export.main([str(path), "--test", "0"]) == 0
    made, direct = (file.load(tmp_path / name) for name in ("net.lbq", "run.lbq"))
    assert made.meta == direct.meta
    assert [layer.name for layer in made.layers] == [layer.name for layer in direct.layers]


def test_a_run_starts_from_weights(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    weights.save(checkpoint.load(run, "last"), path, origin=read_origin(run))
    chosen = small("train.weight_bits=4", f"train.init={path}")
    spec = checkpoint.load_run(run)[2]
    tuned = checkpoint.build(chosen, spec, 10, init=str(path)).state_dict()
    taken = weights.load(path)["model"]
    assert all(torch.equal(tuned[name], taken[name]) for name in taken)
    message = f"{path} holds the last epoch's weights alone, not 'best'"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        checkpoint.load_run(path, "best")


def test_what_holds_no_weights_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    message = (
        f"{path} holds no weights of a run: write such a file with `lbq export RUN --weights FILE`"
    )
    with pytest.raises(WeightsError, match=f"^{re.escape(message)}$"):
        weights.facts(path)
    path.write_bytes(b"nothing")
    with pytest.raises(WeightsError, match=rf"^{re.escape(str(path))} cannot be read as "):
        weights.facts(path)
    state = {"ema": None, "model": {"a": torch.tensor([1e6])}}
    message = "a has values beyond 65504, the largest of half precision"
    with pytest.raises(WeightsError, match=f"^{message}$"):
        weights.save(state, path, origin=Origin(digest="", held_out=None))


@pytest.mark.parametrize(
    "options", [["run.npz", "--weights", "a.safetensors"], ["run", "--weights", "a.pt"]]
)
def test_weights_need_a_run_and_their_own_suffix(options: list[str], capsys) -> None:
    assert export.main(options) == 2
    assert capsys.readouterr().err == (
        "error: --weights needs a run folder, and a FILE that ends in .safetensors\n"
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_weights_of_the_zoo_are_small_and_make_their_network(name: str) -> None:
    """Half precision moves integer weights by one at most."""
    stem = Path(name).stem
    assert zoo.find(stem).with_suffix(".safetensors").stat().st_size < 1_000_000
    network = file.load(zoo.find(stem))
    facts = weights.facts(Path(name))
    assert facts["accuracy"] == network.meta["float_accuracy"]
    assert facts["config"]["neuron"] == network.meta["config"]["neuron"]
    model, _, spec = checkpoint.load_run(name)
    made = export.integer_network(model, spec)
    assert made.weight_bits == network.weight_bits
    for mine, theirs in zip(made.layers, network.layers, strict=True):
        assert (mine.name, mine.shape) == (theirs.name, theirs.shape)
        for a, b in zip(mine.paths, theirs.paths, strict=True):
            assert a.exponent == b.exponent
            assert abs(a.weight.astype(int) - b.weight.astype(int)).max() <= 1


def test_the_zoo_ships_weights() -> None:
    assert "nmnist-stream.safetensors" in SHIPPED
