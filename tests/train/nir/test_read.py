"""NIR graphs of other frameworks: read with equal spikes, or refused with a mend."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import nir
import numpy as np
import pytest
import torch
from foreign import SPEC, TIMESTEPS, digits, emitted, per_neuron, seen, trained
from snntorch.export_nir import export_to_nir as export_snntorch
from spikingjelly.activation_based.nir_exchange import export_to_nir as export_spikingjelly
from torch import nn

from lbq_hw.train.graph import GraphError
from lbq_hw.train.nir import read
from lbq_hw.train.nir.node import Reading, Reset

HERE = Path(__file__).parent
PLAIN = Reading(dt=1.0, reset="zero", strict=True)


def images_of_test() -> torch.Tensor:
    return SPEC.normalize(torch.from_numpy(digits("test").images))


def spikes_of(path: Path, x: torch.Tensor, timesteps: int = TIMESTEPS, **told) -> torch.Tensor:
    """Spikes of the last layer of the graph in a file."""
    graph, reading = read.load(path, **told)
    model = read.module(graph, reading, timesteps=timesteps, static=x.dim() == 4)
    return list(seen(model, x.double(), timesteps).values())[-1]


@pytest.mark.filterwarnings("ignore:nirtorch.extract_nir_graph:DeprecationWarning")
@pytest.mark.parametrize(("kind", "reset"), [("subtract", "late"), ("zero", None)])
def test_a_file_of_snntorch_has_its_spikes(tmp_path: Path, kind: str, reset: Reset | None) -> None:
    net, images = per_neuron(trained(f"snntorch {kind}"), kind), images_of_test()
    with torch.no_grad():
        theirs = emitted(net, images)
        graph = export_snntorch(net, images[:1], ignore_dims=[0])
    nir.write(tmp_path / "net.nir", graph)
    assert torch.equal(spikes_of(tmp_path / "net.nir", images, reset=reset), theirs.double())


def test_a_file_of_spikingjelly_has_its_spikes(tmp_path: Path) -> None:
    whole, images = trained("spikingjelly hard"), images_of_test()
    net = nn.Sequential(folded(whole[0], whole[1]), *whole[2:])  # its export knows no norms
    with torch.no_grad():
        theirs = emitted(net, images)
        export_spikingjelly(net, images[:1], save_path=tmp_path / "net.nir")
    assert 0.02 < theirs.mean() < 0.5
    assert torch.equal(spikes_of(tmp_path / "net.nir", images, strict=False), theirs.double())


def folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    return torch.nn.utils.fuse_conv_bn_eval(conv, norm)


def test_a_file_of_sinabs_has_its_spikes() -> None:
    made = np.load(HERE / "sinabs.npz")
    frames = torch.from_numpy(made["frames"]).transpose(0, 1)
    found = spikes_of(HERE / "sinabs.nir", frames, timesteps=len(frames), strict=False)
    assert made["spikes"].sum() > 5
    np.testing.assert_array_equal(found.transpose(0, 1).numpy() > 0, made["spikes"])


def test_what_a_file_does_not_say_is_taken_from_its_version(tmp_path: Path) -> None:
    """sinabs wrote with nir 1.0.4, which subtracted; later versions reset to v_reset."""
    assert read.load(HERE / "sinabs.nir")[1] == Reading(dt=1.0, reset="subtract", strict=True)
    nir.write(tmp_path / "net.nir", chain(LIF))
    assert read.load(tmp_path / "net.nir")[1] == Reading(dt=1e-4, reset="zero", strict=True)
    told = read.load(tmp_path / "net.nir", dt=0.5, reset="late", strict=False)[1]
    assert told == Reading(dt=0.5, reset="late", strict=False)


def test_a_file_that_is_no_nir_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.nir"
    with pytest.raises(read.NirError) as missing:
        read.load(path)
    assert str(missing.value) == f"there is no {path}: give a NIR graph that nir.write made"
    with pytest.raises(read.NirError) as folder:
        read.load(tmp_path)
    assert str(folder.value) == f"{tmp_path} is not a file: give a NIR graph that nir.write made"
    path.write_bytes(b"nothing")
    with pytest.raises(read.NirError) as caught:
        read.load(path)
    reason = "file signature not found"
    assert str(caught.value) == f"{path} is not a NIR file ({reason}): give one that nir.write made"


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"dt": 1, "reset": "zero", "strict": true}', '{"dt": 0.1, "reset": "no"}']
)
def test_a_note_of_this_project_that_it_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    graph = nir.NIRGraph.from_list(nir.Input(np.array([3])), nir.Affine(np.eye(3), ONES), LIF)
    graph.metadata[read.META] = text
    nir.write(tmp_path / "net.nir", graph)
    with pytest.raises(read.NirError, match="metadata 'lbq' is not what this project writes"):
        read.load(tmp_path / "net.nir")


ONES = np.ones(3)
LIF = nir.LIF(tau=4 * ONES, r=ONES, v_leak=0 * ONES, v_threshold=ONES)


def cuba(tau_syn: float) -> nir.CubaLIF:
    return nir.CubaLIF(
        tau_syn=tau_syn * ONES,
        tau_mem=4 * ONES,
        r=4 * ONES,
        v_leak=0 * ONES,
        v_threshold=ONES,
        w_in=2 * ONES,
    )


def chain(*nodes: nir.NIRNode) -> nir.NIRGraph:
    """Nodes behind a linear layer of 4 inputs and 3 outputs, named n0, n1, ..."""
    named = {
        "input": nir.Input(input_type={"input": np.array([4])}),
        "fc": nir.Linear(weight=np.arange(12.0).reshape(3, 4) / 12),
        **{f"n{number}": node for number, node in enumerate(nodes)},
        "output": nir.Output(output_type={"output": np.array([3])}),
    }
    names = list(named)
    return nir.NIRGraph(named, list(pairwise(names)), type_check=False)


def test_a_synapse_without_dynamics_is_a_weight() -> None:
    x = torch.rand(6, 5, 4, dtype=torch.float64)
    model = read.module(chain(cuba(1.0)), PLAIN, timesteps=6, static=False)
    [found] = seen(model, x, 6).values()
    current = x @ torch.arange(12.0, dtype=torch.float64).reshape(3, 4).T / 12
    v = torch.zeros(5, 3, dtype=torch.float64)
    for step, spikes in zip(2 * current, found, strict=True):
        v = 0.75 * v + step
        assert torch.equal(spikes, (v > 1).double())
        v = v * (v <= 1)
    assert 0.1 < found.mean() < 0.9


def test_edges_into_one_node_are_added() -> None:
    graph = chain(LIF)
    graph.nodes["other"] = nir.Linear(weight=np.eye(3, 4))
    graph.edges += [("input", "other"), ("other", "n0")]
    x = torch.rand(6, 5, 4, dtype=torch.float64)
    weight = graph.nodes["fc"].weight + np.eye(3, 4)
    one = chain(LIF)
    one.nodes["fc"] = nir.Linear(weight=weight)
    found, wanted = (
        list(seen(read.module(made, PLAIN, timesteps=6, static=False), x, 6).values())
        for made in (graph, one)
    )
    assert 0.1 < found[0].mean() < 0.9
    assert torch.equal(found[0], wanted[0])


@pytest.mark.parametrize(
    ("graph", "violation"),
    [
        (
            chain(cuba(3.0)),
            "n0: its synapse has dynamics (tau_syn is 3 timesteps); use LIF, or a tau_syn of one "
            "timestep",
        ),
        (
            chain(nir.Delay(delay=ONES), LIF),
            "n0: it delays its input; use a network without delays",
        ),
        (
            chain(nir.LI(tau=4 * ONES, r=ONES, v_leak=0 * ONES)),
            "n0: its membrane is read, and leaks; end the network with a linear layer, or with IF",
        ),
        (
            chain(
                nir.LIF(tau=np.array([2.0, 3.0, 3.0]), r=ONES, v_leak=0 * ONES, v_threshold=ONES)
            ),
            "n0: tau differs from neuron to neuron; use one time constant per layer",
        ),
        (
            chain(nir.LIF(tau=0.5 * ONES, r=ONES, v_leak=0 * ONES, v_threshold=ONES)),
            "n0: its time constant is 0.5 timesteps, less than 1; give the dt with which it was "
            "trained",
        ),
        (
            chain(nir.LIF(tau=4 * ONES, r=ONES, v_leak=0.2 * ONES, v_threshold=ONES)),
            "n0: its membrane leaks to v_leak, and not to v_reset; train it with v_leak = v_reset "
            "= 0",
        ),
        (
            chain(nir.IF(r=ONES, v_threshold=0 * ONES)),
            "n0: its threshold is not above its resting potential; train it with a higher "
            "threshold",
        ),
        (
            chain(nir.Threshold(threshold=ONES)),
            "n0: Threshold has no integer form; use Conv2d, Linear, Affine, AvgPool2d, SumPool2d, "
            "Flatten, IF, LIF or CubaLIF",
        ),
        (
            chain(chain(LIF)),
            "n0: it is a graph of its own; give its nodes one by one, without recurrence",
        ),
    ],
)
def test_what_has_no_exact_form_is_refused_with_place_reason_and_mend(
    graph: nir.NIRGraph, violation: str
) -> None:
    with pytest.raises(GraphError) as caught:
        read.module(graph, PLAIN, timesteps=2, static=False)
    assert str(caught.value) == f"the model has no integer form (1 violation):\n  {violation}"


def test_recurrence_is_refused_with_the_loop() -> None:
    graph = chain(LIF, nir.Linear(weight=np.eye(3)), LIF)
    graph.edges.append(("n1", "n0"))
    with pytest.raises(GraphError, match="it is recurrent; use a network without loops"):
        read.module(graph, PLAIN, timesteps=2, static=False)


def test_every_reason_is_told_at_once() -> None:
    with pytest.raises(GraphError) as caught:
        read.module(chain(nir.Delay(delay=ONES), cuba(2.0)), PLAIN, timesteps=2, static=False)
    assert [violation.path for violation in caught.value.violations] == ["n0", "n1"]
