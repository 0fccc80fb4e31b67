"""The host's view of a core that fills a good part of a chip."""

from amaranth import Array, Signal
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.host.port import HostPort

__all__ = ["SpreadHostPort"]

_UNITS_A_REGISTER = 8  # neuron units whose logits are multiplexed into one register


class SpreadHostPort(HostPort):
    """As `HostPort`, with registers on the way to memories that are far away.

    Timing. A read is answered ``plane_read + 2`` cycles after it is taken (``plane_read`` is in
    `Timing`), and the next request is taken after that.
    """

    def _free(self, in_flight):
        return ~in_flight.any() & ~self.port.r_valid

    def _asks(self, m, w):
        return delayed(m, w.request, self._timing.host_ask, name="asks")

    def _logit(self, m, unit):
        """The logit of a unit, a cycle later: a multiplexer with one register per few units."""
        logits, low, chosen = self.logits.data, ceil_log2(_UNITS_A_REGISTER), []
        for first in range(0, len(logits), _UNITS_A_REGISTER):
            some = [logits[i] for i in range(first, min(first + _UNITS_A_REGISTER, len(logits)))]
            chosen.append(Signal.like(logits[0], name=f"logit_{first}", reset_less=True))
            m.d.sync += chosen[-1].eq(Array(some)[unit[:low]])
        return Array(chosen)[unit[low:]]
