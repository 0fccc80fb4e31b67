"""As much of Triton as the kernels of ``train.kernels`` use, on torch tensors, one program after
the other.

With the plugin ``emulate`` of the tests their tests run where neither
a GPU nor Triton is. What only a compiler refuses is not noticed here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from triton import language

LAUNCH = (
    "num_warps",
    "num_stages",
    "maxnreg",
    "enable_fp_fusion",
)  # how, not what, a kernel computes


def cdiv(x: int, y: int) -> int:
    return -(-x // y)


class Kernel:
    """A function that other kernels call, and that ``kernel[grid](...)`` launches."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)

    def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
        (programs,) = grid

        def launch(*args: Any, **options: Any) -> None:
            given = [language.Pointer(x) if isinstance(x, torch.Tensor) else x for x in args]
            kept = {name: value for name, value in options.items() if name not in LAUNCH}
            for language.PROGRAM[:] in ((program, programs) for program in range(programs)):
                with torch.no_grad():
                    self.function(*given, **kept)

        return launch


jit = Kernel
