"""Networks of sinabs: taken up with equal spikes, clamped membranes too, or refused with a mend.

sinabs wants an older nir than this project. So it is installed here without its dependencies, in a
folder of its own, and only its layers are imported.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from foreign import seen
from torch import nn

from lbq_hw import golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.graph import GraphError

VERSION = "3.1.3"


@pytest.fixture(scope="module")
def sinabs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The layers, resets and spikes of sinabs."""
    folder = tmp_path_factory.mktemp("sinabs")
    install = ["pip", "install", "--quiet", "--no-deps", "--retries", "0", "--timeout", "20"]
    command = [sys.executable, "-m", *install, "--target", str(folder), f"sinabs=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"sinabs cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    package = types.ModuleType("sinabs")  # its own __init__ imports what is not installed
    package.__path__ = [str(folder / "sinabs")]
    sys.modules["sinabs"] = package
    layers, activation = (importlib.import_module(f"sinabs.{part}") for part in NAMES)
    assert Path(str(layers.__file__)).is_relative_to(folder)
    yield types.SimpleNamespace(**vars(activation) | vars(layers))
    for name in [name for name in sys.modules if name.partition(".")[0] == "sinabs"]:
        del sys.modules[name]


NAMES = ("layers", "activation")
Make = Callable[[Any], nn.Module]


@pytest.mark.parametrize("floor", [None, -0.4])
@pytest.mark.parametrize("reset", ["MembraneSubtract", "MembraneReset"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("IAFSqueeze", {}),
        ("LIFSqueeze", {"tau_mem": 3.0}),
        ("LIFSqueeze", {"tau_mem": 3.0, "norm_input": False}),
    ],
)
def test_every_option_of_a_neuron_is_exact(
    sinabs: Any, name: str, options: dict, reset: str, floor: float | None
) -> None:
    node = getattr(sinabs, name)(
        **options,
        num_timesteps=1,
        spike_threshold=torch.tensor(0.8),
        spike_fn=sinabs.SingleSpike,
        reset_fn=getattr(sinabs, reset)(),
        min_v_mem=floor,
    ).double()
    torch.manual_seed(1)
    x = 2 * torch.randn(20, 50, 3, dtype=torch.float64)
    with torch.no_grad():
        theirs = torch.stack([node(step) for step in x])
        [ours] = seen(adopt(nn.Sequential(node), timesteps=20, static=False), x, 20).values()
        node.min_v_mem, node.v_mem = None, torch.zeros(0)
        free = torch.stack([node(step) for step in x])
    assert 0.02 < theirs.mean() < 0.9
    assert torch.equal(ours, theirs)
    assert torch.equal(free, theirs) == (floor is None)


def test_a_clamped_network_becomes_integers_with_floors_per_channel(sinabs: Any) -> None:
    """Floors and thresholds per channel; what a user has set stays as it was."""
    torch.manual_seed(2)
    shape = {"batch_size": 4, "spike_fn": sinabs.SingleSpike}
    least = torch.tensor([-0.2, -0.5, -1.0]).reshape(3, 1, 1)
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3, bias=False),
        sinabs.IAFSqueeze(**shape, min_v_mem=least),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(27, 4),
        sinabs.LIFSqueeze(**shape, tau_mem=5.0, min_v_mem=-1.0),
    )
    with torch.no_grad():
        net(torch.rand(4, 1, 8, 8))
        before = net[1].v_mem.clone()
    model = adopt(net, timesteps=6, static=True)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8)
    raw = torch.randint(0, 256, (16, 1, 8, 8), dtype=torch.uint8).numpy()
    network = integer_network(model, spec, samples=raw)
    assert torch.equal(net[1].v_mem, before)
    assert (net[1].batch_size, net[1].num_timesteps) == (4, -1)
    first, second = (layer.neuron for layer in network.layers[:2])
    assert first is not None
    assert second is not None
    assert first.floor is not None
    assert second.floor is not None
    ratios = first.floor / first.theta
    assert abs(ratios - [-0.2, -0.5, -1.0]).max() < 0.01
    assert abs(second.floor / second.theta + 1).max() < 0.01
    v = golden.run(network, raw, keep="all").traces[network.layers[0].name].v
    assert v is not None
    assert (v.min(axis=(0, 1, 3, 4)) == first.floor).all()


@pytest.mark.parametrize(
    ("make", "violation"),
    [
        (
            lambda s: s.IAFSqueeze(batch_size=1),
            "its spike_fn is MultiSpike, which subtracts once per spike; build it with "
            "spike_fn=SingleSpike",
        ),
        (
            lambda s: s.IAF(spike_fn=s.SingleSpike),
            "sinabs' IAF has no integer form; use IAFSqueeze or LIFSqueeze",
        ),
        (
            lambda s: s.IAFSqueeze(batch_size=1, tau_syn=2.0, spike_fn=s.SingleSpike),
            "its synapse has dynamics; build it with tau_syn=None",
        ),
        (
            lambda s: s.IAFSqueeze(batch_size=1, min_v_mem=0.5, spike_fn=s.SingleSpike),
            "its min_v_mem is above 0; train it with a min_v_mem of at most 0",
        ),
        (
            lambda s: s.IAFSqueeze(
                batch_size=1, spike_fn=s.SingleSpike, reset_fn=s.MembraneReset(reset_value=0.5)
            ),
            "its reset_fn is MembraneReset(reset_value=0.5); use MembraneSubtract() or "
            "MembraneReset()",
        ),
    ],
)
def test_what_has_no_exact_form_is_refused(sinabs: Any, make: Make, violation: str) -> None:
    with pytest.raises(GraphError) as caught:
        adopt(nn.Sequential(nn.Flatten(), make(sinabs)), timesteps=2, static=True)
    assert str(caught.value) == f"the model has no integer form (1 violation):\n  1: {violation}"
