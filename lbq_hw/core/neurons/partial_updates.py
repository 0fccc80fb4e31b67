"""Takes steps with their sums in a core with partial sums, whose lanes are spread over the chip."""

from amaranth import Cat, Mux, Signal
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import checked, must
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.fabric.sharing import SPREAD_LANES, lane_groups
from lbq_hw.core.neurons.updates import Updates

__all__ = ["PartialUpdates"]


class PartialUpdates(Updates):
    """As `Updates`, where each group of lanes has its own copy of the control registers.

    A layer that stores partial sums makes no levels and no logits and continues no membranes, so
    its steps never wait for these.

    Timing. As in `Updates`. ``i_step`` must be valid from the cycle before its sums on.

    Members
    -------
    i_valids, rooms : as in `PartialNeurons`
    """

    def elaborate(self, platform):
        m = super().elaborate(platform)
        if checked(platform):
            had_step = Signal()
            m.d.sync += had_step.eq(self.i_step.valid)
            must(m, platform, ~self.i_sum.valid | had_step, "a step is too late for its sums")
        return m

    def _copied(self, lanes):
        groups = lane_groups(lanes, SPREAD_LANES)
        return {"i_valids": In(2 * groups), "rooms": Out(groups)}

    def _kind(self, first):
        layer = self.layer
        stays = ~layer.partial_out
        return first | layer.partial_out, ~layer.readout & stays, layer.readout & stays

    def _send(self, m, sums, left, first_update):
        leaves = self._make_rooms(m, left)
        self._turn(m, sums, *self._foresee(m, first_update, left))
        return leaves

    def _foresee(self, m, first_update, left):
        """Compute ``o.valid`` a cycle ahead, in a register. Returns whether another group follows
        if no step is taken, and whether a step that is taken has to wait.
        """
        group, layer, step, given = self.o, self.layer, self.step, self.i_step.payload
        accept, loop = self.i_sum.valid, self._loop
        longest = max(loop, self._positions.planes)
        age = Signal(range(longest + 1), init=longest)  # cycles since the previous update began
        older, too_early, waits, follows = Signal.like(age), Signal(), Signal(), Signal()
        neurons = ~layer.readout & ~layer.partial_out

        def later(age):
            return Mux(age == longest, age, age + 1)

        def early(fresh, emit, age):
            continues = ~fresh & ~layer.partial_out & (age < loop)
            return continues | (emit & neurons & (age < layer.planes))

        aged = Mux(group.valid, 1, later(age)) if self._groups == 1 else later(age)
        begins = Mux(group.valid, group.last, group.group == 0)
        fresh = step.first_t & first_update & ~group.valid
        ends = group.valid & group.last & (left == 0)
        m.d.comb += [
            older.eq(Mux(group.valid & (group.group == 0), 1, later(age))),
            waits.eq(begins & early(fresh, step.pool_last, aged)),
            follows.eq(self.busy & ~waits),
        ]
        m.d.sync += [
            age.eq(older),
            # The step is known a cycle before it is taken.
            too_early.eq(early(given.first_t, given.pool_last, later(older))),
            group.valid.eq(Mux(accept, ~too_early, follows & ~ends)),
        ]
        return follows, too_early

    def _turn(self, m, sums, follows, too_early):
        """Take the sums, then rotate them from group to group, and once more after the last group.
        Each group of lanes has its own copies of the enable and of the select.
        """
        lanes, units = len(sums), len(self.sums)
        parts = [range(lanes)[i : i + SPREAD_LANES] for i in range(0, lanes, SPREAD_LANES)]
        for i, part in enumerate(parts):
            accept, lets = self.i_valids[2 * i], self.i_valids[2 * i + 1]
            turns = Signal(name=f"turns_{i}")
            m.d.sync += turns.eq(Mux(lets, ~too_early, follows))
            with m.If(lets | turns):
                m.d.sync += Cat(sums[lane] for lane in part).eq(
                    Mux(
                        accept,
                        Cat(self.i_sum.payload[lane] for lane in part),
                        Cat(sums[(lane + units) % lanes] for lane in part),
                    )
                )

    def _make_rooms(self, m, left):
        """Make the copies of ``room``. Returns `last_use` of `Updates`; with more than two groups,
        it is a register.
        """
        group, count = self.o, len(self.rooms)
        leaving = group.valid & (left == 0) & (group.group == max(0, self._groups - 3))
        leaves, *others = [leaving] * (count + 1)
        if self._groups > 2:
            leaves, *others = copies(m, leaving, count + 1, name="leaves")
        for i, (room, other) in enumerate(zip(self.rooms, others, strict=True)):
            free = Signal(init=1, name=f"free_{i}")
            m.d.comb += room.eq(~self.i_valids[2 * i + 1] & (free | other))
            m.d.sync += free.eq(room)
        return leaves
