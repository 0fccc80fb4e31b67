"""The float weights of a run as one small file: safetensors in half precision.

The file says what it belongs to (configuration, input, classes, epoch, accuracy), so that it can
stand wherever a run's folder is read: as ``train.init``, for export, for `load_run`. A name alone,
such as ``digits.safetensors``, is looked for in the zoo where no such file exists.
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
    """Weights that can not be written or read; one sentence for the user."""


def is_weights(path: Path) -> bool:
    """Whether a start or a run is given as such a file."""
    return path.suffix == SUFFIX


def save(state: Mapping[str, Any], path: Path, *, origin: Origin) -> None:
    """Write the weights of a checkpoint, the averaged ones where there are such, and where the
    images of its run come from.

    Raises `WeightsError` where one is beyond the range of half precision.
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
    """What a file says of its weights."""
    found = _find(path)
    try:
        with safetensors.safe_open(found, framework="pt") as file:
            said = file.metadata() or {}
    except (safetensors.SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None
    if said.get("format") != FORMAT:
        raise WeightsError(
            f"{path} holds no weights of a run: write such a file with `python -m train.export RUN "
            "--weights FILE`"
        )
    return json.loads(said["facts"])


def origin(path: Path) -> Origin:
    """Where the images come from that the weights were trained on."""
    return Origin.from_dict(facts(path)["origin"])


def load(path: Path) -> dict[str, Any]:
    """The same as a checkpoint that was loaded: ``model`` in single precision, no ``ema``."""
    state = facts(path)
    tensors = tensor_files.load_file(_find(path))
    model = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
    return state | {"model": model, "ema": None}


def _find(path: Path) -> Path:
    """The file itself, or the one of its name in the zoo."""
    name = path.stem
    if not path.is_file() and str(path) == path.name and name in zoo.names():
        return zoo.find(name).with_suffix(SUFFIX)
    return path
