"""The layers of a tape as tapes of their own, so that each can be looked at when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lbq_hw import isa
from lbq_hw.compiler import Program
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeItem


def layer_tapes(program: Program) -> Iterator[bytes]:
    """A tape for each layer. Run in their order, they do what the whole tape does.

    A tape begins with pass 0, which is described by the first LAYER entry; its last pass is marked
    so. What tables, weights and parameters hold is left by the tapes before.
    """
    config, items, first = program.config, list[TapeItem](), 0
    layers = [cut.layer for cut in program.passes]
    number = 0  # of the pass that comes next
    for item in tape.decode(config, program.tape):
        after = max(0, item.after - first)
        if item.address >> regions.SHIFT == Region.LAYERS:
            ends = layers[number + 1 : number + 2] != [layers[number]]
            items.append(_moved(program, item, (number - first) % config.layers, after, ends))
        else:
            items.append(replace(item, after=after))
        if item.address == tape.PASS:
            number += 1
            if layers[number : number + 1] != [layers[number - 1]]:
                yield tape.encode(config, items)
                items, first = [], number


def _moved(program: Program, item: TapeItem, entry: int, after: int, last: bool) -> TapeItem:
    """A LAYER record at another entry, the last one or not."""
    config = program.config
    word = sum(part << SLICE * i for i, part in enumerate(item.payload))
    values = isa.LAYER.decode(config, word) | {"last": int(last)}
    word = isa.LAYER.encode(config, values)
    payload = tuple(word >> SLICE * i & (1 << SLICE) - 1 for i in range(len(item.payload)))
    address = regions.address(config, Region.LAYERS, entry)
    return TapeItem(address=address, payload=payload, after=after)
