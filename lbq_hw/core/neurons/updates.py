"""Takes steps with their sums, and sends the groups of each update into the neuron units."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.memory.spread import FAR_LANES_A_COPY, far_copies
from lbq_hw.core.neurons.neuron_unit import Positions
from lbq_hw.core.payload import LayerInfo, StepInfo

__all__ = ["Group", "Updates"]


class Group(data.StructLayout):
    """A group of channels on its way through the units, in one update.

    Members
    -------
    valid : bit
    group : unsigned
        Its number in the tile.
    param : unsigned
        Its word of the parameter memory.
    time : unsigned
        Timestep.
    restart : bit
        The first update of the step.
    fresh : bit
        The membranes start from 0.
    last : bit
        The last of the update.
    pool_first : bit
        The first position of a max-pool window.
    emit, logits : bit
        The levels leave; the membranes do, as logits.
    """

    def __init__(self, *, groups: int, timesteps: int, param_bits: int):
        super().__init__(
            {
                "valid": 1,
                "group": ceil_log2(groups),
                "param": param_bits,
                "time": ceil_log2(timesteps),
                "restart": 1,
                "fresh": 1,
                "last": 1,
                "pool_first": 1,
                "emit": 1,
                "logits": 1,
            }
        )


class Updates(wiring.Component):
    """Turns a step into its ``updates``, and each into the groups of a tile, one per cycle.

    A layer that leaves its sums has neither levels nor logits, and its membranes start from 0 in
    each step: so nothing waits for them.

    Timing. A step taken in cycle c has its first group in cycle c + 1, unless that must wait for
    the update before. An update begins as many cycles after the one before as a tile has groups;
    but at least ``positions.loop`` if it continues a membrane, and ``layer.planes`` if its levels
    leave. The next step is taken with the last group of the last update, but a cycle later if there
    is only one group.

    Parameters
    ----------
    lanes, units : int
        Channels of a tile, and of a group.
    acc_bits : int
        Signed width of a sum.
    timesteps : int
        Most timesteps.
    param_bits : int
        Address bits of the parameter memory.
    layer : `LayerInfo`
    step : `StepInfo`
    positions : `Positions`
        Of the units.

    Members
    -------
    i_sum, i_valids, room, rooms, i_step, layer : as in `NeuronArray`
    o : `Group`
    sums : ``units`` signed sums
        Those of the group that ``o`` is, where it is valid.
    step : `StepInfo`
        The step whose groups are sent.
    busy : bit
        There are groups to send.
    """

    def __init__(
        self,
        *,
        lanes: int,
        units: int,
        acc_bits: int,
        timesteps: int,
        param_bits: int,
        layer: LayerInfo,
        step: StepInfo,
        positions: Positions,
    ):
        self._groups = lanes // units
        self._timesteps = timesteps
        self._positions = positions
        total = signed(acc_bits)
        group = Group(groups=self._groups, timesteps=timesteps, param_bits=param_bits)
        super().__init__(
            {
                "i_sum": In(stream.Signature(data.ArrayLayout(total, lanes), always_ready=True)),
                "room": Out(1),
                "i_step": In(stream.Signature(step)),
                "layer": In(layer),
                "o": Out(group),
                "sums": Out(data.ArrayLayout(total, units)),
                "step": Out(step),
                "busy": Out(1),
            }
            | (
                {"i_valids": In(2 * far_copies(lanes)), "rooms": Out(far_copies(lanes))}
                if layer.partials
                else {}
            )
        )

    def elaborate(self, _platform):
        m = Module()
        step, group, layer = self.step, self.o, self.layer
        partials = layer.shape().partials
        sums = Signal(self.i_sum.payload.shape(), reset_less=True)
        left = Signal(range(self._timesteps))
        first_update = Signal()
        free = Signal(init=1)
        leaves = Signal()  # the sums are not needed after the next cycle
        young = Signal()
        fresh, neurons, readout = step.first_t & first_update, ~layer.readout, layer.readout
        if partials:
            fresh |= layer.partial_out
            neurons &= ~layer.partial_out
            readout &= ~layer.partial_out
            leaving = self._make_rooms(m, left)
        else:
            leaving = group.valid & (group.group == max(0, self._groups - 2)) & (left == 0)
            m.d.comb += group.valid.eq(self.busy & ~young)
        m.d.comb += [
            group.param.eq(Cat(group.group, step.group[len(group.group) :])),
            group.last.eq(group.group == self._groups - 1),
            group.restart.eq(first_update),
            group.fresh.eq(fresh),
            group.pool_first.eq(step.pool_first),
            group.emit.eq(step.pool_last & neurons),
            group.logits.eq(readout & step.last_t & (left == 0)),
            leaves.eq(leaving),
            Cat(self.sums).eq(sums.as_value()),
            self.room.eq(~self.i_sum.valid & (free | leaves)),
            self.i_step.ready.eq(self.i_sum.valid),
        ]
        m.d.sync += free.eq(self.room)
        if partials:
            self._turn_parts(m, sums, *self._foresee(m, first_update, left))
        else:
            self._wait(m, young)
        with m.If(group.valid):
            # The next group comes to the front; after the last one all are where they were.
            if not partials:
                m.d.sync += sums.as_value().eq(sums.as_value().rotate_right(len(Cat(self.sums))))
            m.d.sync += group.group.eq(Mux(group.last, 0, group.group + 1))
            with m.If(group.last):
                m.d.sync += [left.eq(left - 1), group.time.eq(group.time + 1), first_update.eq(0)]
                with m.If(left == 0):
                    m.d.sync += self.busy.eq(0)
        with m.If(self.i_sum.valid):
            m.d.sync += [
                self.busy.eq(1),
                step.eq(self.i_step.payload),
                left.eq(layer.updates - 1),
                first_update.eq(1),
            ]
            if not partials:
                m.d.sync += sums.eq(self.i_sum.payload)
            with m.If(self.i_step.payload.first_t):
                m.d.sync += group.time.eq(0)
        return m

    def _foresee(self, m, first_update, left):
        """A register says that a group is sent. Returns whether one is sent after it, if no step is
        taken; and whether a step that is taken has to wait.
        """
        group, layer, step, given = self.o, self.layer, self.step, self.i_step.payload
        takes, loop = self.i_sum.valid, self._loop
        longest = max(loop, self._positions.planes)
        age = Signal(range(longest + 1), init=longest)  # of the update before
        older, young, waits, follows = Signal.like(age), Signal(), Signal(), Signal()
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
            young.eq(early(given.first_t, given.pool_last, later(older))),
            group.valid.eq(Mux(takes, ~young, follows & ~ends)),
        ]
        return follows, young

    def _turn_parts(self, m, sums, follows, young):
        """The sums are taken, and turn from group to group, once more behind the last. Some lanes
        at a time have registers of their own that let them, and others that choose.
        """
        lanes, units = len(sums), len(self.sums)
        parts = [range(lanes)[i : i + FAR_LANES_A_COPY] for i in range(0, lanes, FAR_LANES_A_COPY)]
        for i, part in enumerate(parts):
            takes, lets = self.i_valids[2 * i], self.i_valids[2 * i + 1]
            turns = Signal(name=f"turns_{i}")
            m.d.sync += turns.eq(Mux(lets, ~young, follows))
            with m.If(lets | turns):
                m.d.sync += Cat(sums[lane] for lane in part).eq(
                    Mux(
                        takes,
                        Cat(self.i_sum.payload[lane] for lane in part),
                        Cat(sums[(lane + units) % lanes] for lane in part),
                    )
                )

    def _make_rooms(self, m, left):
        """Copies of ``room``. Returns whether the sums leave; if there are groups enough, registers
        say so.
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

    @property
    def _loop(self) -> int:
        """Cycles from an update to one that continues its membranes."""
        return self._positions.loop if self._timesteps > 1 else 1

    def _wait(self, m, young):
        """`young`: an update would begin too soon after the one before."""
        group, loop = self.o, self._loop
        longest = max(loop, self._positions.planes)
        if self._groups >= longest:
            return
        age = Signal(range(longest + 1), init=longest)  # of the update before
        early = (~group.fresh & (age < loop)) | (group.emit & (age < self.layer.planes))
        m.d.comb += young.eq((group.group == 0) & early)
        with m.If(group.valid & (group.group == 0)):
            m.d.sync += age.eq(1)
        with m.Elif(age != longest):
            m.d.sync += age.eq(age + 1)
