"""Time of a whole model: how many timesteps a call has, and whether neurons go on between calls.

With one timestep per call and kept states a model is fed step by step, as snnTorch's and, in step
mode "s", SpikingJelly's are::

    set_timesteps(model, 1)
    keep_state(model)
    for frame in stream:
        logits = model(frame)
    reset_state(model)              # before the next recording

``detach_state`` cuts the graph between two calls: truncated backpropagation through time. States
are tensors in ``neuron.v``; they are in no checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from lbq_hw.train.layers import Repeat, TimeMean, check_timesteps
from lbq_hw.train.neurons import LMHT, Neuron, ReLU


def set_timesteps(model: nn.Module, timesteps: int) -> None:
    """Let every neuron and time layer of a model have so many timesteps per call."""
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
    """Let the neurons of a model go on, in each call, from the membranes that the last one left;
    or, with ``keep=False``, begin every call anew."""
    for path, neuron in _neurons(model):
        if keep and not neuron.streams:
            raise ValueError(
                f"{path or 'the model'}: a {type(neuron).__name__} can not keep its state between "
                "calls; give it all timesteps in one"
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
