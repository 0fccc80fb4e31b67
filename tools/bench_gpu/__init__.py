"""Times a training step of ResNet-20 on the GPU, and compares the neurons' kernels with a copy.

``python -m tools.bench_gpu [--json FILE] [--quick]`` times, in one run:

* a step (augmentation, forward, backward, optimizer) of the network with ReLU (the ANN), and with
  LBQ neurons at several T, relative to the ANN. The setup is that of :mod:`train.loop` for the
  configuration ``cifar10-resnet20-t2-fast``, with random images instead of CIFAR-10. Norms and sums
  are fused with the neurons (``train.fuse``) or, for comparison, not fused;
* the same network with SpikingJelly's I-LIF neurons, if this package is installed;
* the neuron's two kernels, which are bound by memory, against a copy of the same tensor.

Times come from the device's clock after a warm-up; each is the median of several rounds.

``python -m tools.bench_gpu --profile`` instead shows the kernels in which the steps of the ANN and
of LBQ at T = 2 and 4 spend their time.
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
    """All figures; the networks come first, because they raise the device's clock."""
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
    """The device, the versions and the settings of the measurement."""
    return {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "triton": recurrence_jit.triton.__version__,
        "config": CONFIG,
        "batch": config.load(CONFIG).train.batch,
        "effort": asdict(effort),
    }
