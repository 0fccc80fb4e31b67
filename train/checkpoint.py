"""Writes and reads the checkpoints of a run, ``last`` and ``best``.

A checkpoint NAME is an index, ``NAME.json`` (epoch, accuracy and the split of its images, git
revision, configuration, list of parts with digests), and one ``torch.save`` archive. The archive is
cut into parts of at most ``shard_mib`` MiB, for places that do not take large files. The names of
the parts contain digits of the archive's digest, and the index is replaced atomically after all
parts are written. So an interrupted save leaves the previous checkpoint intact, even one of the
same epoch.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, fx, nn

from lbq_hw.commands.progress import show_notes
from lbq_hw.train import models, weights
from lbq_hw.train.data import InputSpec
from lbq_hw.train.preparation import prepare
from lbq_hw.train.settings.config import Config
from lbq_hw.train.settings.recipe import Recipe
from lbq_hw.train.start import continued, is_network

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or for another network; one sentence for the user."""


def save(folder: Path, name: str, state: Mapping[str, Any], *, shard_mib: int = 0) -> None:
    """Write a checkpoint. ``state`` holds tensors and plain values, among them what the index
    shows: ``epoch``, ``accuracy``, ``split`` (of the accuracy: test or validation), ``revision``
    and ``config``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    whole = buffer.getbuffer()
    size = shard_mib * 2**20 or len(whole)
    stem = f"{name}-{state['epoch']:04d}-{hashlib.sha256(whole).hexdigest()[:8]}"
    parts: list[dict[str, Any]] = []
    for start in range(0, len(whole), size):
        part = whole[start : start + size]
        file = f"{stem}.pt" if size >= len(whole) else f"{stem}.{len(parts):03d}.part"
        _replace(folder / file, part)
        parts.append({"file": file, "bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()})
    shown = {key: state[key] for key in ("epoch", "accuracy", "split", "revision", "config")}
    text = json.dumps({"format": FORMAT, **shown, "parts": parts}, indent=1)
    _replace(folder / f"{name}.json", text.encode())
    current = {part["file"] for part in parts}
    for path in folder.glob(f"{name}-*"):
        if path.name not in current:
            path.unlink()


def index(folder: Path, name: str) -> dict[str, Any]:
    """The index of a checkpoint, without its tensors; also for a file of float weights."""
    if weights.is_weights(folder):
        return weights.facts(_last(folder, name))
    path = folder / f"{name}.json"
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no checkpoint {name!r}: {path} is missing")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version, _ = found["format"], found["parts"]
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{path} is not the index of a checkpoint") from None
    if version != FORMAT:
        raise CheckpointError(f"{path} has format {version!r}, and this code reads {FORMAT}")
    return found


def load(folder: Path, name: str) -> dict[str, Any]:
    """Read a checkpoint to the CPU and check all its parts; or read a file of float weights."""
    if weights.is_weights(folder):
        return weights.load(_last(folder, name))
    path = folder / f"{name}.json"
    buffer = io.BytesIO()
    for part in index(folder, name)["parts"]:
        file = folder / part["file"]
        if not file.is_file():
            raise CheckpointError(f"{file}, a part of checkpoint {name!r}, is missing")
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() != part["sha256"]:
            raise CheckpointError(f"{file} is damaged: its digest differs from the one in {path}")
        buffer.write(data)
    buffer.seek(0)
    return torch.load(buffer, map_location="cpu", weights_only=True)


def _last(file: Path, name: str) -> Path:
    """A file of float weights, which counts as a run's last checkpoint."""
    if name != "last":
        raise CheckpointError(f"{file} holds the last epoch's weights alone, not {name!r}")
    return file


def remove(folder: Path, name: str) -> None:
    """Delete a checkpoint, its index first."""
    (folder / f"{name}.json").unlink(missing_ok=True)
    for path in folder.glob(f"{name}-*"):
        path.unlink()


def model_of(config: Config, spec: InputSpec, classes: int) -> nn.Module:
    """The plain model of a configuration, with random weights."""
    return models.build(
        config.model.name,
        neuron=config.neuron.build,
        timesteps=config.neuron.timesteps,
        input_shape=spec.shape,
        classes=classes,
        static=spec.static,
        **config.model.options(),
    )


def build(config: Config, spec: InputSpec, classes: int, *, init: str = "") -> fx.GraphModule:
    """The network of a configuration in the form that is trained, with random weights or with the
    weights of ``init``: a run's last checkpoint, a file of float weights (see `train.weights`), or
    an integer network (see `train.start`).

    With an integer network, norms have no statistics yet; `train.norms.settle` measures them.
    """
    model = model_of(config, spec, classes)
    return formed(model, spec, config.train, init=init, trained_only=True)


def formed(
    model: nn.Module, spec: InputSpec, recipe: Recipe, *, init: str = "", trained_only: bool
) -> fx.GraphModule:
    """A plain model in the form that a recipe trains, with its own weights or those of ``init``.

    If the run ``init`` has another number of classes, the readout keeps its own weights.
    """
    if is_network(init):
        return continued(model, recipe, spec, init, trained_only=trained_only)
    taken: dict[str, Tensor] = {}
    same_bits, kept = False, None
    if init:
        state = load(Path(init), "last")
        taken = state["ema"] or state["model"]
        kept = _other_readout(taken, state["classes"], model)
        if kept is not None:
            show_notes([f"train.init = {init!r} has other classes: its layer {kept} is not loaded"])
        old = state["config"]["train"]
        same_bits = old["weight_bits"] == recipe.weight_bits
        same_bits &= old.get("layer_bits", {}) == recipe.layer_bits
    if taken and not same_bits:  # the first quantizer steps are then chosen from these
        own = model.state_dict()
        _adopt(model, {name: taken[name] for name in taken if name in own}, init, kept)
    model = prepare(
        model,
        spec,
        absorb=recipe.absorb,
        weight_bits=recipe.bits,
        trained_only=trained_only,
    )
    if taken and same_bits:
        _adopt(model, taken, init, kept)
    return model


def _other_readout(
    weights: Mapping[str, Tensor], classes: int | None, model: nn.Module
) -> str | None:
    """The layer with another number of classes in the model, if no other layer differs."""
    own = model.state_dict()
    other = [name for name in weights if name in own and own[name].shape != weights[name].shape]
    layers = {name.rpartition(".")[0] for name in other}
    rows = all(
        weights[name].shape[0] == classes and own[name].shape[1:] == weights[name].shape[1:]
        for name in other
    )
    return layers.pop() if len(layers) == 1 and rows else None


def _adopt(model: nn.Module, state: Mapping[str, Tensor], run: str, kept: str | None) -> None:
    """Load weights except into the layer ``kept``; all other names and shapes must agree."""

    def taken(tensors: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
        mine = {name for name in tensors if kept is not None and name.startswith(f"{kept}.")}
        return {name: tensors[name] for name in tensors if (name in mine) == keep}

    try:
        model.load_state_dict(taken(model.state_dict(), keep=True) | taken(state, keep=False))
    except RuntimeError:
        raise CheckpointError(
            f"train.init = {run!r} holds another network than this configuration's"
        ) from None


def load_run(
    folder: str | os.PathLike[str], which: Literal["last", "best"] = "last"
) -> tuple[fx.GraphModule, Config, InputSpec]:
    """The trained network of a run, in evaluation mode and in the form that was trained, with its
    configuration and input. Averaged weights are used if the run has them.
    """
    state = load(Path(folder), which)
    if "model" not in state["config"]:
        raise CheckpointError(
            f"{folder} is a run of fit, which does not say what its model is: call fit as before "
            "with resume=True, and it returns the model with its weights"
        )
    config = Config.from_dict(state["config"])
    spec = InputSpec(**state["spec"])
    model = build(config, spec, state["classes"])
    model.load_state_dict(state["ema"] or state["model"])
    return model.eval(), config, spec


def load_npz(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Load arrays by name from an ``.npz`` into a model; the names of both must agree completely.

    A name that ends in ``:bf16`` holds the upper half of the float32 bits as uint16. `resnet_name`
    maps the names of the file to the names of the model.
    """
    state: dict[str, Tensor] = {}
    with np.load(path) as file:
        for name in file.files:
            array = file[name]
            if name.endswith(":bf16"):
                name = name.removesuffix(":bf16")
                array = (array.astype(np.uint32) << 16).view(np.float32)
            state[resnet_name(name)] = torch.from_numpy(array)
    wanted = model.state_dict()
    for word, names in (("lacks", wanted.keys() - state), ("has unknown", state.keys() - wanted)):
        if names:
            raise CheckpointError(f"{path} {word} {', '.join(sorted(names))}")
    for name, tensor in state.items():
        if tensor.shape != wanted[name].shape:
            raise CheckpointError(
                f"{name} in {path} must have shape {tuple(wanted[name].shape)}, "
                f"not {tuple(tensor.shape)}"
            )
    model.load_state_dict(state)


def resnet_name(name: str) -> str:
    """Our name for ``c b n`` (stem), ``L.i.c1 b1 n1 c2 b2 n2``, ``L.i.sc.0 / .1`` and ``fc``."""
    words = {"c": "conv", "b": "norm", "n": "neuron"}
    if match := re.fullmatch(r"([cbn])\.(.+)", name):
        return f"stem.{words[match[1]]}.{match[2]}"
    if match := re.fullmatch(r"L\.(\d+)\.([cbn])([12])\.(.+)", name):
        return f"blocks.{match[1]}.{words[match[2]]}{match[3]}.{match[4]}"
    if match := re.fullmatch(r"L\.(\d+)\.sc\.([01])\.(.+)", name):
        return f"blocks.{match[1]}.shortcut.{('conv', 'norm')[int(match[2])]}.{match[3]}"
    return name


def revision() -> str:
    """The git revision of this code, with ``-dirty`` if files differ from it; else ``unknown``."""
    here = Path(__file__).parent
    command = [
        "git",
        "-C",
        str(here),
        "describe",
        "--always",
        "--exclude=*",
        "--dirty",
        "--abbrev=40",
    ]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _replace(path: Path, data: bytes | memoryview) -> None:
    draft = path.with_name(path.name + ".tmp")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
