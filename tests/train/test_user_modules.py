"""Whatever a user's module does beside its layers is computed, refused, or said: 250 of them."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import snntorch
import torch
from spikingjelly.activation_based import functional
from user_modules import FOREIGN, OWN, Draw, foreign, foreign_of, own, own_of

from lbq_hw import golden
from lbq_hw.file import digest
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.agreement import DisagreementError
from lbq_hw.train.export import integer_network
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.graph import GraphError
from lbq_hw.train.preparation import prepare

OUTSIDE = (
    "the model gives other outputs than the layers that were read from it, on 4 of 4 inputs: it "
    "computes something outside of its layers; make that a layer"
)


def steps(model) -> int:
    return max(getattr(module, "timesteps", 1) for module in model.modules())


def outputs(model, spec: InputSpec, raw: np.ndarray) -> torch.Tensor:
    x = spec.normalize(torch.from_numpy(raw))
    with torch.no_grad():
        return model.eval()(x if spec.static else x.transpose(0, 1))


def exported(model, spec: InputSpec, raw: np.ndarray):
    """The network, and what was said of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network = integer_network(model, spec, samples=raw, most_different=1)
    return network, [str(warning.message) for warning in caught]


def violations(error: GraphError) -> tuple[str, ...]:
    return tuple(str(violation) for violation in error.violations)


def check_own(case: Draw) -> str:
    """Assert that a module of this project's layers gets its answer; which one that is."""
    raw = agreement.noise(case.spec, steps(case.model))
    if case.disagrees:
        with pytest.raises(DisagreementError) as differs:
            integer_network(case.model, case.spec, samples=raw)
        assert str(differs.value) == OUTSIDE
        return "disagrees"
    if case.refused:
        with pytest.raises(GraphError) as refused:
            integer_network(case.model, case.spec, samples=raw)
        assert violations(refused.value) == case.refused
        return "refused"
    assert case.reference is not None
    network, said = exported(case.model, case.spec, raw)
    wanted, also_said = exported(case.reference, case.spec, raw)
    assert digest(network) == digest(wanted)
    assert said == [case.note] * bool(case.note) + also_said
    ours, theirs = (outputs(model, case.spec, raw) for model in (case.model, case.reference))
    assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    return "noted" if case.note else "right"


def check_prepared(case: Draw) -> str:
    """The same for a model that is trained on."""
    if case.disagrees:
        with pytest.raises(DisagreementError) as differs:
            prepare(case.model, case.spec)
        assert str(differs.value) == OUTSIDE
        return "disagrees"
    if case.untrained:
        with pytest.raises(GraphError) as refused:
            prepare(case.model, case.spec)
        assert violations(refused.value) == case.untrained
        return "refused"
    raw = agreement.noise(case.spec, steps(case.model))
    assert case.reference is not None
    network, wanted = (
        exported(prepare(model, case.spec, weight_bits=4), case.spec, raw)[0]
        for model in (case.model, case.reference)
    )
    assert digest(network) == digest(wanted)
    return "right"


def check_foreign(case: Draw) -> str:
    """A network of another framework: its own spikes, counted, are those of the integer network."""
    if case.refused:
        with pytest.raises(GraphError) as refused:
            adopt(case.model, timesteps=case.timesteps, static=case.spec.static)
        assert violations(refused.value) == case.refused
        return "refused"
    assert case.reference is not None
    raw = agreement.noise(case.spec, case.timesteps, 12) & (2**case.spec.bits - 1)
    model, reference = (
        adopt(net, timesteps=case.timesteps, static=case.spec.static)
        for net in (case.model, case.reference)
    )
    network, said = exported(model, case.spec, raw)
    assert said == [case.note] * bool(case.note)
    if case.reference is not case.model:
        assert digest(network) == digest(exported(reference, case.spec, raw)[0])
        return "folded"
    counts = spikes(case.model.eval(), case, raw).sum(0).numpy().astype(np.int64)
    assert golden.run(network, raw).logits.tolist() == counts.tolist()
    return "noted" if case.note else "right"


def spikes(net, case: Draw, raw: np.ndarray) -> torch.Tensor:
    """What the framework itself computes from rest, (T, n, 5)."""
    x = case.spec.normalize(torch.from_numpy(raw))
    x = torch.stack([x] * case.timesteps) if case.spec.static else x.transpose(0, 1)
    for module in net.modules():
        if isinstance(module, snntorch.Leaky):
            module.mem = torch.zeros(0)
    functional.reset_net(net)
    with torch.no_grad():
        if any(getattr(module, "step_mode", "s") == "m" for module in net.modules()):
            return net(x)
        steps = [net(step) for step in x]
    return torch.stack([step[0] if isinstance(step, tuple) else step for step in steps])


def answers(draw: Callable[[int], Draw], check: Callable[[Draw], str], seeds: range) -> set[str]:
    """Check a case of every seed; the answers that came."""
    found = set()
    for seed in seeds:
        case = draw(seed)
        try:
            found.add(check(case))
        except Exception as error:
            raise AssertionError(f"seed {seed}, {case.kind}") from error
    return found


@pytest.mark.parametrize("first", [0, pytest.param(50, marks=pytest.mark.slow)])
def test_a_users_module_is_exported_as_it_computes_refused_or_noted(first: int) -> None:
    seeds = range(first, first + 50)
    assert answers(own, check_own, seeds) == {"right", "noted", "refused", "disagrees"}


def test_a_users_module_is_prepared_as_it_computes_or_refused() -> None:
    assert answers(own, check_prepared, range(100, 150)) == {"right", "refused", "disagrees"}


@pytest.mark.parametrize("first", [0, pytest.param(50, marks=pytest.mark.slow)])
def test_a_network_of_a_framework_is_adopted_as_it_computes_refused_or_noted(first: int) -> None:
    seeds = range(first, first + 50)
    assert answers(foreign, check_foreign, seeds) == {"right", "folded", "noted", "refused"}


@pytest.mark.parametrize("kind", ["scaling", "two_in_training", "skipping", "dropping", "subclass"])
def test_a_module_is_exported_alike_in_both_modes(kind: str) -> None:
    """What is deployed is what it does in evaluation, and it keeps the mode that it had."""
    found = []
    for training in (True, False):
        case = own_of(kind)
        model = case.model.train(training)
        modes = [module.training for module in model.modules()]
        network, said = exported(model, case.spec, agreement.noise(case.spec, steps(model)))
        found.append((digest(network), said))
        assert [module.training for module in model.modules()] == modes
        assert modes[0] is training
    assert found[0] == found[1]


ROWS = {
    "a subclass of a layer, without a forward of its own": ("named_norm", "subclass"),
    "a `Conv2d` or `Linear` that computes its weights: standardized (SpikingJelly's `WSConv2d`, "
    "`WSLinear`), masked, a parametrization": ("standardized", "masked", "parametrized"),
    "a layer or a neuron whose forward computes something else": ("other_forward", "other_neuron"),
    "a forward that was replaced on an object": ("replaced_forward",),
    "forward hooks or pre-hooks, on the module or a layer": ("hooked", "old_style"),
    "`if self.training:` in its forward": ("scaling", "two_in_training", "skipping", "noisy"),
    "`F.dropout(x, p, self.training)`": ("dropping",),
    "two outputs": ("several_outputs", "two_heads"),
    "spikes and the membrane of one neuron as outputs": ("with_membrane",),
    "a threshold per channel, of shape `(C, 1, 1)` for images, `(C,)` for vectors": ("thresholds",),
    "a threshold of shape `(W,)` for images, which snnTorch broadcasts along their width": (
        "along_the_width",
    ),
}
"""The rows of docs/import.md, by what a module has, and the kinds of draws that have it."""
ANSWERS = {
    "": {None},
    "refused": {"refused"},
    "as its layer": {"right"},
    "these weights, as they are now": {"right", "folded"},
    "as in evaluation, with a warning that says what differs": {"noted"},
    "as in evaluation": {"right"},
    "its spikes": {"right"},
    "per channel": {"right"},
}


def test_the_table_of_the_page_on_import_says_what_is_done() -> None:
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text("utf-8")
    lines = page[page.index("\n| a module has |") + 1 :].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in rows] == list(ROWS)
    own_kinds, foreign_kinds = ({kind.__name__ for kind in kinds} for kinds in (OWN, FOREIGN))
    for has, exported_as, prepared_as in rows:
        for kind in ROWS[has]:
            answer, prepared = set(), set()
            if kind in own_kinds:
                answer.add(check_own(own_of(kind)))
                prepared.add(check_prepared(own_of(kind)))
            if kind in foreign_kinds:
                answer.add(check_foreign(foreign_of(kind)))
            assert answer <= ANSWERS[exported_as], (has, kind)
            assert (prepared or {None}) <= ANSWERS[prepared_as] | {None}, (has, kind)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 1200, 100))
def test_many_more_get_their_answer(first: int) -> None:
    seeds = range(first, first + 100)
    for draw, check in ((own, check_own), (own, check_prepared), (foreign, check_foreign)):
        assert "right" in answers(draw, check, seeds)
