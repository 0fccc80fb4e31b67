"""ANNs as people write them: the layout of torchvision's ResNets, whose blocks call one ReLU twice
and in place."""

from collections.abc import Sequence

import torch
from examples import example
from torch import Tensor, nn

BasicBlock = example("convert").BasicBlock


class ReluResNet(nn.Module):
    """Stages called layer1, layer2, ..., of `blocks` blocks each; a stem for small images."""

    def __init__(
        self, channels: int, widths: Sequence[int], blocks: int = 1, classes: int = 10
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        inputs, self.stages = widths[0], []
        for stage, width in enumerate(widths):
            strides = [1 if stage == 0 else 2] + [1] * (blocks - 1)
            parts = []
            for stride in strides:
                parts.append(BasicBlock(inputs, width, stride))
                inputs = width
            self.stages.append(f"layer{stage + 1}")
            self.add_module(self.stages[-1], nn.Sequential(*parts))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        for stage in self.stages:
            x = self.get_submodule(stage)(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))
