"""Splits a tape into one tape per layer, so that each layer's result can be read."""

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
    """One tape per layer. Executed in order, they do the same as the whole tape.

    Each tape begins with pass 0, which uses the first LAYER entry, and its last pass is marked as
    last. Tables, weights and parameters keep the contents from earlier tapes.
    """
    config, items, first = program.config, list[TapeItem](), 0
    layers = [cut.layer for cut in program.passes]
    number = 0  # number of the next pass
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
    """A LAYER record moved to another entry, with the mark of the last pass if `last`."""
    config = program.config
    word = sum(part << SLICE * i for i, part in enumerate(item.payload))
    values = isa.LAYER.decode(config, word) | {"last": int(last)}
    word = isa.LAYER.encode(config, values)
    payload = tuple(word >> SLICE * i & (1 << SLICE) - 1 for i in range(len(item.payload)))
    address = regions.address(config, Region.LAYERS, entry)
    return TapeItem(address=address, payload=payload, after=after)
