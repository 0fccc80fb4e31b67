"""The optimizer of a recipe and its learning rate."""

import math
from dataclasses import replace

import pytest
from small_runs import small

from lbq_hw.train import checkpoint
from lbq_hw.train.optim import build_optimizer, learning_rate


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        (["momentum=0.8", "nesterov=false"], {"momentum": 0.8, "nesterov": False}),
        (["momentum=0.8"], {"momentum": 0.8, "nesterov": True}),
        (["momentum=0"], {"momentum": 0.0, "nesterov": False}),
        (["optimizer=adamw", "adam_betas=[0.8, 0.99]"], {"betas": (0.8, 0.99)}),
    ],
)
def test_the_optimizer_has_what_the_recipe_says(changes, options):
    given = ["optimizer=sgd", *changes, "lr=0.3", "weight_decay=0.02"]
    chosen = small(*(f"train.{change}" for change in given))
    model = checkpoint.build(chosen, chosen.data.spec((1, 8, 8), static=True), 10)
    weights, scales = build_optimizer(model, chosen.train).param_groups
    wanted = options | {"lr": 0.3}
    assert wanted | {"weight_decay": 0.02} == {k: weights[k] for k in (*wanted, "weight_decay")}
    assert wanted | {"weight_decay": 0.0} == {k: scales[k] for k in (*wanted, "weight_decay")}


def test_scales_are_never_decayed_and_norms_only_where_asked():
    spec = small().data.spec((1, 8, 8), static=True)
    for norms in (True, False):
        chosen = small(f"train.decay_norms={str(norms).lower()}", "train.weight_bits=4")
        model = checkpoint.build(chosen, spec, 10)
        groups = build_optimizer(model, chosen.train).param_groups
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        decayed = {names[id(p)] for g in groups if g["weight_decay"] for p in g["params"]}
        free = {names[id(p)] for g in groups if not g["weight_decay"] for p in g["params"]}
        assert decayed | free == set(names.values())
        assert {name.rsplit(".", 1)[1] for name in free} >= {"rho", "eta", "step"}
        assert {name.rsplit(".", 1)[1] for name in decayed} == (
            {"weight", "bias"} if norms else {"weight"}
        )
        assert any("norm" in name for name in decayed) == norms


def test_the_rate_warms_up_in_line_and_falls_to_zero_as_a_cosine():
    train = small("train.epochs=10", "train.lr=0.5", "train.warmup_epochs=2").train
    rates = [learning_rate(train, step, 4) for step in range(40)]
    assert rates[:8] == [0.5 * k / 8 for k in range(1, 9)]
    assert rates[8] == 0.5
    assert rates[24] == pytest.approx(0.25)
    assert rates[39] == pytest.approx(0.25 * (1 + math.cos(math.pi * 31 / 32)))
    constant = replace(train, schedule="constant")
    assert [learning_rate(constant, step, 4) for step in (7, 8, 39)] == [0.5] * 3
