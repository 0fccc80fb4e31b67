"""Link and UART with a ledger behind them, which tells the requests that were executed."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect

from lbq_hw.core.host import uart
from lbq_hw.core.host.link import Link
from lbq_hw.core.host.port import PortSignature
from lbq_hw.isa import link, regions

__all__ = ["CELLS", "COUNT", "ENTRIES", "LOG", "USABLE", "Ledger", "LinkWithLedger"]

CELLS = 256
"""Words of the memory, at the low bits of an address: as many as a frame's address counts up to."""
ENTRIES = 2048
"""Writes that the log holds: the latest ones."""
LOG = 13 << regions.SHIFT
"""Address of the log. Each entry has two words, the address and the data of a write."""
COUNT = 14 << regions.SHIFT
"""Address of the number of writes."""
USABLE = LOG
"""Addresses below this one read the memory."""


class Ledger(wiring.Component):
    """A memory that also logs and counts all writes, at any address, in their order.

    Requests wait for a random number of cycles, and so do answers.

    Members
    -------
    port : `PortSignature`
    """

    port: Any

    def __init__(self) -> None:
        super().__init__({"port": In(PortSignature())})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        entry = data.StructLayout({"addr": 32, "data": 32})
        m.submodules.cells = cells = memory.Memory(shape=32, depth=CELLS, init=[])
        m.submodules.log = log = memory.Memory(shape=entry, depth=ENTRIES, init=[])
        port: Any = self.port
        cell: Any = cells.write_port()
        note: Any = log.write_port()
        kept: Any = cells.read_port()
        noted: Any = log.read_port()
        count: Any = Signal(32)
        random: Any = Signal(16, init=1)
        taken, written, answering = Signal(), Signal(), Signal()
        source, half = Signal(4), Signal()
        m.d.comb += [
            port.ready.eq(~answering & random[:2].any()),
            taken.eq(port.valid & port.ready),
            written.eq(taken & port.write),
            cell.addr.eq(port.addr),
            cell.data.eq(port.w_data),
            cell.en.eq(written),
            note.addr.eq(count),
            note.data.addr.eq(port.addr),
            note.data.data.eq(port.w_data),
            note.en.eq(written),
            kept.addr.eq(port.addr),
            kept.en.eq(taken),
            noted.addr.eq(port.addr >> 1),
            noted.en.eq(taken),
            port.r_valid.eq(answering & random[:2].any()),
        ]
        m.d.sync += [
            # x^16 + x^14 + x^13 + x^11 + 1: all states but 0
            random.eq(Cat(random[1:], random[0] ^ random[2] ^ random[3] ^ random[5])),
            count.eq(count + written),
        ]
        with m.If(taken):
            m.d.sync += [source.eq(port.addr[regions.SHIFT :]), half.eq(port.addr[0])]
            m.d.sync += answering.eq(~port.write)
        with m.Elif(port.r_valid):
            m.d.sync += answering.eq(0)
        with m.Switch(source):
            with m.Case(COUNT >> regions.SHIFT):
                m.d.comb += port.r_data.eq(count)
            with m.Case(LOG >> regions.SHIFT):
                m.d.comb += port.r_data.eq(Mux(half, noted.data.data, noted.data.addr))
            with m.Default():
                m.d.comb += port.r_data.eq(kept.data)
        return m


class LinkWithLedger(wiring.Component):
    """`Link` + UART + `Ledger`, at the highest rate of the line.

    Members
    -------
    rx, tx : as in `System`
    busy : out
        A request waits at the ledger.
    """

    rx: Any
    tx: Any
    busy: Any

    def __init__(self) -> None:
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "busy": Out(1)})

    def elaborate(self, _platform: Any) -> Module:
        m: Any = Module()
        core: Any = Link(divisor=link.LEAST_DIVISOR)
        receiver: Any = uart.UartReceiver()
        transmitter: Any = uart.UartTransmitter()
        ledger = Ledger()
        m.submodules.link = core
        m.submodules.receiver = receiver
        m.submodules.transmitter = transmitter
        m.submodules.ledger = ledger
        connect(m, receiver.o, core.i)
        connect(m, core.o, transmitter.i)
        connect(m, core.port, ledger.port)
        m.d.comb += [
            receiver.divisor.eq(core.divisor),
            transmitter.divisor.eq(core.divisor),
            core.idle.eq(~transmitter.busy),
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.busy.eq(core.port.valid),
        ]
        return m
