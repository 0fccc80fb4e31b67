"""Sharpness-aware steps (SAM; Foret et al., arXiv:2010.01412): the optimizer takes the gradient not
where the weights are, but a short way uphill from there, which leads into flat minima.

A step needs two passes instead of one. The last epochs of a run are enough for nearly all of the
gain (Zhou et al., arXiv:2410.10373), so that is where ``train.sam_epochs`` has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn

from lbq_hw.train.optim import scales


@contextlib.contextmanager
def uphill(model: nn.Module, radius: float) -> Iterator[None]:
    """Within it the weights lie ``radius`` further along their gradients, which must be there.

    Afterwards weights, and the running statistics of norms, are bit for bit what they were before;
    the gradients are those of the last pass. Neurons' scalars and quantizers' steps stay where they
    are, as weight decay leaves them: they are scales, not weights.
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
