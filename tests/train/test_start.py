"""Runs that go on from an integer network."""

import json
import re
import shutil

import pytest

from lbq_hw import zoo
from lbq_hw.train import checkpoint, loop, start
from lbq_hw.train.neurons import LBQ
from lbq_hw.train.run_folder import RunError
from lbq_hw.train.settings import config
from lbq_hw.train.start import StartError


def test_a_run_goes_on_from_an_integer_network_with_its_accuracy(tmp_path):
    """Whether its weights are float then, or of as many bits as the network's."""
    found = json.loads(zoo.evaluation("digits").read_text(encoding="utf-8"))["accuracy"]
    for bits in (0, 8):
        still = ["train.init=digits", "train.epochs=1", "train.lr=1e-9", "train.device=cpu"]
        chosen = config.load("digits", [*still, f"train.weight_bits={bits}"])
        result = loop.train(chosen, tmp_path / f"{bits}")
        assert result["test_accuracy"] == pytest.approx(found, abs=1.0)
        assert result["train_accuracy"] > 95  # with the statistics of batches, too


def test_tail_strengths_are_read_from_the_report_beside_a_network(tmp_path):
    shutil.copy(zoo.find("digits"), tmp_path / "net.lbq")
    init = str(tmp_path / "net.lbq")
    assert start.load_network(init)[1] == {}
    layers = [{"name": "residual.neuron", "lambda": 0.75}, {"name": "logits"}]
    (tmp_path / "net.json").write_text(json.dumps({"layers": layers}), encoding="utf-8")
    chosen = config.load("digits")
    model = checkpoint.build(chosen, chosen.data.spec((1, 8, 8), static=True), 10, init=init)
    neuron = model.get_submodule("residual.neuron")
    assert isinstance(neuron, LBQ)
    assert neuron.eta.sigmoid().item() == pytest.approx(0.75)


def test_an_integer_network_of_another_shape_is_no_start():
    chosen = config.load("digits", ["model.channels=[4, 6]"])
    message = (
        "train.init = 'digits' holds another network than this configuration's: its layers are not "
        "those of the model"
    )
    with pytest.raises(StartError, match=f"^{re.escape(message)}$"):
        checkpoint.build(chosen, chosen.data.spec((1, 8, 8), static=True), 10, init="digits")


def test_an_integer_network_has_seen_what_a_run_holds_out(tmp_path):
    chosen = config.load("digits", ["train.init=digits", "data.validation=100"])
    message = "train.init = 'digits' has trained on images that data.validation holds out"
    with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
        loop.train(chosen, tmp_path)
