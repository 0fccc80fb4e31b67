# amaranth: UnusedElaboratable=no
"""TapePlace against `tape.decode`: which slices exist, and which comes next."""

from __future__ import annotations

import random

from core.external.tape_bench import CORE
from core.harness import Bench

from lbq_hw.config import CoreConfig, narrow_mask
from lbq_hw.core.external.tape_place import MixedPlace, TapePlace
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region


def slices_of(region: Region) -> list[int]:
    """All addresses of a region in their order."""
    return [
        regions.address(CORE, region, entry, part)
        for entry in range(regions.entries(CORE)[region])
        for part in range(regions.slices(CORE)[region])
    ]


def test_steps_go_through_all_slices_of_a_region_and_then_beyond() -> None:
    for region in tape.WRITTEN:
        every = slices_of(region)
        place = TapePlace(CORE)
        bench = Bench(place)
        script = [{"load": 1, "item_slice": every[0]}] + [{"step": 1}] * len(every)
        signals = {name: getattr(place, name) for name in ("load", "item_slice", "step")}
        bench.script(signals, script)
        names = ("address", "in_region", "exists", "partway")
        seen = bench.probe(**{name: getattr(place, name) for name in names})
        bench.run(extra=1)
        assert seen["address"][1 : 1 + len(every)] == every
        assert seen["exists"][1 : 2 + len(every)] == [1] * len(every) + [0]
        assert set(seen["in_region"][1 : 1 + len(every)]) == {1 << region}
        whole = region in (Region.WEIGHTS, Region.PARAMS)
        bits = (regions.slices(CORE)[region] - 1).bit_length()
        partway = [int(whole and address % (1 << bits) > 0) for address in every]
        assert seen["partway"][1 : 1 + len(every)] == partway


def test_steps_go_through_all_slices_of_rows_of_every_width() -> None:
    config = CORE.with_(lanes=32, word=32, channels=32, logits=32, narrow=narrow_mask((6, 4, 3)))
    for number, bits in tape.row_bits(config).items():
        count = regions.row_slices(config, bits)
        every = row_slices_of(config, number, count)
        place = MixedPlace(config)
        bench = Bench(place)
        script = [{"load": 1, "item_slice": every[0]}] + [{"step": 1}] * len(every)
        signals = {name: getattr(place, name) for name in ("load", "item_slice", "step")}
        bench.script(signals, script)
        names = ("address", "in_region", "exists", "partway")
        seen = bench.probe(**{name: getattr(place, name) for name in names})
        bench.run(extra=1)
        assert seen["address"][1 : 1 + len(every)] == every
        assert seen["exists"][1 : 2 + len(every)] == [1] * len(every) + [0]
        assert set(seen["in_region"][1 : 1 + len(every)]) == {1 << Region.WEIGHTS}
        partway = [int(part > 0) for _ in range(config.weight_rows) for part in range(count)]
        assert seen["partway"][1 : 1 + len(every)] == partway


def row_slices_of(config: CoreConfig, number: int, count: int) -> list[int]:
    """Addresses of all weight rows of so many slices, in the region of their width."""
    first = number - Region.WEIGHTS << regions.SHIFT
    return [
        first + regions.address(config, Region.WEIGHTS, entry, part)
        for entry in range(config.weight_rows)
        for part in range(count)
    ]


def test_an_address_exists_if_an_item_may_write_it() -> None:
    source = random.Random(1)
    there = [address for region in tape.WRITTEN for address in slices_of(region)]
    others = [region << regions.SHIFT for region in range(16) if region not in tape.WRITTEN]
    flipped = [address ^ 1 << source.randrange(32) for address in there]
    tried = there + others + flipped
    place = TapePlace(CORE)
    bench = Bench(place)
    script = [{"load": 1, "item_slice": address} for address in tried]
    bench.script({"load": place.load, "item_slice": place.item_slice}, script)
    seen = bench.probe(exists=place.exists)
    bench.run(extra=1)
    assert seen["exists"][1 : 1 + len(tried)] == [int(address in there) for address in tried]
