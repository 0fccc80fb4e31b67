"""Neuron units with few registers."""

from amaranth import Cat
from amaranth.lib import stream
from amaranth.lib.wiring import Out

from lbq_hw.core.neurons.compact_unit import CompactPositions, CompactUnit
from lbq_hw.core.neurons.level_collector import CompactCollector
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.parameters import CompactParameters
from lbq_hw.core.payload import LevelPlanes, LevelWrite

__all__ = ["CompactNeurons"]


class CompactNeurons(NeuronArray):
    """As `NeuronArray`, for a slow clock on an iCE40, whose cells are few.

    Timing. As in `NeuronArray`, but in cycle ``c + latency`` planes are only announced; plane k
    itself follows k + 1 cycles later.

    Members
    -------
    o_planes : stream of `LevelWrite`, always ready
    planes : array of ``lanes`` bits each
        The planes of the item that was offered, each in its own cycle.
    """

    PARAMETERS = CompactParameters
    COLLECTOR = CompactCollector
    OFFER = 0

    def _make_positions(self, **sizes) -> CompactPositions:
        return CompactPositions(**sizes, keeps=self._timesteps > 1)

    def _make_unit(self) -> CompactUnit:
        return CompactUnit(**self._unit_sizes, keeps=self._timesteps > 1)

    def _more_members(self, levels: LevelPlanes):
        write = LevelWrite(write=levels["write"].shape)
        return {
            "o_planes": Out(stream.Signature(write, always_ready=True)),
            "planes": Out(levels["planes"].shape),
        }

    def _take(self, _m, updates):
        return [updates.o], updates.step.write, updates.sums

    def _collect(self, m, at, write, units):
        collector = super()._collect(m, at, write, units)
        m.d.comb += self.planes.eq(collector.planes)
        return collector

    def _offer_logits(self, m, fired, units):
        m.d.comb += self.o_logits.valid.eq(fired.valid & fired.logits)
        m.d.comb += Cat(self.o_logits.payload).eq(Cat(unit.next_v for unit in units))
