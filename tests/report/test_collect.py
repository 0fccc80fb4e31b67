"""Parts that are made of the project's own objects say what those say."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import tapes
from numpy.typing import NDArray

from lbq_hw import file, interpreter, zoo
from lbq_hw.compiler import Program, compile_network
from lbq_hw.cycles import means, predict
from lbq_hw.datasets import load
from lbq_hw.datasets.fitting import Samples
from lbq_hw.golden import energy
from lbq_hw.golden.counts import Counts
from lbq_hw.network import Network
from lbq_hw.report import collect
from lbq_hw.report.facts import Cycles, Neurons
from lbq_hw.sim.drawn.networks import random_images

Activity = tuple[Counts, Neurons, Cycles]


def test_accuracy_comes_from_an_evaluation_of_the_same_network_only(network: Network) -> None:
    evaluation = json.loads(zoo.evaluation("digits").read_text())
    found = collect.model(network, evaluation=evaluation)
    assert found.accuracy == evaluation["accuracy"]
    assert found.accuracy_images == evaluation["images"]
    assert found.digest == file.digest(network)
    other = collect.model(network, evaluation=evaluation | {"digest": "0" * 64})
    assert other.accuracy is None
    assert other.float_accuracy == network.meta["float_accuracy"]


def test_classes_have_their_names(network: Network) -> None:
    assert collect.model(network).class_names == tuple("0123456789")


def test_histograms_agree_with_the_counts(network: Network, activity: Activity) -> None:
    counts, neurons, _ = activity
    assert neurons.images == counts.images
    spiking = [layer for layer in counts.layers if layer.active is not None]
    assert [layer.name for layer in neurons.layers] == [layer.name for layer in spiking]
    for found, counted in zip(neurons.layers, spiking, strict=True):
        layer = network.by_name[found.name]
        assert len(found.histogram) == found.capacity + 1 == layer.capacity + 1
        assert found.active == counted.active
        total = sum(found.histogram)
        mean = sum(k * number for k, number in enumerate(found.histogram)) / total
        assert mean == counted.mean_level
        assert found.single == found.histogram[1] / (total - found.histogram[0])
        assert found.gamma == layer.gamma


def test_operations_and_energies_are_those_that_were_counted(activity: Activity) -> None:
    counts, _, _ = activity
    found = collect.operations(counts)
    assert sum(layer.acs_bit_sparse for layer in found.layers) == counts.work.bit_sparse
    assert sum(layer.acs_unary for layer in found.layers) == counts.work.unary
    prices = {(entry.prices, entry.execution): entry.mj for entry in found.energy}
    report = energy.report(counts)
    assert prices["integer", "lbq"] == report["integer"]["lbq"]["mj"]
    assert prices["paper", "ann"] == report["paper"]["ann"]["mj"]
    assert len(prices) == len(found.energy) == 7


def test_the_memory_map_is_the_programs(program: Program) -> None:
    found = collect.memory(program)
    assert {use.field: use.used for use in found.memories} == program.usage
    weights = next(use for use in found.memories if use.field == "weight_rows")
    assert weights.bits == program.config.lanes * program.config.weight_bits
    assert [(block.name, block.base, block.end) for block in found.tensors] == [
        (tensor.name, tensor.base, tensor.end) for tensor in program.tensors.values()
    ]
    assert found.weights[-1].end == program.usage["weight_rows"]
    assert all(a.end == b.base for a, b in zip(found.weights, found.weights[1:], strict=False))


def simulated(cycles: Cycles) -> dict[str, Any]:
    """The object of ``python -m sim --json`` for a core that ran as predicted."""
    keys = ("name", "cycles", "events", "null_events", "acs_bit_sparse", "utilisation")
    layers = [{key: asdict(layer)[key] for key in keys} for layer in cycles.layers]
    return {
        "bit_exact": True,
        "difference": None,
        "images": cycles.images,
        "cycles": cycles.cycles,
        "utilisation": cycles.utilisation,
        "sim_cycles_per_second": 1.0,
        "layers": layers,
    }


def test_a_prediction_adds_limits_to_what_was_simulated(activity: Activity) -> None:
    _, _, predicted = activity
    found = collect.cycles(simulated(predicted), model=predicted)
    assert found == replace(predicted, source="rtl")
    assert all(layer.limit for layer in found.layers)


def test_a_prediction_of_other_cycles_adds_nothing(activity: Activity) -> None:
    _, _, predicted = activity
    facts = simulated(predicted)
    facts["layers"][0]["cycles"] += 1
    found = collect.cycles(facts, model=predicted)
    assert [layer.limit is None for layer in found.layers] == [True, False, False, False]


def test_a_prediction_sums_to_the_whole(activity: Activity) -> None:
    _, _, predicted = activity
    assert predicted.source == "model"
    assert predicted.cycles == sum(layer.cycles for layer in predicted.layers)
    work = sum(layer.acs_bit_sparse for layer in predicted.layers)
    assert predicted.utilisation == work / (16 * predicted.cycles)


def test_an_outcome_of_the_simulator_is_kept(activity: Activity) -> None:
    facts = simulated(activity[2]) | {"bit_exact": False, "difference": "image 0, ..."}
    found = collect.simulation(facts, simulator="Verilator 5.006")
    assert (found.bit_exact, found.difference) == (False, "image 0, ...")


def test_a_layer_may_be_limited_by_external_memory() -> None:
    network, config = tapes.drawn(1)
    program = compile_network(network, config)
    [image] = random_images(network, 1, 0)
    cycles = predict(program, image, interpreter.run(program, image).levels)
    assert any(layer.wait_cycles for layer in cycles)
    slow = [replace(layer, wait_cycles=10 * layer.cycles) for layer in cycles]
    found = collect.predicted(means([slow], adders=config.adders))
    assert {layer.limit for layer in found.layers} == {"memory"}


def five_mistakes() -> tuple[Samples, NDArray[np.int64], NDArray[np.int64]]:
    """Test images, their labels, and answers of which five are wrong."""
    samples = Samples.of(load("digits", split="test"))
    labels = samples.labels
    assert labels is not None
    taken = labels.copy()
    taken[:5] = (labels[:5] + 1) % 10
    return samples, labels, taken


def test_answers_need_labels_and_count_every_pair(network: Network) -> None:
    samples, labels, taken = five_mistakes()
    found = collect.answers(network, samples, taken, drawn_of=900)
    assert found is not None
    assert (found.images, found.right, found.drawn_of) == (len(labels), len(labels) - 5, 900)
    assert found.names == tuple("0123456789")
    for label, row in enumerate(found.confusion):
        assert sum(row) == np.sum(labels == label)
    wrong = {(int(a), int(b)) for a, b in zip(labels[:5], taken[:5], strict=True)}
    assert {(one.label, one.answer) for one in found.mistakes} == wrong
    assert sum(one.count for one in found.mistakes) == 5
    assert len(found.samples) == collect.SHOWN
    assert found.by_step == ()
    assert collect.answers(network, replace(samples, labels=None), taken) is None


def test_answers_of_recordings_are_counted_after_each_timestep(network: Network) -> None:
    samples, labels, taken = five_mistakes()
    found = collect.answers(network, samples, np.stack([(labels + 1) % 10, labels, taken]))
    assert found is not None
    assert found.by_step == (0, 1, found.right / len(labels))
    assert found.right == len(labels) - 5
