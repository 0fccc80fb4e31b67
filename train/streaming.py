"""Time in a whole model: timesteps per call, and whether neurons keep their state between calls.

With one timestep per call and kept states, a model runs step by step, as in snnTorch, and as in
SpikingJelly with step mode "s"::

    set_timesteps(model, 1)
    keep_state(model)
    for frame in stream:
        logits = model(frame)
    reset_state(model)              # before the next recording

``detach_state`` cuts the autograd graph between two calls, for truncated backpropagation through
time. States are tensors in ``neuron.v``; checkpoints do not contain them.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from lbq_hw.train.layers import Repeat, TimeMean, check_timesteps
from lbq_hw.train.neurons import LMHT, Neuron, ReLU


def set_timesteps(model: nn.Module, timesteps: int) -> None:
    """Set the timesteps per call of every neuron and time layer of a model."""
    check_timesteps(timesteps)
    timed = [m for m in model.modules() if isinstance(m, Neuron | ReLU | Repeat | TimeMean)]
    for module in timed:
        if isinstance(module, LMHT) and module.timesteps != timesteps:
            raise ValueError(
                "an LM-HT neuron has weights for its timesteps: build the model with "
                f"timesteps = {timesteps} instead"
            )
    for module in timed:
        module.timesteps = timesteps


def keep_state(model: nn.Module, keep: bool = True) -> None:
    """Let each call continue from the membranes of the previous call; with ``keep=False``, every
    call starts from 0.
    """
    for path, neuron in _neurons(model):
        if keep and not neuron.streams:
            raise ValueError(
                f"{path or 'the model'}: a {type(neuron).__name__} cannot keep its state between "
                "calls; give it all timesteps in one call"
            )
    for _, neuron in _neurons(model):
        neuron.keeps_state = keep
        neuron.v = None


def reset_state(model: nn.Module) -> None:
    """Forget all membranes: the next call begins a new sequence."""
    for _, neuron in _neurons(model):
        neuron.v = None


def detach_state(model: nn.Module) -> None:
    """Keep all membranes, but no gradient flows through them into earlier calls."""
    for _, neuron in _neurons(model):
        if neuron.v is not None:
            neuron.v = neuron.v.detach()


def _neurons(model: nn.Module) -> Iterator[tuple[str, Neuron]]:
    for path, module in model.named_modules():
        if isinstance(module, Neuron):
            yield path, module
