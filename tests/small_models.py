"""The shipped models with small widths and restless norms, and images for them."""

import torch
from torch import nn

from lbq_hw.train import models, neurons
from lbq_hw.train.data import InputSpec

NARROW = {"widths": (4, 8, 8)}
WIDE = {"widths": (4, 8, 8, 8)}
SMALL = {
    "resnet20": NARROW,
    "resnet19": NARROW | {"head": 8},
    "resnet18": WIDE,
    "resnet34": WIDE,
    "vgg": {"width": 4},
}
SHAPES = {"digits": (1, 8, 8), "mnist": (1, 28, 28), "nmnist": (2, 34, 34)}


def small_model(
    name: str, *, timesteps: int = 2, kind: str = "lbq", **options
) -> tuple[models.Network, InputSpec]:
    """A shipped model with small widths, norms shaken up, and its input."""
    shape, static = SHAPES.get(name, (3, 32, 32)), name != "nmnist"
    capacity = 5 if kind in ("lbq", "burst", "quant-relu") else 1
    model = models.build(
        name,
        neuron=lambda: neurons.build(kind, timesteps=timesteps, capacity=capacity, **options),
        timesteps=timesteps,
        input_shape=shape,
        classes=10,
        static=static,
        **SMALL.get(name, {}),
    )
    generator = torch.Generator().manual_seed(7)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            shape_of = module.running_mean.shape
            module.running_mean.copy_(0.3 * torch.randn(shape_of, generator=generator))
            module.running_var.copy_(0.5 + torch.rand(shape_of, generator=generator))
            module.weight.data.copy_(torch.randn(shape_of, generator=generator))
            module.bias.data.copy_(0.3 * torch.randn(shape_of, generator=generator))
    return model, InputSpec(shape=shape, static=static, bits=8)


def raw_images(spec: InputSpec, count: int, timesteps: int = 2) -> torch.Tensor:
    frames = () if spec.static else (timesteps,)
    generator = torch.Generator().manual_seed(3)
    return torch.randint(
        0, 256, (count, *frames, *spec.shape), dtype=torch.uint8, generator=generator
    )


def model_input(spec: InputSpec, raw: torch.Tensor) -> torch.Tensor:
    x = spec.normalize(raw)
    return x if spec.static else x.transpose(0, 1)
