"""Layers whose paths meet: which of them share steps, in which units, and what weak channels do."""

import math

import pytest
import torch
from torch import Tensor, nn

from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import GraphError
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.neurons import LBQ
from lbq_hw.train.preparation import prepare
from lbq_hw.train.quantize import MAX_CHOSEN_EXPONENT, Deployed, codes
from lbq_hw.train.step_group import find

SPEC = InputSpec(shape=(2, 4, 4), static=True, bits=8)


def lbq(gamma0: float = 0.5) -> LBQ:
    return LBQ(timesteps=1, capacity=5, gamma0=gamma0)


class Net(nn.Module):
    """Two convolutions `a` and `b` of levels and `c` of pixels; a subclass says how they meet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.n0 = nn.Conv2d(2, 3, 1), lbq(0.25)
        self.a, self.b, self.c = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1), nn.Conv2d(2, 4, 1)
        self.norm_a, self.norm_b = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.n1, self.n2, self.n3 = lbq(), lbq(), lbq()
        self.fc = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.body(x, self.n0(self.stem(x))).flatten(1))

    def body(self, x: Tensor, s: Tensor) -> Tensor:
        raise NotImplementedError


class Alone(Net):
    def body(self, x, s):  # noqa: ARG002
        return self.n1(self.norm_a(self.a(s)))


class Meeting(Net):
    def body(self, x, s):  # noqa: ARG002
        return self.n1(self.norm_a(self.a(s)) + self.norm_b(self.b(s)))


class WithPixels(Net):
    def body(self, x, s):
        return self.n1(self.a(s) + self.c(x))


class Stream(Net):
    """`a` reaches two neurons; what it meets `b` under is the same norm for both."""

    def body(self, x, s):  # noqa: ARG002
        stream = self.a(s)
        stream = stream + self.b(s) + self.n1(self.norm_a(stream))
        return self.n2(self.norm_b(stream))


class Inconsistent(Net):
    """`a` and `b` meet twice, once with a norm on one of them."""

    def body(self, x, s):  # noqa: ARG002
        a, b = self.a(s), self.b(s)
        return self.n3(self.n1(self.norm_a(a) + b) + self.n2(a + b))


class TwoWays(Net):
    def body(self, x, s):  # noqa: ARG002
        a = self.a(s)
        return self.n1(self.norm_a(a) + self.norm_b(a))


def groups(model: nn.Module) -> list[set[str]]:
    root = trace(model)
    return [{b.synapse.path for b in g.bindings} for g in find(analyze(root, SPEC), SPEC)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Alone, [{"fc"}, {"stem"}, {"a"}]),
        (Meeting, [{"fc"}, {"stem"}, {"a", "b"}]),
        (WithPixels, [{"fc"}, {"stem"}, {"a", "c"}]),
        (Stream, [{"fc"}, {"stem"}, {"a", "b"}]),
    ],
)
def test_layers_that_meet_form_a_group(kind, expected):
    assert groups(kind()) == expected


def value_of_a_code(layer: Deployed, unit: float, gain: Tensor | float = 1.0) -> Tensor:
    """Per channel, what a code of 1 adds to the neuron, without the path's power of two."""
    step, exponent = layer.current_step()
    return unit * gain * step.flatten() / 2**exponent


def test_pixels_and_levels_share_a_scale_in_units_of_the_integer_network():
    ready = prepare(WithPixels().double(), SPEC, weight_bits=4)
    a, c = ready.get_submodule("a"), ready.get_submodule("c")
    gamma = ready.get_submodule("n0").gamma
    torch.testing.assert_close(value_of_a_code(a, gamma), value_of_a_code(c, 1 / 255))


def test_norms_gains_enter_the_scale_and_not_the_codes():
    model = Meeting().double()
    with torch.no_grad():
        model.norm_a.weight.copy_(torch.tensor([1.0, -2.0, 0.5, 4.0]))
        model.norm_b.running_var.fill_(4.0)
    ready = prepare(model, SPEC, weight_bits=4)
    a, b = ready.get_submodule("a"), ready.get_submodule("b")
    gain_a = torch.tensor([1.0, 2.0, 0.5, 4.0]).double() / math.sqrt(1 + 1e-5)
    ours = value_of_a_code(a, 0.25, gain_a)
    torch.testing.assert_close(ours, value_of_a_code(b, 0.25, 1 / math.sqrt(4 + 1e-5)))


def test_the_coarsest_wish_of_a_channel_is_granted_and_no_step_is_finer_than_wished():
    ready = prepare(Meeting().double(), SPEC, weight_bits=4)
    a, b = ready.get_submodule("a"), ready.get_submodule("b")
    ratios = torch.stack([(m.current_step()[0] / m.wanted_step()).flatten() for m in (a, b)])
    torch.testing.assert_close(ratios.amin(0), torch.ones(4).double())
    assert (ratios >= 1 - 1e-12).all()


@pytest.mark.parametrize("gain", [1e-2, 1e-6, 1e-30, 0.0])
def test_a_weak_channel_of_one_path_leaves_every_other_channel_alone(gain):
    model = Meeting()
    before = prepare(model, SPEC, weight_bits=4)
    with torch.no_grad():
        model.norm_a.weight[2] = gain
    after = prepare(model, SPEC, weight_bits=4)
    for name in ("a", "b"):
        (old, x), (new, y) = (m.get_submodule(name).current_step() for m in (before, after))
        assert x == y
        others = torch.tensor([0, 1, 3])
        assert torch.equal(old[others], new[others])
    b = after.get_submodule("b")
    weak, _ = after.get_submodule("a").current_step()
    assert not codes(model.a.weight, weak, 4)[2].any()
    torch.testing.assert_close(b.current_step()[0][2], b.wanted_step()[2])


@pytest.mark.parametrize(("factor", "exponent"), [(1, 0), (8, 3), (2.0**20, MAX_CHOSEN_EXPONENT)])
def test_a_larger_path_has_an_exponent(factor, exponent):
    model = Meeting()
    with torch.no_grad():
        model.b.weight.copy_(factor * model.a.weight)
    ready = prepare(model, SPEC, weight_bits=4)
    assert ready.get_submodule("a").current_step()[1] == 0
    assert ready.get_submodule("b").current_step()[1] == exponent


def test_gradients_reach_the_step_that_is_in_force_from_both_paths():
    model = Meeting().double()
    with torch.no_grad():
        model.b.weight.copy_(1.3 * model.a.weight)  # less than an octave: b's wishes hold
    ready = prepare(model, SPEC, weight_bits=4)
    a, b = ready.get_submodule("a"), ready.get_submodule("b")
    a.effective_weight().square().sum().backward()
    assert b.step.grad is not None
    assert b.step.grad.all()
    assert a.step.grad is not None
    assert not a.step.grad.any()


@pytest.mark.parametrize(
    ("kind", "violation"),
    [
        (
            Inconsistent,
            "b: meets 'a' in 'n2' under other norms than elsewhere, so no quantized step suits "
            "both; normalize each layer's output once, before it is shared",
        ),
        (
            TwoWays,
            "a: reaches 'n1' in two ways under different norms, so no quantized step suits both; "
            "normalize each layer's output once, before it is shared",
        ),
    ],
)
def test_steps_that_no_choice_can_suit_are_refused(kind, violation):
    model = kind()
    prepare(model, SPEC)
    with pytest.raises(GraphError) as error:
        prepare(model, SPEC, weight_bits=4)
    assert str(error.value) == f"the model has no integer form (1 violation):\n  {violation}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles
def test_steps_that_depend_on_each_other_compile_without_a_break():
    ready = prepare(Stream(), SPEC, weight_bits=4).eval()
    x = torch.rand(2, *SPEC.shape)
    compiled = torch.compile(ready, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), ready(x))
