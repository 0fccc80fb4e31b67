"""Step by step or all at once: the same levels, to the bit."""

import copy
import re

import pytest
import torch
from torch import Tensor, nn

from lbq_hw.train import (
    LBQ,
    BinaryLIF,
    InputSpec,
    MergeTime,
    QuantReLU,
    Repeat,
    Ternary,
    TimeMean,
    detach_state,
    keep_state,
    prepare,
    reset_state,
    set_timesteps,
)
from lbq_hw.train.neurons import ILIF, LMHT, IntegrateFire

STEPS = 100


def currents(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_every_neuron_can_be_made_without_arguments():
    for kind in (LBQ, BinaryLIF, Ternary, QuantReLU, ILIF, LMHT, IntegrateFire):
        neuron = kind()
        assert neuron.timesteps == 1
        assert neuron(torch.full((2, 3), 0.5)).shape == (2, 3)
    assert LBQ().capacity == QuantReLU().capacity == ILIF().capacity == 5


@pytest.mark.parametrize("kind", [LBQ, BinaryLIF, Ternary, QuantReLU])
def test_100_single_steps_are_one_call_of_100_timesteps_to_the_bit(kind):
    neuron, x = kind(), currents(STEPS, 4, 6)
    keep_state(neuron)
    single = torch.cat([neuron(frame) for frame in x])
    keep_state(neuron, False)
    set_timesteps(neuron, STEPS)
    assert torch.equal(single, neuron(x.flatten(0, 1)))
    assert single.unique().numel() > 1


class Net(nn.Module):
    """All its sums are exact, so that the order in which torch adds does not matter."""

    def __init__(self) -> None:
        super().__init__()
        self.merge, self.conv, self.pool = MergeTime(), nn.Conv2d(1, 4, 1), nn.AvgPool2d(2)
        self.first = LBQ(gamma0=0.5, learn_gamma=False)
        self.second = LBQ(gamma0=0.25, learn_gamma=False)
        self.hidden, self.fc, self.mean = nn.Conv2d(4, 8, 1), nn.Linear(128, 10), TimeMean(1)
        with torch.no_grad():
            for parameter in (*self.conv.parameters(), *self.hidden.parameters()):
                parameter.copy_((16 * parameter).round() / 16)
            for parameter in self.fc.parameters():
                parameter.copy_((64 * parameter).round() / 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.conv(self.merge(x)))
        return self.mean(self.fc(self.pool(self.second(self.hidden(x))).flatten(1)))


@pytest.mark.parametrize("prepared", [False, True])
def test_a_whole_network_streams_as_it_runs_at_once(prepared):
    torch.manual_seed(0)
    spec = InputSpec(shape=(1, 8, 8), static=False, bits=8)
    model = prepare(Net(), spec).eval() if prepared else Net().eval()
    x = currents(STEPS, 4, 1, 8, 8).round()
    with torch.no_grad():
        keep_state(model)
        single = torch.stack([model(frame[None]) for frame in x])
        reset_state(model)
        by_tens = []
        set_timesteps(model, 10)
        for frames in x.split(10):
            by_tens.append(model(frames))
        keep_state(model, False)
        set_timesteps(model, STEPS)
        whole = model(x)
    assert torch.equal(single.mean(0), whole)
    assert torch.allclose(torch.stack(by_tens).mean(0), whole, atol=1e-6)  # means of means
    assert whole.unique().numel() > 10


def test_a_state_is_read_kept_reset_and_cut():
    neuron, x = LBQ(beta=0.5), torch.full((1, 1), 0.75, requires_grad=True)
    keep_state(neuron)
    assert neuron.v is None
    neuron(x)
    assert neuron.v is not None
    assert neuron.v.item() == 0.75
    neuron(x)  # 0.375 + 0.75 fires one level of step 1
    assert neuron.v.item() == 0.125
    out = neuron(x)
    assert out.grad_fn is not None
    (through,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    detach_state(neuron)
    assert neuron.v.grad_fn is None
    out = neuron(x)
    (cut,) = torch.autograd.grad(out.sum(), x)
    assert cut.item() == 1.0  # of this timestep alone
    assert through.item() != 1.0
    assert copy.deepcopy(neuron).v is None
    reset_state(neuron)
    assert neuron.v is None
    neuron(x)
    assert neuron.v.item() == 0.75
    message = (
        "current must have the shape (1, 1) per timestep that the state has, not (2, 1): call "
        "reset_state before other images"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        neuron(torch.zeros(2, 1))


def test_timesteps_are_set_in_neurons_and_time_layers():
    model = nn.Sequential(Repeat(2), LBQ(timesteps=2), TimeMean(2))
    set_timesteps(model, 4)
    assert model(torch.ones(3, 5)).shape == (3, 5)
    with pytest.raises(ValueError, match=r"^timesteps must be at least 1, not 0$"):
        set_timesteps(model, 0)
    message = (
        "an LM-HT neuron has weights for its timesteps: build the model with timesteps = 4 instead"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        set_timesteps(LMHT(timesteps=2), 4)


def test_a_neuron_that_begins_every_call_anew_can_not_stream():
    message = "1: a ILIF cannot keep its state between calls; give it all timesteps in one call"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        keep_state(nn.Sequential(LBQ(), ILIF()))
