# amaranth: UnusedElaboratable=no
"""The ports of the module; tests/rtl and tests/sim/test_own_design.py run it."""

from __future__ import annotations

import pytest
from core.pixels.pictures import LAYOUTS

from lbq_hw.config import CoreConfig
from lbq_hw.core.bus.top import BUSES, Axi4LiteCore, BusCore, PlainCore, WishboneCore

CONFIG = CoreConfig()
STREAMS = {"s_axis_pixel_tvalid", "s_axis_pixel_tready", "s_axis_pixel_tdata",
           "s_axis_pixel_tuser", "m_axis_logit_tvalid", "m_axis_logit_tready",
           "m_axis_logit_tdata", "m_axis_logit_tlast"}  # fmt: skip
TAPE = {"tape_works", "m_axis_tape_address_tvalid", "m_axis_tape_address_tready",
        "m_axis_tape_address_tdata", "s_axis_tape_word_tvalid", "s_axis_tape_word_tready",
        "s_axis_tape_word_tdata"}  # fmt: skip
OWN = {
    PlainCore: {"bus_valid", "bus_write", "bus_addr", "bus_w_data", "bus_ack", "bus_r_data",
                "bus_refused"},
    WishboneCore: set(WishboneCore.NAMES.values()),
    Axi4LiteCore: {f"s_axi_{name}" for name in (
        "awaddr", "awprot", "awvalid", "awready", "wdata", "wstrb", "wvalid", "wready", "bresp",
        "bvalid", "bready", "araddr", "arprot", "arvalid", "arready", "rdata", "rresp", "rvalid",
        "rready")},
}  # fmt: skip


@pytest.mark.parametrize("bus", BUSES)
def test_the_ports(bus: str) -> None:
    kind: type[BusCore] = BUSES[bus]
    shape = LAYOUTS["gathered taps"]
    block = kind(CONFIG, layout=shape, logits=[0, 1])
    common = {"irq", "busy", "failed"}
    assert set(block.signature.members) == OWN[kind] | STREAMS | common
    large = CONFIG.with_external(16, lanes=32)
    block = kind(large, layout=shape, logits=[0, 1])
    assert set(block.signature.members) == OWN[kind] | STREAMS | common | TAPE
