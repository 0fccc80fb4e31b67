"""The float weights of a run as one small file: safetensors in half precision.

The file also holds configuration, input, classes, epoch and accuracy, so it can replace a run's
folder wherever one is read: as ``train.init``, for export, for `load_run`. A name without a folder,
such as ``digits.safetensors``, is looked up in the zoo if no such file exists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors import torch as tensor_files

from lbq_hw import zoo
from lbq_hw.train.data import Origin

SUFFIX = ".safetensors"
FORMAT = "lbq-weights 1"
_FACTS = ("epoch", "accuracy", "split", "revision", "config", "spec", "classes")


class WeightsError(ValueError):
    """Weights cannot be written or read; one sentence for the user."""


def is_weights(path: Path) -> bool:
    """Whether a start or a run is a file of float weights."""
    return path.suffix == SUFFIX


def save(state: Mapping[str, Any], path: Path, *, origin: Origin) -> None:
    """Write the weights of a checkpoint (the averaged weights, if there are any), and the origin of
    the images of its run.

    Raises `WeightsError` if a weight is beyond the range of half precision.
    """
    tensors = {}
    for name, tensor in (state["ema"] or state["model"]).items():
        half = tensor.half() if tensor.is_floating_point() else tensor
        if half.is_floating_point() and not torch.equal(half.isfinite(), tensor.isfinite()):
            raise WeightsError(f"{name} has values beyond 65504, the largest of half precision")
        tensors[name] = half.contiguous()
    facts = json.dumps({name: state[name] for name in _FACTS} | {"origin": origin.to_dict()})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tensor_files.save(tensors, metadata={"format": FORMAT, "facts": facts}))


def facts(path: Path) -> dict[str, Any]:
    """The facts of a file besides its weights."""
    found = _find(path)
    try:
        with safetensors.safe_open(found, framework="pt") as file:
            said = file.metadata() or {}
    except (safetensors.SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None
    if said.get("format") != FORMAT:
        raise WeightsError(
            f"{path} holds no weights of a run: write such a file with `lbq export RUN --weights "
            "FILE`"
        )
    return json.loads(said["facts"])


def origin(path: Path) -> Origin:
    """Where the training images of the weights come from."""
    return Origin.from_dict(facts(path)["origin"])


def load(path: Path) -> dict[str, Any]:
    """The weights in the form of a loaded checkpoint: ``model`` in float32, without ``ema``."""
    state = facts(path)
    tensors = tensor_files.load_file(_find(path))
    model = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
    return state | {"model": model, "ema": None}


def _find(path: Path) -> Path:
    """The file itself, or the file of this name in the zoo."""
    name = path.stem
    if not path.is_file() and str(path) == path.name and name in zoo.names():
        return zoo.find(name).with_suffix(SUFFIX)
    return path
