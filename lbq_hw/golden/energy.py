"""Arithmetic energy of one inference, by two price lists; memory and neuron updates are not priced.

Picojoules at 45 nm (Horowitz 2014). The paper prices each accumulation as a float addition and the
first layer as float multiply-accumulates; the integer list prices what a core really executes.
"""

from __future__ import annotations

from typing import Any

from lbq_hw.golden.counts import Counts

FP32_MAC_PJ = 4.6
FP32_ADD_PJ = 0.9
INT32_ADD_PJ = 0.1
INT8_MULTIPLY_PJ = 0.2
FORMATION_PJ = 0.1

_MJ_PER_PJ = 1e-9


def paper_mj(*, fp_macs: float = 0.0, acs: float = 0.0, formation_ops: float = 0.0) -> float:
    """The paper's price list: float MACs, accumulations, bit-plane formation."""
    return _MJ_PER_PJ * (FP32_MAC_PJ * fp_macs + FP32_ADD_PJ * acs + FORMATION_PJ * formation_ops)


def integer_mj(*, adds: float = 0.0, multiplies: float = 0.0) -> float:
    """The integer price list: 32-bit additions and 8-bit multiplications."""
    return _MJ_PER_PJ * (INT32_ADD_PJ * adds + INT8_MULTIPLY_PJ * multiplies)


def report(counts: Counts) -> dict[str, Any]:
    """Energy per image in both price lists, in mJ, beside the counts that were priced.

    ``paper``: `ann` is the same network as a float ANN, every MAC once; `lbq` has float MACs on
    the pixels, bit-sparse accumulations elsewhere (identity shortcuts not counted) and formation
    operations, its fan-out exact or with padding taps; `ann_ratio` is the energy of `ann` divided
    by this.

    ``integer``: `lbq` is all that the core executes, pixels and identity shortcuts too, one
    addition each, and formation. `ann_int8` and `quantized_ann` (the same N + 1 levels, one
    timestep) are dense: an int8 multiplication and an addition for every MAC, whatever the width
    of the levels. `quantized_ann_zero_skipping_estimate` has them only where a pixel or level is
    not 0; it is an estimate, since it takes the activity of a timestep from this network.
    """
    dense = {"macs": counts.macs, "mj": integer_mj(adds=counts.macs, multiplies=counts.macs)}
    reads = sum(path.work.nonzero / path.executions for path in counts.paths if not path.identity)
    adds = counts.work.bit_sparse + counts.formation_ops
    return {
        "paper": {
            "ann": {"fp_macs": counts.macs, "mj": paper_mj(fp_macs=counts.macs)},
            "lbq": _paper_lbq(counts, padded=False),
            "lbq_with_padding": _paper_lbq(counts, padded=True),
        },
        "integer": {
            "lbq": {"adds": adds, "mj": integer_mj(adds=adds)},
            "ann_int8": dense,
            "quantized_ann": dense,
            "quantized_ann_zero_skipping_estimate": {
                "macs": reads,
                "mj": integer_mj(adds=reads, multiplies=reads),
            },
        },
    }


def _paper_lbq(counts: Counts, *, padded: bool) -> dict[str, Any]:
    work = counts.paper_work(padded=padded)
    priced = {
        "fp_macs": counts.input_macs,
        "acs": work.bit_sparse,
        "formation_ops": counts.formation_ops,
    }
    mj = paper_mj(**priced)
    return {
        **priced,
        "acs_unary": work.unary,
        "mj": mj,
        "ann_ratio": paper_mj(fp_macs=counts.macs) / mj if mj else None,
    }
