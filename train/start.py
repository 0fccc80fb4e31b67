"""Integer networks as the start of a run: training continues from a deployed network."""

from __future__ import annotations

import json
from pathlib import Path

from torch import fx, nn

from lbq_hw import file, zoo
from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.take_up import TakeUpError, take_up, take_up_steps
from lbq_hw.train.preparation import prepare
from lbq_hw.train.settings.recipe import Recipe


class StartError(ValueError):
    """A network that a run cannot start from; the message is one sentence for the user."""


def is_network(init: str) -> bool:
    """Whether ``init`` is an integer network (an .lbq file or a name of the zoo), and not a run."""
    return not Path(init).is_dir() and (init.endswith(".lbq") or init in zoo.names())


def load_network(init: str) -> tuple[Network, dict[str, float]]:
    """The integer network of ``init``, and the tail strengths of its layers if there is a report of
    ``train.measure --run`` beside it (NAME.json) that has them.
    """
    path = zoo.find(init)
    tails: dict[str, float] = {}
    report = path.with_suffix(".json")
    if report.is_file():
        layers = json.loads(report.read_text(encoding="utf-8")).get("layers", [])
        tails = {x["name"]: x["lambda"] for x in layers if x.get("lambda") is not None}
    return file.load(path), tails


def continued(
    model: nn.Module, recipe: Recipe, spec: InputSpec, init: str, *, trained_only: bool
) -> fx.GraphModule:
    """A plain model with the parameters of an integer network, in the form that is trained."""
    network, tails = load_network(init)
    try:
        take_up(model, spec, network, tails)
        model = prepare(
            model,
            spec,
            absorb=recipe.absorb,
            weight_bits=recipe.bits,
            trained_only=trained_only,
        )
        if recipe.weight_bits:
            take_up_steps(model, spec, network)
    except TakeUpError as error:
        raise StartError(
            f"train.init = {init!r} holds another network than this configuration's: {error}"
        ) from None
    return model
