"""Takes steps with their sums, and sends the groups of each update into the neuron units."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.neurons.neuron_unit import Positions
from lbq_hw.core.payload import LayerInfo, StepInfo

__all__ = ["Group", "Updates"]


class Group(data.StructLayout):
    """A group of channels in flight in the units, in one update.

    Members
    -------
    valid : bit
    group : unsigned
        The group's number in the tile.
    param : unsigned
        The group's word of the parameter memory.
    time : unsigned
        Timestep.
    restart : bit
        The first update of the step.
    fresh : bit
        The membranes start from 0.
    last : bit
        The last group of the update.
    pool_first : bit
        The first position of a max-pool window.
    emit, logits : bit
        The levels are sent on; the membranes are sent as logits.
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

    Timing. A step taken in cycle c has its first group in cycle c + 1, unless it must wait for the
    previous update. An update begins `groups` cycles after the previous one (the groups of a tile),
    but at least ``positions.loop`` cycles if it continues a membrane, and at least ``layer.planes``
    cycles if its levels are sent on. The next step is taken with the last group of the last update,
    or a cycle later if there is only one group.

    Parameters
    ----------
    lanes, units : int
        Channels of a tile, and of a group.
    acc_bits : int
        Signed width of a sum.
    timesteps : int
        Largest number of timesteps.
    param_bits : int
        Address bits of the parameter memory.
    layer : `LayerInfo`
    step : `StepInfo`
    positions : `Positions`
        The pipeline of the units.

    Members
    -------
    i_sum, room, i_step, layer : as in `NeuronArray`
    o : `Group`
    sums : ``units`` signed sums
        The sums of the group in ``o``, if it is valid.
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
            | self._copied(lanes)
        )

    def _copied(self, _lanes):
        """Members that are copies of other members."""
        return {}

    def elaborate(self, platform):
        m = Module()
        step, group, layer = self.step, self.o, self.layer
        sums = Signal(self.i_sum.payload.shape(), reset_less=True)
        left = Signal(range(self._timesteps))
        first_update = Signal()
        free = Signal(init=1)
        fresh, neurons, readout = self._kind(step.first_t & first_update)
        last_use = Signal()  # the next cycle is the last one that needs the sums
        m.d.comb += last_use.eq(self._send(m, sums, left, first_update))
        m.d.comb += [
            group.param.eq(Cat(group.group, step.group[len(group.group) :])),
            group.last.eq(group.group == self._groups - 1),
            group.restart.eq(first_update),
            group.fresh.eq(fresh),
            group.pool_first.eq(step.pool_first),
            group.emit.eq(step.pool_last & neurons),
            group.logits.eq(readout & step.last_t & (left == 0)),
            Cat(self.sums).eq(sums.as_value()),
            self.room.eq(~self.i_sum.valid & (free | last_use)),
            self.i_step.ready.eq(self.i_sum.valid),
        ]
        m.d.sync += free.eq(self.room)
        with m.If(group.valid):
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
            with m.If(self.i_step.payload.first_t):
                m.d.sync += group.time.eq(0)
        must(m, platform, ~self.i_sum.valid | self.i_step.valid, "sums arrive without their step")
        must(m, platform, ~self.i_sum.valid | free, "sums arrive without `room`")
        return m

    def _kind(self, first):
        """Whether membranes start from 0, whether levels are sent, and whether logits are."""
        return first, ~self.layer.readout, self.layer.readout

    def _send(self, m, sums, left, _first_update):
        """Send groups and rotate the sums. Returns `last_use` of `elaborate`."""
        group, too_early = self.o, Signal()
        m.d.comb += group.valid.eq(self.busy & ~too_early)
        self._wait(m, too_early)
        with m.If(group.valid):
            # Rotate the next group to the front. After the last group, all are back in place.
            m.d.sync += sums.as_value().eq(sums.as_value().rotate_right(len(Cat(self.sums))))
        with m.If(self.i_sum.valid):
            m.d.sync += sums.eq(self.i_sum.payload)
        return group.valid & (group.group == max(0, self._groups - 2)) & (left == 0)

    @property
    def _loop(self) -> int:
        """Cycles from an update to one that continues its membranes."""
        return self._positions.loop if self._timesteps > 1 else 1

    def _wait(self, m, too_early):
        """Drive `too_early`: an update would begin too soon after the previous one."""
        group, loop = self.o, self._loop
        longest = max(loop, self._positions.planes)
        if self._groups >= longest:
            return
        age = Signal(range(longest + 1), init=longest)  # cycles since the previous update began
        early = (~group.fresh & (age < loop)) | (group.emit & (age < self.layer.planes))
        m.d.comb += too_early.eq((group.group == 0) & early)
        with m.If(group.valid & (group.group == 0)):
            m.d.sync += age.eq(1)
        with m.Elif(age != longest):
            m.d.sync += age.eq(age + 1)
