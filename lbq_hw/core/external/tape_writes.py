"""Turns the slices of a tape into writes of the core's memories."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.external.row_expander import RowExpander
from lbq_hw.core.external.tape_place import is_last_of_row
from lbq_hw.core.fabric.contracts import at_most_one, must
from lbq_hw.core.host.addresses import place
from lbq_hw.core.host.writes import store_params, store_records
from lbq_hw.core.walk.tables import slice_stream
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["MixedWrites", "TapeWrites"]


class TapeWrites(wiring.Component):
    """Turns slices into writes of the memories; weights are written by the whole row.

    Timing. A slice of a record is stored in the cycle after it was given. A parameter's value is
    stored in the cycle after its last slice was given, a weight row two cycles after its last
    slice. Slices of a row and of a parameter must come in ascending order.

    Members
    -------
    written : in, a bit for each `Region`
        A slice is written there; at most one bit is set.
    addr, data : in
        Address of the slice, and its value.
    records : stream of `RecordSlice`
    weights : write port of a row
    params : write port as in `NeuronArray`
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        row = data.ArrayLayout(signed(c.weight_bits), c.lanes)
        param = data.ArrayLayout(signed(c.membrane_bits), len(isa.parameters(c)) * c.units)
        weights = memory.WritePort.Signature(addr_width=ceil_log2(c.weight_rows), shape=row)
        params = memory.WritePort.Signature(
            addr_width=ceil_log2(c.channels // c.units), shape=param, granularity=1
        )
        super().__init__(
            {
                "written": In(len(Region)),
                "addr": In(SLICE),
                "data": In(SLICE),
                "records": Out(slice_stream(c)),
                "weights": In(weights),
                "params": In(params),
            }
        )

    def elaborate(self, platform):
        m = Module()
        c = self._config
        written, addr, value = (
            Signal.like(given, name=name)
            for name, given in (("kept_written", self.written), ("kept_addr", self.addr),
                                ("kept_data", self.data))
        )  # fmt: skip
        m.d.sync += [written.eq(self.written), addr.eq(self.addr), value.eq(self.data)]
        given = {"written": written, "addr": addr, "value": value}
        store_records(m, self.records, **given)
        store_params(m, c, self.params, **given)

        _, entry = place(c, addr, Region.WEIGHTS)
        used = regions.weight_slice_bits(c)
        row = Signal(c.lanes * c.weight_bits, reset_less=True)
        m.d.sync += self.weights.en.eq(0)
        m.d.comb += self.weights.data.as_value().eq(self._expanded(m, row, addr))
        with m.If(written[Region.WEIGHTS]):
            m.d.sync += [
                row.eq(Cat(row, value[:used])[used:]),
                self.weights.en.eq(self._is_last(addr)),
                self.weights.addr.eq(entry),
            ]
        must(m, platform, at_most_one(self.written), "a slice is written to two regions")
        return m

    def _is_last(self, addr):
        """Whether an address is the last slice of a row."""
        part, _ = place(self._config, addr, Region.WEIGHTS)
        return part == regions.slices(self._config)[Region.WEIGHTS] - 1

    def _expanded(self, _m, row, _addr):
        """The row to be stored, made from its slices; the last slice went to `addr`."""
        return row


class MixedWrites(TapeWrites):
    """As `TapeWrites`, with a `RowExpander` in front of the weight memory."""

    def _is_last(self, addr):
        return is_last_of_row(self._config, addr)

    def _expanded(self, m, row, addr):
        m.submodules.expander = expander = RowExpander(self._config)
        numbers = tape.NARROW[: len(self._config.narrow_bits)]
        m.d.comb += expander.row.eq(row)
        m.d.sync += expander.narrow.eq(Cat(addr[regions.SHIFT :] == number for number in numbers))
        return expander.expanded
