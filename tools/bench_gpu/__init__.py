"""How long a training step of ResNet-20 takes on the GPU, and how near the neurons come to a copy.

``python -m tools.bench_gpu [--json FILE] [--quick]`` times, in one run:

* a step (augmentation, forward, backward, optimizer) of the network with ReLU, the ANN, and with
  LBQ neurons at several T, each over the ANN's; set up as :mod:`train.loop` does for the
  configuration ``cifar10-resnet20-t2-fast``, with random images in place of CIFAR-10; norms and
  sums fused with the neurons (``train.fuse``) and, for comparison, not;
* the same network with SpikingJelly's I-LIF neurons, where that package is installed;
* the neuron's two kernels, whose floor is memory, against a copy of the same tensor.

Times are read off the device's clock after a warm-up, each the median of several rounds.

``python -m tools.bench_gpu --profile`` says instead which kernels the steps of the ANN and of LBQ
at T = 2 and 4 spend their time in.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from lbq_hw.train.kernels import recurrence_jit
from lbq_hw.train.settings import config
from tools.bench_gpu.clock import Effort
from tools.bench_gpu.neuron import TARGET_FRACTION, measure_neuron
from tools.bench_gpu.profile import measure_profile
from tools.bench_gpu.steps import CONFIG, measure_steps


def measure(effort: Effort, device: torch.device) -> dict[str, Any]:
    """All figures; the networks first, which brings the device's clock up."""
    return {
        **_origin(effort, device),
        "target_fraction": TARGET_FRACTION,
        "steps": measure_steps(effort, device),
        "neurons": [measure_neuron(t, effort, device) for t in effort.timesteps],
    }


def profiled(effort: Effort, device: torch.device) -> dict[str, Any]:
    """Where the time of a step goes, by network."""
    return {**_origin(effort, device), "profile": measure_profile(effort, device)}


def _origin(effort: Effort, device: torch.device) -> dict[str, Any]:
    """On what, and how, figures were found."""
    return {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "triton": recurrence_jit.triton.__version__,
        "config": CONFIG,
        "batch": config.load(CONFIG).train.batch,
        "effort": asdict(effort),
    }
