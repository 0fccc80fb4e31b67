"""The processes of a run: one, or those that ``torchrun`` starts; each has its own device."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class World:
    """This process among all processes. As a context, it leaves the process group at its end.

    Collective calls do nothing in a world of one process.
    """

    rank: int
    size: int
    device: torch.device

    @classmethod
    def join(cls, device: str) -> World:
        """The world that ``torchrun`` describes in the environment, else this process alone.

        ``device`` is a torch device, or "auto": a GPU for each process if there is one.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            chosen = torch.device(device)
        except RuntimeError:
            raise ValueError(f"train.device must be auto, cpu or cuda, not {device!r}") from None
        if chosen.type == "cuda":
            if not torch.cuda.is_available():
                raise ValueError(f"train.device must be cpu where there is no GPU, not {device!r}")
            if chosen.index is None:
                chosen = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(chosen)
        if size == 1:
            return cls(rank=0, size=1, device=chosen)
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
        return cls(rank=dist.get_rank(), size=size, device=chosen)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.size == 1:
            return
        if kind is None:
            dist.barrier()  # a process that leaves during communication may abort the others
        dist.destroy_process_group()

    @property
    def first(self) -> bool:
        """Whether this process is the one that tests, logs and saves."""
        return self.rank == 0

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def agree(self, decision: bool) -> bool:
        """The decision of the first process; waits for all processes."""
        if self.size == 1:
            return decision
        flag = torch.tensor(float(decision), device=self.device)
        dist.broadcast(flag, 0)
        return bool(flag.item())
