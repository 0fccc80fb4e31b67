"""The zoo: models found by name or path, and what ships in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lbq_hw import file, zoo
from lbq_hw.evaluate import main as evaluate_main
from lbq_hw.file import FileError
from lbq_hw.zoo.__main__ import main as zoo_main


@pytest.fixture
def zoo_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    for name in ("mnist", "mnist-4bit", "digits"):
        (folder / f"{name}.lbq").touch()
    monkeypatch.setattr(zoo, "_FOLDER", folder)
    return folder


def test_a_zoo_name_finds_its_file(zoo_folder: Path) -> None:
    assert zoo.find("digits") == zoo_folder / "digits.lbq"
    assert zoo.names() == ["digits", "mnist", "mnist-4bit"]


def test_a_path_to_a_file_is_found_before_the_zoo(
    zoo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert zoo_folder.is_dir()
    monkeypatch.chdir(tmp_path)
    Path("digits").touch()
    Path("mnist").mkdir()
    assert zoo.find("digits") == Path("digits")
    assert zoo.find(tmp_path / "digits") == tmp_path / "digits"
    assert zoo.find("mnist") == zoo_folder / "mnist.lbq"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("digit", "; did you mean 'digits'?"),
        ("runs/mnst.lbq", "; did you mean 'mnist'?"),
        ("x", ""),
    ],
)
def test_an_unknown_model_lists_the_zoo_and_the_nearest(
    zoo_folder: Path, name: str, hint: str
) -> None:
    assert zoo_folder.is_dir()
    with pytest.raises(FileError) as caught:
        zoo.find(name)
    assert str(caught.value) == (
        f"no model {name!r}: give the path of an .lbq file or a name of the zoo "
        f"(digits, mnist, mnist-4bit){hint}"
    )


LARGE = "cifar10-resnet20"
SMALL = ("digits", "digits-vgg", "fsdd", "mnist", "mnist-4bit", "nmnist", "nmnist-stream")
PACKED = {  # at most so many bytes
    "cifar10-resnet20-4bit": 8_800_000,
    "cifar10-resnet20-4bit-sparse": 8_800_000,
    "cifar10-small": 2_300_000,
    "cifar10-onchip": 400_000,
}
SHIPPED = (LARGE, *PACKED, *SMALL)


# fmt: off
DIGESTS = {
    "cifar10-onchip": "dccff639656058462fd1073de4e3bde1497b994fdcd0f63ba86d39cf31e56043",
    "cifar10-resnet20": "1f8be2c8d4c67d8f23f63763ad238ade1328a64cbc180619658b9598f36bd054",
    "cifar10-resnet20-4bit": "53a05c8d0f65f735974ff8a8b755984488fb0d3663e60ca2a626e6828bc83977",
    "cifar10-resnet20-4bit-sparse":
        "72ecbdb48b9c654d63de81ca83a4ac7bd99749c6e116c54abc69b308af5bedd3",
    "cifar10-small": "ac401273d51c1436197bb1a24379ad9b4cd14bc1aa75bde1e48cd3ccac45f08b",
    "digits": "9f22b9b41ad0a5ebf731bb1334aa3ebbf58ff64cb927f3cab270d735f01a27b0",
    "digits-vgg": "b921029542b83ca804194abb0b971ac722de93606a65f6dbe2f52491dfb2c839",
    "fsdd": "a5877192825b11a51daa166fffb48080a54eb4ba40952b3d051a78e23e9427af",
    "mnist": "a77e6b624f483fb0c60a57cff0daa22607e68046d7007c678fe0bc661dfa9e6b",
    "mnist-4bit": "340de1ad799d86c97226f595201d6ee478dda0838c94bdd0a582d89d717133df",
    "nmnist": "912626214c5127d314115d4bbc2b8f7d49b4733b6cdd8b035654b33ac8b2a607",
    "nmnist-stream": "ff0df2f11eb740b39efb17aabbf9d2b56468b2ca0612992ec4c1c0b49f1d2334",
}
# fmt: on


@pytest.mark.parametrize("name", zoo.names())
def test_a_network_of_the_zoo_keeps_its_digest_and_its_bytes(name: str) -> None:
    network = file.load(zoo.find(name))
    assert file.digest(network) == DIGESTS[name]
    assert file.dumps(network) == zoo.find(name).read_bytes()


def test_max_pools_and_shortcuts_are_in_networks_of_the_zoo() -> None:
    """What users bring most, so that every stage can be tried with it."""
    pooled = file.load(zoo.find("digits-vgg")).layers
    assert [layer.name for layer in pooled if layer.pool is not None] == [
        "layers.1.neuron",
        "layers.4.neuron",
        "layers.7.neuron",
    ]
    assert any(len(layer.paths) > 1 for layer in file.load(zoo.find("digits")).layers)


def test_the_promised_networks_ship_and_are_small() -> None:
    assert set(SHIPPED) <= set(zoo.names())
    assert all(zoo.find(name).stat().st_size < 100_000 for name in SMALL)
    assert zoo.find(LARGE).stat().st_size < 18_000_000
    assert all(zoo.find(name).stat().st_size < most for name, most in PACKED.items())
    assert sum(zoo.find(name).stat().st_size for name in zoo.names()) < 45_000_000


@pytest.mark.parametrize("name", SHIPPED)
def test_a_networks_evaluation_is_of_this_very_network(name: str) -> None:
    facts = json.loads(zoo.evaluation(name).read_text(encoding="utf-8"))
    network = file.load(zoo.find(name))
    assert facts["digest"] == file.digest(network)
    assert facts["dataset"] == network.meta["dataset"]
    assert facts["float_accuracy"] == network.meta["float_accuracy"]


def test_the_digits_evaluation_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate_main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(zoo.evaluation("digits").read_text(encoding="utf-8"))
    assert found["accuracy"] >= 97.5


@pytest.mark.parametrize(("name", "least"), [("mnist", 99.2), ("mnist-4bit", 99.0)])
def test_mnist_keeps_its_promises(name: str, least: float) -> None:
    facts = json.loads(zoo.evaluation(name).read_text(encoding="utf-8"))
    assert facts["images"] == 10_000
    assert facts["accuracy"] >= least
    assert abs(facts["accuracy"] - facts["float_accuracy"]) <= 0.1
    assert facts["parameters"] <= 20_000
    assert facts["acs_bit_sparse"] <= 120_000


@pytest.mark.parametrize(
    ("name", "least", "bits"),
    [
        (LARGE, 97.4, 8),
        ("cifar10-resnet20-4bit", 97.25, 4),
        ("cifar10-resnet20-4bit-sparse", 97.25, 4),
        ("cifar10-small", 96.5, 4),
        ("cifar10-onchip", 92.0, 4),
    ],
)
def test_cifar_networks_keep_their_promises_and_ship_with_their_runs(
    name: str, least: float, bits: int
) -> None:
    facts = json.loads(zoo.evaluation(name).read_text(encoding="utf-8"))
    assert facts["images"] == 10_000
    assert facts["weight_bits"] == bits
    assert min(facts["accuracy"], facts["float_accuracy"]) >= least
    assert abs(facts["accuracy"] - facts["float_accuracy"]) <= 0.1
    beside = zoo.find(name)
    config = json.loads(beside.with_suffix(".config.json").read_text(encoding="utf-8"))
    assert config == file.load(beside).meta["config"]
    text = beside.with_suffix(".metrics.jsonl").read_text(encoding="utf-8")
    epochs = [json.loads(line) for line in text.splitlines()]
    assert [line["epoch"] for line in epochs] == list(range(1, config["train"]["epochs"] + 1))
    assert epochs[-1]["test_accuracy"] == facts["float_accuracy"]


def test_the_sparse_network_keeps_its_promise() -> None:
    facts = json.loads(zoo.evaluation("cifar10-resnet20-4bit-sparse").read_text(encoding="utf-8"))
    assert facts["accuracy"] >= 97.3
    assert facts["acs_bit_sparse"] <= 750e6


def test_the_page_shows_the_zoo_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo_main(["--markdown"]) == 0
    table = capsys.readouterr().out
    page = (Path(__file__).parents[3] / "docs" / "zoo.md").read_text(encoding="utf-8")
    shown = page.partition("zoo --markdown -->\n")[2].partition("<!-- /zoo -->")[0]
    assert shown == table


def test_the_zoo_prints_as_a_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert zoo_main([]) == 0
    assert "mnist-4bit" in capsys.readouterr().out
    assert zoo_main(["--json"]) == 0
    assert set(SHIPPED) <= set(json.loads(capsys.readouterr().out))
