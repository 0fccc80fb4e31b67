"""What the graph reader understands, and what it refuses: every violation, in one error."""

import pytest
import torch
from torch import nn

from lbq_hw.train import neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError, Identity, Sum, Synapse, terms
from lbq_hw.train.graph.trace import analyze
from lbq_hw.train.layers import Repeat, TimeMean

SPEC = InputSpec(shape=(2, 6, 6), static=True, bits=4)


def lbq(timesteps: int = 2) -> nn.Module:
    return neurons.build("lbq", timesteps=timesteps, capacity=3)


class Residual(nn.Module):
    """Functional add, functional pools, views: the spellings people use."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.n1 = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), lbq()
        self.conv2, self.n2 = nn.Conv2d(4, 4, 3, padding=1), lbq()
        self.fc = nn.Linear(4, 3)
        self.repeat, self.mean = Repeat(2), TimeMean(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.repeat(self.bn1(self.conv1(x))))
        x = self.n2(torch.add(self.conv2(x), x))
        x = torch.nn.functional.max_pool2d(x, 2)
        x = x.mean((2, 3))
        return self.mean(self.fc(x.view(x.size(0), -1)))


def test_functional_spellings_mean_the_same_as_layers():
    found = analyze(Residual(), SPEC)
    assert found.violations == []
    assert [p.name for p in found.populations] == ["n1", "n2", "logits"]
    second = found.populations[1].current
    assert isinstance(second, Sum)
    assert [type(term.origin) for term in terms(second)] == [Synapse, Identity]
    pool = found.max_pool_of("n2")
    assert pool is not None
    assert pool.kernel == (2, 2)
    (readout,) = terms(found.populations[2].current)
    assert readout.origin.levels.sum_pool is not None
    assert readout.origin.levels.sum_pool.kernel == (3, 3)


def test_tracing_leaves_the_training_mode_alone():
    model = Residual().train()
    analyze(model, SPEC)
    assert model.training
    assert model.bn1.training


class Wrong(nn.Module):
    """One of everything that has no integer form."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1)
        self.repeat, self.n1 = Repeat(2), lbq()
        self.mirrored = nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect")
        self.deep = nn.Conv2d(4, 4, 3, padding=1)
        self.ternary = neurons.build("ternary", timesteps=2, capacity=1)
        self.act = nn.GELU()
        self.fc, self.mean = nn.Linear(4 * 36, 3), TimeMean(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.repeat(self.conv1(x)))
        y = self.ternary(self.mirrored(x))
        z = self.act(self.deep(self.deep(x)))
        return self.mean(self.fc((y + z).flatten(1)))


def test_every_violation_is_listed_with_its_place_and_a_mend():
    with pytest.raises(GraphError) as error:
        integer_network(Wrong(), SPEC)
    assert str(error.value) == (
        "the model has no integer form (4 violations):\n"
        "  mirrored: padding_mode is 'reflect'; use padding_mode='zeros'\n"
        "  deep: is called more than once; give each call its own layer\n"
        "  act: GELU has no integer form; put LBQ() here, or convert() a trained ANN of ReLUs\n"
        "  ternary: Ternary emits negative levels; use an LBQ neuron, whose levels are 0..N"
    )


def _stack(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), Repeat(2), *layers)


HEAD = (nn.Flatten(), nn.Linear(4 * 36, 3), TimeMean(2))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            _stack(lbq(), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1), lbq(), *HEAD),
            "4: weights act on a current, not on burst levels; put a neuron in front",
        ),
        (
            _stack(nn.MaxPool2d(1), lbq(), *HEAD),
            "2: max-pool acts on a current; move it after the neuron",
        ),
        (
            _stack(nn.AvgPool2d(1), lbq(), *HEAD),
            "2: average pool acts on a current; move it after the neuron",
        ),
        (
            _stack(lbq(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 3), TimeMean(2)),
            "3: this form of average has no integer form; average whole windows of height and"
            " width, count_include_pad=True, no ceil_mode",
        ),
        (
            _stack(lbq(), Repeat(2), lbq(), *HEAD),
            "3: repeats a tensor that already has timesteps; repeat a static input's current only",
        ),
        (
            _stack(lbq(), nn.Flatten(), nn.Linear(4 * 36, 3)),
            "output: the model does not end in logits averaged over time; end it with Linear and"
            " TimeMean",
        ),
        (
            _stack(lbq(), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1), lbq(), *HEAD),
            "4: weights act on a current, not on burst levels; put a neuron in front",
        ),
        (
            _stack(lbq(), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False), *HEAD),
            "4: has no running statistics; build it with track_running_stats=True",
        ),
        (
            _stack(lbq(timesteps=4), *HEAD),
            "model: its layers disagree on the number of timesteps: [2, 4]; build all of them"
            " with the same timesteps",
        ),
    ],
)
def test_an_unsupported_structure_names_place_reason_and_mend(model, message):
    assert [str(v) for v in analyze(model, SPEC).violations] == [message]


@pytest.mark.parametrize(
    ("layer", "mend"),
    [
        (nn.ReLU(), "put LBQ() here, or convert() a trained ANN of ReLUs"),
        (nn.Softmax(1), "use the layers of docs/layers.md"),
        (nn.GroupNorm(2, 4), "use the layers of docs/layers.md"),
    ],
)
def test_a_layer_without_an_integer_form_is_answered_with_what_takes_its_place(layer, mend):
    (violation,) = analyze(_stack(layer, lbq(), *HEAD), SPEC).violations
    assert str(violation) == f"2: {type(layer).__name__} has no integer form; {mend}"


def test_a_model_of_one_timestep_ends_with_a_linear_layer():
    once = lbq(timesteps=1)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), once, nn.Conv2d(4, 4, 1), lbq(timesteps=1))
    (violation,) = analyze(model, SPEC).violations
    assert str(violation) == "output: the model does not end in logits; end it with Linear"


def test_a_model_that_fails_on_its_input_does_not_run():
    model = _stack(lbq(), nn.Flatten(), nn.Linear(5, 3), TimeMean(2))
    with pytest.raises(GraphError) as error:
        integer_network(model, SPEC)
    first, second = str(error.value).splitlines()
    assert first == "the model does not run (1 violation):"
    assert second.startswith("  model: fails on an input of shape (1, 2, 6, 6) (mat1 and mat2 ")


class TwoPools(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.repeat, self.n1 = nn.Conv2d(2, 4, 3, padding=1), Repeat(2), lbq()
        self.pool = nn.MaxPool2d(2)
        self.conv2, self.conv3, self.n2 = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 2, stride=2), lbq()
        self.fc, self.mean = nn.Linear(36, 3), TimeMean(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.repeat(self.conv1(x)))
        x = self.n2(self.conv2(self.pool(x)) + self.conv3(x))
        return self.mean(self.fc(x.flatten(1)))


def test_levels_used_with_and_without_a_max_pool_are_refused():
    assert [str(v) for v in analyze(TwoPools(), SPEC).violations] == [
        "n1: its levels are used both with and without a max-pool, or with two; let every"
        " consumer read the same pooled levels"
    ]
