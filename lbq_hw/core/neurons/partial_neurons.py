"""Neuron units of a core with external memory: spread over the chip, and with partial sums."""

from amaranth import Cat, Signal
from amaranth.lib import data, memory
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.fabric.sharing import SPREAD_LANES, SPREAD_UNITS, lane_groups
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.parameters import SpreadParameters
from lbq_hw.core.neurons.partial_sums import LATENCY, PartialSums
from lbq_hw.core.neurons.partial_updates import PartialUpdates
from lbq_hw.core.payload import LayerInfo, LevelPlanes, PassInfo

__all__ = ["PartialNeurons"]


class PartialNeurons(NeuronArray):
    """As `NeuronArray`, with `PartialSums`, and with copies of the signals that all units read.

    With ``layer.partial_in``, the sums of a step start from the partial sums of the previous pass.
    With ``layer.partial_out``, a step only stores its sums for the next pass.

    Parameters
    ----------
    partial_words, partial_bits : int
        Size of the memory of partial sums.

    Members
    -------
    i_valids : in
        Copies of ``i_sum.valid``, two for each `SPREAD_LANES` lanes.
    rooms : out
        Copies of ``room``, one for each `SPREAD_LANES` lanes.
    i_step : stream of `StepInfo`
        Must be valid from the cycle before its sums on.
    begin : in
        A layer begins: its partial sums start at the first word. Not while `busy`.
    logits_valids : out
        Copies of ``o_logits.valid``, one for each `SPREAD_UNITS` units.
    """

    UPDATES = PartialUpdates
    PARAMETERS = SpreadParameters
    ADDED = LATENCY - 1

    def __init__(
        self,
        *,
        lanes: int,
        units: int,
        layer: LayerInfo,
        partial_words: int,
        partial_bits: int,
        **sizes,
    ):
        self._partial = {"words": partial_words, "bits": partial_bits}
        self._copied = lane_groups(lanes, SPREAD_LANES)
        self._unit_groups = lane_groups(units, SPREAD_UNITS)
        if not isinstance(layer, PassInfo):
            raise TypeError(f"layer must be a PassInfo, not {layer!r}")
        super().__init__(lanes=lanes, units=units, layer=layer, **sizes)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        must(m, platform, ~(self.begin & self.busy), "a layer begins while steps are in flight")
        return m

    def _more_members(self, levels: LevelPlanes):
        return super()._more_members(levels) | {
            "i_valids": In(2 * self._copied),
            "rooms": Out(self._copied),
            "begin": In(1),
            "logits_valids": Out(self._unit_groups),
        }

    def _take(self, m, updates):
        m.submodules.partial = partial = PartialSums(
            units=len(updates.sums),
            groups=self._groups,
            acc_bits=len(updates.sums[0]),
            **self._partial,
        )
        sent, write = [updates.o], updates.step.write
        for cycle in range(self.ADDED):
            sent.append(Signal.like(updates.o, name=f"sent_{cycle}"))
            later = Signal.like(write, name=f"write_{cycle}", reset_less=True)
            m.d.sync += [sent[-1].eq(sent[-2]), later.eq(write)]
            write = later
        m.d.comb += [
            updates.i_valids.eq(self.i_valids),
            self.rooms.eq(updates.rooms),
            partial.begin.eq(self.begin),
            partial.step.eq(self.i_sum.valid),
            partial.valid.eq(updates.o.valid),
            partial.group.eq(updates.o.group),
            partial.sums.eq(updates.sums),
            partial.add.eq(self.layer.partial_in),
            partial.leave.eq(self.layer.partial_out),
        ]
        return sent, write, partial.o

    def _parameters_at(self, sent, at):
        """As in `NeuronArray`, a cycle earlier: the path to the memories takes one cycle."""
        return sent[-2], at[self._positions.theta - 2]

    def _layers(self, m, units):
        """Copies of the layer, a cycle late; the layer is stable since before its first step."""
        copied = copies(m, self.layer, self._unit_groups, name="layer")
        layers = [data.View(self.layer.shape(), copy) for copy in copied]
        return [layers[unit // SPREAD_UNITS] for unit in range(units)]

    def _decays(self, m, at, units):
        """Copies of the decay's bits, selected a cycle before they are used."""
        factors = []
        for bit in range(self._positions.decay_bits + 1):
            before = at[self._positions.decay(bit) - 1]
            factor = Signal(name=f"factor_{bit}")
            m.d.comb += factor.eq(self._factor(bit) & ~before.fresh)
            factors.append(copies(m, factor, self._unit_groups, name=f"decay_{bit}"))
        return [Cat(own[unit // SPREAD_UNITS] for own in factors) for unit in range(units)]

    def _keep_membranes(self, m, at, units):
        """As in `NeuronArray`, in a memory for each `SPREAD_UNITS` units. Each memory has its own
        copies of the control values, taken a cycle before they are used.
        """
        if self._timesteps == 1:
            return
        asked, fired = at[self._positions.v - 2], at[self._positions.fire - 1]
        for first in range(0, len(units), SPREAD_UNITS):
            some = units[first : first + SPREAD_UNITS]
            m.submodules[f"membrane_{first}"] = state = memory.Memory(
                shape=data.ArrayLayout(self.o_logits.payload.shape().elem_shape, len(some)),
                depth=self._groups,
                init=[],
                attrs=APART,
            )
            write, read = state.write_port(), state.read_port()
            m.d.comb += [
                read.addr.eq(*copies(m, asked.group, 1, name=f"membrane_read_{first}")),
                write.addr.eq(*copies(m, fired.group, 1, name=f"membrane_write_{first}")),
                write.en.eq(*copies(m, fired.valid, 1, name=f"membrane_writes_{first}")),
            ]
            for i, unit in enumerate(some):
                m.d.comb += [unit.v.eq(read.data[i]), write.data[i].eq(unit.next_v)]

    def _offer_logits(self, m, fired, units):
        super()._offer_logits(m, fired, units)
        valids = copies(m, fired.valid & fired.logits, self._unit_groups, name="logits_valid")
        m.d.comb += self.logits_valids.eq(Cat(valids))
