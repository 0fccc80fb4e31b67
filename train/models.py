"""The networks: ResNet-20, -19, -18, -34 and of any size, small networks for small boards, a VGG.

Every model is made of plain ``nn`` layers, neurons from a factory, and the three time layers of
:mod:`train.layers`, so that ``torch.fx`` can trace it. A static model takes
``(B, C, H, W)`` and returns logits ``(B, K)``: its stem's convolution and norm run once and their
current is repeated over T. A temporal model takes ``(T, B, C, H, W)``. Logits are the mean over T
of the last layer.
"""

from __future__ import annotations

import difflib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lbq_hw.train.layers import MergeTime, Repeat, TimeMean

NeuronFactory = Callable[[], nn.Module]


class Network(nn.Module):
    """The base of all models: the handling of time. ``input_shape`` is one frame, ``(C, H, W)``."""

    def __init__(self, *, timesteps: int, input_shape: Sequence[int], static: bool) -> None:
        super().__init__()
        self.timesteps = timesteps
        self.input_shape: tuple[int, ...] = tuple(input_shape)
        self.static = static

    def _stem(
        self,
        neuron: NeuronFactory,
        channels: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        norm: bool = True,
    ) -> nn.Sequential:
        layers = OrderedDict[str, nn.Module]()
        if not self.static:
            layers["merge"] = MergeTime()
        layers["conv"] = _conv(self.input_shape[0], channels, kernel=kernel, stride=stride)
        if norm:
            layers["norm"] = nn.BatchNorm2d(channels)
        if self.static:
            layers["repeat"] = Repeat(self.timesteps)
        layers["neuron"] = neuron()
        return nn.Sequential(layers)


class Block(nn.Module):
    """Basic residual block; its second neuron acts on the sum:
    ``neuron2(norm2(conv2(neuron1(norm1(conv1(x))))) + shortcut(x))``.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, neuron: NeuronFactory) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, outputs, stride=stride)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.neuron1 = neuron()
        self.conv2 = _conv(outputs, outputs)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            project = _conv(inputs, outputs, kernel=1, stride=stride)
            self.shortcut = nn.Sequential(OrderedDict(conv=project, norm=nn.BatchNorm2d(outputs)))
        self.neuron2 = neuron()

    def forward(self, x: Tensor) -> Tensor:
        current = self.norm2(self.conv2(self.neuron1(self.norm1(self.conv1(x)))))
        return self.neuron2(current + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(Network):
    """Stem, stages of basic blocks (stride 2 from the second on), global average pool, linear.

    ``head`` > 0 puts a linear layer of that width, and a neuron, before the last one. ``stem_pool``
    puts ImageNet's 3x3 stride-2 max-pool after the stem's neuron.
    """

    def __init__(
        self,
        *,
        classes: int,
        widths: Sequence[int],
        blocks: Sequence[int],
        head: int = 0,
        stem_kernel: int = 3,
        stem_stride: int = 1,
        stem_pool: bool = False,
        neuron: NeuronFactory,
        timesteps: int,
        input_shape: Sequence[int],
        static: bool,
    ) -> None:
        super().__init__(timesteps=timesteps, input_shape=input_shape, static=static)
        if len(widths) != len(blocks):
            raise ValueError(f"widths must have one entry a stage ({len(blocks)}), not {widths!r}")
        self.stem = self._stem(neuron, widths[0], kernel=stem_kernel, stride=stem_stride)
        if stem_pool:
            self.stem.append(nn.MaxPool2d(3, stride=2, padding=1))
        stack: list[nn.Module] = []
        inputs = widths[0]
        for stage, (width, depth) in enumerate(zip(widths, blocks, strict=True)):
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                stack.append(Block(inputs, width, stride, neuron))
                inputs = width
        self.blocks = nn.Sequential(*stack)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = None
        if head:
            self.head = nn.Sequential(
                OrderedDict([("fc", nn.Linear(inputs, head)), ("neuron", neuron())])
            )
        self.fc = nn.Linear(head or inputs, classes)
        self.mean = TimeMean(timesteps)

    def forward(self, x: Tensor) -> Tensor:
        x = self.flatten(self.pool(self.blocks(self.stem(x))))
        if self.head is not None:
            x = self.head(x)
        return self.mean(self.fc(x))


class ConvNet(Network):
    """3x3 convolutions of the given channels and strides, each with norm and neuron, then linear.

    ``residual`` adds one more convolution of the last width, its input added to its current before
    the neuron: the smallest network with a shortcut. ``pool`` holds, per convolution, the size of a
    max-pool after its neuron (1: none). ``bias=False`` leaves out the norms and the bias of the
    linear layer: without events, nothing is added to a membrane.
    """

    def __init__(
        self,
        *,
        classes: int,
        channels: Sequence[int],
        strides: Sequence[int],
        pool: Sequence[int] = (),
        residual: bool = False,
        bias: bool = True,
        neuron: NeuronFactory,
        timesteps: int,
        input_shape: Sequence[int],
        static: bool,
    ) -> None:
        super().__init__(timesteps=timesteps, input_shape=input_shape, static=static)
        if len(strides) != len(channels):
            raise ValueError(
                f"channels must have one entry a convolution ({len(strides)}), not {channels!r}"
            )
        size = tuple(input_shape[1:])
        stack: list[nn.Module] = []
        for index, (width, stride) in enumerate(zip(channels, strides, strict=True)):
            if index == 0:
                stack.append(self._stem(neuron, width, stride=stride, norm=bias))
            else:
                inputs = channels[index - 1]
                stack.append(_layer(neuron, inputs, width, stride=stride, norm=bias))
            size = tuple((n - 1) // stride + 1 for n in size)
            if pool and pool[index] > 1:
                stack.append(nn.MaxPool2d(pool[index]))
                size = tuple(n // pool[index] for n in size)
        if min(size) < 1:
            raise ValueError(f"input_shape must survive all strides and pools, not {input_shape!r}")
        self.layers = nn.Sequential(*stack)
        self.residual = _Residual(channels[-1], neuron) if residual else None
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(channels[-1] * size[0] * size[1], classes, bias=bias)
        self.mean = TimeMean(timesteps)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(x)
        if self.residual is not None:
            x = self.residual(x)
        return self.mean(self.fc(self.flatten(x)))


class _Residual(nn.Module):
    """One convolution with an identity shortcut: ``neuron(norm(conv(x)) + x)``."""

    def __init__(self, width: int, neuron: NeuronFactory) -> None:
        super().__init__()
        self.conv = _conv(width, width)
        self.norm = nn.BatchNorm2d(width)
        self.neuron = neuron()

    def forward(self, x: Tensor) -> Tensor:
        return self.neuron(self.norm(self.conv(x)) + x)


def _conv(inputs: int, outputs: int, *, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv


def _layer(
    neuron: NeuronFactory, inputs: int, outputs: int, *, stride: int, norm: bool
) -> nn.Sequential:
    layers = OrderedDict[str, nn.Module]()
    layers["conv"] = _conv(inputs, outputs, stride=stride)
    if norm:
        layers["norm"] = nn.BatchNorm2d(outputs)
    layers["neuron"] = neuron()
    return nn.Sequential(layers)


def _resnet(
    *,
    widths: Sequence[int] = (64, 128),
    blocks: Sequence[int] = (2, 2),
    stem_stride: int = 2,
    **common,
) -> ResNet:
    return ResNet(widths=widths, blocks=blocks, stem_stride=stem_stride, **common)


def _resnet20(*, widths: Sequence[int] = (128, 256, 512), stem_stride: int = 1, **common) -> ResNet:
    return ResNet(widths=widths, blocks=(3, 3, 3), stem_stride=stem_stride, **common)


def _resnet19(
    *,
    widths: Sequence[int] = (128, 256, 512),
    head: int = 256,
    stem_stride: int = 1,
    **common,
) -> ResNet:
    return ResNet(widths=widths, blocks=(3, 3, 2), head=head, stem_stride=stem_stride, **common)


def _resnet18(*, widths: Sequence[int] = (64, 128, 256, 512), **common) -> ResNet:
    stem = {"stem_kernel": 7, "stem_stride": 2, "stem_pool": True}
    return ResNet(widths=widths, blocks=(2, 2, 2, 2), **stem, **common)


def _resnet34(*, widths: Sequence[int] = (64, 128, 256, 512), **common) -> ResNet:
    stem = {"stem_kernel": 7, "stem_stride": 2, "stem_pool": True}
    return ResNet(widths=widths, blocks=(3, 4, 6, 3), **stem, **common)


def _digits(*, channels: Sequence[int] = (8, 16), residual: bool = True, **common) -> ConvNet:
    return ConvNet(channels=channels, strides=(1, 2), residual=residual, **common)


def _mnist(*, channels: Sequence[int] = (16, 32, 32), **common) -> ConvNet:
    return ConvNet(channels=channels, strides=(2, 2, 2), **common)


def _nmnist(*, channels: Sequence[int] = (8, 16, 16), bias: bool = True, **common) -> ConvNet:
    return ConvNet(channels=channels, strides=(2, 2, 2), bias=bias, **common)


def _vgg(*, width: int = 64, **common) -> ConvNet:
    channels = (width, width, 2 * width, 2 * width, 4 * width, 4 * width)
    return ConvNet(channels=channels, strides=(1,) * 6, pool=(1, 2) * 3, **common)


MODELS: dict[str, Callable[..., Network]] = {
    "resnet": _resnet,
    "resnet20": _resnet20,
    "resnet19": _resnet19,
    "resnet18": _resnet18,
    "resnet34": _resnet34,
    "digits": _digits,
    "mnist": _mnist,
    "nmnist": _nmnist,
    "vgg": _vgg,
}


def build(
    name: str,
    *,
    neuron: NeuronFactory,
    timesteps: int,
    input_shape: Sequence[int],
    classes: int,
    static: bool = True,
    **options: object,
) -> Network:
    """The model of that name; ``input_shape`` is ``(C, H, W)``, ``neuron()`` makes one neuron."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0)
        raise ValueError(
            f"model must be one of {', '.join(MODELS)}, not {name!r} (nearest: {near[0]})"
        )
    known = [
        p.name for p in inspect.signature(MODELS[name]).parameters.values() if p.name != "common"
    ]
    for option in options:
        if option not in known:
            raise ValueError(
                f"options of model {name} must be among {', '.join(known)}, not {option!r}"
            )
    return MODELS[name](
        neuron=neuron,
        timesteps=timesteps,
        input_shape=input_shape,
        classes=classes,
        static=static,
        **options,
    )


def macs(model: Network, input_shape: Sequence[int]) -> int:
    """Multiply-accumulates of one image at one timestep, in convolutions and linear layers,
    including padding taps. ``input_shape`` is ``(C, H, W)``; a temporal model gets T empty frames.
    """
    total = 0

    def count(module: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        assert isinstance(module, nn.Conv2d | nn.Linear)
        total += output[0].numel() * module.weight[0].numel()

    hooks = [
        module.register_forward_hook(count)
        for module in model.modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    frames = () if model.static else (model.timesteps,)
    device = next(model.parameters()).device
    training = model.training
    try:
        with torch.no_grad():
            model.eval()(torch.zeros(*frames, 1, *input_shape, device=device))
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    return total


def neuron_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The neurons' own learned scalars (rho, eta, ...) by name."""
    return {
        f"{path}.{name}": parameter
        for path, module in model.named_modules()
        if hasattr(module, "emit_levels")
        for name, parameter in module.named_parameters(recurse=False)
    }


def parameter_count(model: nn.Module) -> int:
    """Number of weights, norm gains and biases. The neurons' scalars are left out, as in tables of
    other papers: after export, rho and eta do not exist (they become thresholds).
    """
    scalars = sum(p.numel() for p in neuron_parameters(model).values())
    return sum(p.numel() for p in model.parameters()) - scalars
