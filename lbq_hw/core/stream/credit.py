"""Credits: a sender never sends more items than the receiver has room for."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.sizes import check_size

__all__ = ["Credit"]


class Credit(wiring.Component):
    """Counts the items in flight, so that a pipeline without stalls never overflows its receiver.

    Timing. Room that is given back in cycle c can be used from cycle c + 1 on.

    Parameters
    ----------
    room : int
        Items that the receiver has room for.
    returns : int
        Number of sources that give room back.

    Members
    -------
    sent : in
        An item is sent; only while ``available``.
    returned : in, `returns` bits
        For each set bit, room for one item is given back.
    available : out
        There is room for one more.
    """

    def __init__(self, *, room: int, returns: int = 1):
        check_size("room", room)
        check_size("returns", returns)
        self._room = room
        super().__init__({"sent": In(1), "returned": In(returns), "available": Out(1)})

    def elaborate(self, platform):
        m = Module()
        owed = Signal(range(self._room + 1))
        left = owed + self.sent
        for back in self.returned:
            left = left - back
        m.d.sync += owed.eq(left)
        m.d.comb += self.available.eq(owed != self._room)
        must(m, platform, self.available | ~self.sent, "an item is sent without room for it")
        must(m, platform, left >= 0, "more room is given back than was taken")
        return m
