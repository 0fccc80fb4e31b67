"""Sections on what is stored and how wide: the memory map and the proven widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lbq_hw.report import charts
from lbq_hw.report.charts import Area, Part, Row
from lbq_hw.report.facts import Block, Facts, Memory, MemoryUse, Proof
from lbq_hw.report.markup import Markup, el
from lbq_hw.report.quantities import SPACE, count


def memory(facts: Facts) -> Markup | None:
    if (stored := facts.memory) is None:
        return None
    size = {use.field: use.size for use in stored.memories}
    bits = sum(use.size * use.bits for use in stored.memories)
    lead = (
        f"The core's memories hold {_bytes(bits)}. Tensors whose lives do not overlap share "
        "addresses."
    )
    return charts.section(
        "memory",
        "Memory map",
        lead,
        charts.figure("memories", "Entries used", charts.rows(map(_use, stored.memories))),
        _tensors(stored, size["plane_words"]),
        _weights(stored.weights, size["weight_rows"]),
    )


def _bytes(bits: int) -> str:
    return f"{bits / 8192:,.1f}{SPACE}KiB" if bits >= 8192 else f"{-(-bits // 8)}{SPACE}bytes"


def _use(use: MemoryUse) -> Row:
    what = f"{count(use.used)} of {count(use.size)} entries of {use.bits} bits"
    return Row(
        label=[use.title, el("small", f"{use.bits} bits wide")],
        parts=[Part(share=use.used / use.size, colour="a1", title=what)],
        values=[
            [el("b", count(use.used)), f" / {count(use.size)}"],
            _bytes(use.size * use.bits),
        ],
    )


def _tensors(stored: Memory, words: int) -> Markup:
    """One lane per layer; a tensor spans the layers during which it is kept."""
    names = ["load", *stored.layers]
    areas = [
        Area(
            left=block.base / words,
            right=block.end / words,
            first=block.born + 1,
            last=max(block.dies, block.born) + 1,
            label=block.name,
            title=f"{_words(block)}, kept {_kept(block, names)}",
        )
        for block in stored.tensors
    ]
    return charts.figure(
        "memory-map",
        "Activations: words from left to right, layers from top to bottom",
        charts.area_map(areas, lanes=names, ends=("word 0", count(words - 1))),
    )


def _words(block: Block) -> str:
    return f"{block.name}: words {count(block.base)} to {count(block.end - 1)}"


def _kept(block: Block, names: Sequence[str]) -> str:
    first, last = names[block.born + 1], names[max(block.dies, block.born) + 1]
    return f"during {first}" if first == last else f"from {first} to {last}"


def _weights(blocks: Sequence[Block], rows: int) -> Markup:
    areas = [
        Area(
            left=block.base / rows,
            right=block.end / rows,
            first=0,
            last=0,
            label=block.name,
            title=_words(block).replace("words", "rows"),
        )
        for block in blocks
    ]
    ends = ("row 0", count(rows - 1))
    return charts.figure("weight-map", "Weights", charts.area_map(areas, lanes=["rows"], ends=ends))


def proofs(facts: Facts) -> Markup | None:
    if not facts.proofs or facts.core is None:
        return None
    config = facts.core.config
    lead = (
        "Bits that no input can exceed, proven from the weights: the core has "
        f"{config.acc_bits} for accumulators and {config.membrane_bits} for membranes."
    )
    kinds = (
        ("accumulator", "acc_bits", config.acc_bits),
        ("membrane", "membrane_bits", config.membrane_bits),
    )
    return charts.section(
        "proofs",
        "Proven widths",
        lead,
        [
            charts.figure(
                f"proof-{name}",
                f"{name.capitalize()}, bits",
                charts.rows(_widths(facts.proofs, field, size)),
            )
            for name, field, size in kinds
        ],
    )


def _widths(proofs: Sequence[Proof], field: str, size: int) -> Iterator[Row]:
    for proof in proofs:
        bits = getattr(proof, field)
        title = f"{bits} of {size} bits"
        yield Row(
            label=proof.layer,
            parts=[Part(share=bits / size, colour="a1", title=title)],
            values=[[el("b", str(bits)), f" / {size}"]],
        )
