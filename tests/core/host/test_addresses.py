"""What of an address a core needs, against the map of `lbq_hw.isa.regions`."""

from __future__ import annotations

import pytest

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.addresses import used_bits
from lbq_hw.isa import regions


@pytest.mark.parametrize(
    "config",
    [CoreConfig(), CoreConfig(weight_rows=1024, plane_words=64), CoreConfig().with_external()],
    ids=["default", "few planes", "external"],
)
def test_the_highest_address_of_all_regions_has_as_many_bits(config: CoreConfig) -> None:
    slices, entries = regions.slices(config), regions.entries(config)
    highest = max(
        regions.address(config, kind, entries[kind] - 1, slices[kind] - 1) % (1 << regions.SHIFT)
        for kind in regions.reached(config)
    )
    assert used_bits(config) == highest.bit_length()
