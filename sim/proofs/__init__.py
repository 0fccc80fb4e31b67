"""Contracts of blocks, proven for all inputs: ``python -m sim.proofs --help``.

A file per room of the core has its `PROOFS`. Each has a fault beside it that breaks the contract
when it is planted in the block, so that a proof that proves nothing is found.
"""

from __future__ import annotations

from importlib import import_module

from lbq_hw.sim.proofs.contract import Proof

FILES = ("streams", "bits", "walk", "scan", "lanes", "neurons", "levels", "link", "pages", "sdram")


def every() -> tuple[Proof, ...]:
    """All proofs."""
    return tuple(
        proof for name in FILES for proof in import_module(f"lbq_hw.sim.proofs.{name}").PROOFS
    )
