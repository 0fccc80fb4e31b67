"""Times the neuron's kernels, which are bound by memory, and a copy of the same tensor."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lbq_hw.train import neurons
from lbq_hw.train.settings import config
from tools.bench_gpu.clock import Effort, captured, time_calls
from tools.bench_gpu.steps import CONFIG

TARGET_FRACTION = 0.7  # of a copy's bandwidth
WIDEST = (128, 32, 32)  # the neurons of an image in the first stage, where most time is spent


def measure_neuron(timesteps: int, effort: Effort, device: torch.device) -> dict[str, Any]:
    """Both kernels on the widest current of the network at batch 256, and a copy of this current.

    Only the necessary bytes are counted: a copy and the forward pass read and write one tensor; the
    backward pass reads the current and a gradient and writes a gradient.
    """
    chosen = config.load(CONFIG)
    shape = (timesteps * chosen.train.batch, *WIDEST)
    torch.manual_seed(0)
    current, grad = (
        torch.randn(shape, device=device)
        .to(torch.bfloat16)
        .contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    copy = torch.empty_like(current)
    size = current.numel() * current.element_size()
    copy_ms = statistics.median(time_calls(lambda: copy.copy_(current), effort))
    passes: dict[str, Any] = {"copy": {"ms": copy_ms, "gb_per_s": 2 * size / copy_ms / 1e6}}
    for name, tensors, call in neuron_passes(timesteps, current, grad):
        times = time_calls(captured(call, effort.captured), effort)
        ms = statistics.median(times) / effort.captured
        passes[name] = {"ms": ms, "gb_per_s": tensors * size / ms / 1e6}
    for name in ("forward", "backward"):
        passes[name]["of_copy"] = passes[name]["gb_per_s"] / passes["copy"]["gb_per_s"]
    return {"timesteps": timesteps, "shape": shape, "bytes": size, **passes}


def neuron_passes(
    timesteps: int, current: Tensor, grad: Tensor
) -> list[tuple[str, int, Callable[[], object]]]:
    """Name, number of moved tensors and call of each pass of an LBQ neuron that sends levels."""
    neuron = neurons.LBQ(timesteps=timesteps, capacity=5).to(current.device)
    assert neuron.lam is not None
    scalars = neuron.gamma.detach(), neuron.lam.detach()
    quantizer = neuron.quantizer
    options = (
        *(timesteps, neuron.beta, neuron.alpha, True, quantizer.capacity, quantizer.signed),
        *(quantizer.surrogate, quantizer.low, quantizer.high, quantizer.sharpness),
    )
    operators = torch.ops.lbq
    return [
        ("forward", 2, lambda: operators.recurrence(current, *scalars, *options)),
        ("backward", 3, lambda: operators.recurrence_backward(grad, current, *scalars, *options)),
    ]
