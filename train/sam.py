"""Sharpness-aware steps (SAM; Foret et al., arXiv:2010.01412): the optimizer takes the gradient a
short way uphill from the weights, which leads to flat minima.

A step needs two passes instead of one. The last epochs of a run are enough for nearly all of the
gain (Zhou et al., arXiv:2410.10373), so ``train.sam_epochs`` counts from the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from lbq_hw.train.optim import scales


@contextlib.contextmanager
def uphill(model: nn.Module, radius: float) -> Iterator[None]:
    """Within it, the weights are moved by ``radius`` along their gradients, which must exist.

    Afterwards weights and running statistics of norms are restored bit for bit; the gradients are
    those of the last pass. Neurons' scalars and quantizers' steps are not moved: as for weight
    decay, they are scales and not weights.
    """
    fixed = scales(model)
    slopes = [
        (weight, weight.grad)
        for name, weight in model.named_parameters()
        if name not in fixed and weight.grad is not None
    ]
    with torch.no_grad():
        moved = [*(weight for weight, _ in slopes), *model.buffers()]
        before = [tensor.clone() for tensor in moved]
        length = nn.utils.get_total_norm([slope for _, slope in slopes])
        shift = radius / length.clamp(min=torch.finfo(torch.float32).tiny)
        for weight, slope in slopes:
            weight.add_(slope * shift)
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(moved, before, strict=True):
                tensor.copy_(value)
