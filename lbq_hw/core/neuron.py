"""Neuron units: sums of a tile into burst levels, or into logits."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.payload import LevelPlanes, StepInfo, check_power, check_size
from lbq_hw.core.unit import NeuronUnit, Positions

__all__ = ["NeuronArray"]


class NeuronArray(wiring.Component):
    """Updates the membranes of a tile, `units` channels a cycle, and collects their levels.

    A step, taken together with its sums, makes ``updates`` passes over the tile's groups of `units`
    channels; each is one timestep::

        U  = floor(m * V / 2**B) + bias + (acc << F)        V = 0 at the first timestep
        S  = min(number of k >= 1 with U >= k * theta, N)
        V' = U - (S > 0 ? reset : 0)

    The level leaves as its maximum over the positions of the pool window, at the last position. A
    readout computes ``V' = V + bias + (acc << F)``, which leaves as logits at the last timestep.
    Membranes wrap around at ``2**membrane_bits``: the compiler proves that U and V' fit, and stores
    ``1 <= theta < 2**(membrane_bits - 1)``. Channels that pad a tile must get a theta that they
    never reach, since their levels are written too.

    Timing. A step taken in cycle c has its first planes in cycle ``c + latency``, and a group of
    logits in every cycle from ``c + logits_latency`` on. A pass begins `groups` cycles after the
    one before, with two exceptions: `loop` cycles, if there are fewer groups than that and it
    continues a membrane, and ``write.planes`` cycles, if there are fewer groups than that and its
    levels leave. So planes follow each other no faster than they can be written. The next step is
    taken with the last group of the last pass, but a cycle later if there is only one group:
    ``room``, in the cycle before, tells that. It depends on ``i_sum.valid`` of the same cycle.

    Parameters
    ----------
    lanes : int
        Channels P of a tile, a power of two.
    units : int
        Neuron units L, a power of two, at most ``lanes``.
    acc_bits, membrane_bits : int
        Signed widths of a sum, and of all membrane values.
    timesteps : int
        Most timesteps.
    tiles : int
        Tiles of parameters.
    step : `StepInfo`
        Layout of a step; planes, decay bits and largest shift follow from it.
    pools : bool
        Whether there are max-pools: else ``pool_first`` and ``pool_last`` are always set.
    init : iterable of words
        Parameters at power-on, each word a list as ``params`` takes it; words left out are 0.

    Members
    -------
    i_sum : stream of ``lanes`` signed sums, always ready
        Valid only in cycles after one with ``room``.
    room : bit
        Sums can be taken in the next cycle.
    i_step : stream of `StepInfo`
        Taken with its sums: it must be valid when they are. ``group`` is a multiple of `groups`.
        What describes the layer holds while `busy`, even where the stream is not valid.
    params : write port of ``3 * units`` values, one enable a value
        Word ``tile * groups + group``: bias, theta, reset of the first unit, then of the next. Not
        written while a step of its tile is under way.
    o_planes : stream of `LevelPlanes`, always ready
    o_logits : stream of ``units`` signed membranes, always ready
        In the order of the channels and of the steps.
    busy : bit
        A step is on its way.
    """

    def __init__(
        self,
        *,
        lanes: int,
        units: int,
        acc_bits: int,
        membrane_bits: int,
        timesteps: int,
        tiles: int,
        step: StepInfo,
        pools: bool = True,
        init=(),
    ):
        check_power("lanes", lanes)
        check_power("units", units)
        check_size("acc_bits", acc_bits)
        check_size("membrane_bits", membrane_bits, least=2)
        check_size("timesteps", timesteps)
        check_size("tiles", tiles)
        if units > lanes:
            raise ValueError(f"units must be at most the {lanes} lanes, not {units!r}")
        if not isinstance(step, StepInfo):
            raise TypeError(f"step must be a StepInfo, not {step!r}")
        planes = step["capacity"].width
        if membrane_bits < planes:
            raise ValueError(f"membrane_bits must be at least planes, not {membrane_bits!r}")
        self._groups = lanes // units
        self._timesteps = timesteps
        self._tiles = tiles
        self._pools = pools
        self._init = [list(word) for word in init]
        self._unit_sizes = {
            "acc_bits": acc_bits,
            "membrane_bits": membrane_bits,
            "planes": planes,
            "decay_bits": step["decay"].width - 1,
            "shift_bits": step["shift"].width,
        }
        self._positions = Positions(planes=planes, decay_bits=step["decay"].width - 1)
        membrane = signed(membrane_bits)
        levels = LevelPlanes(lanes=lanes, planes=planes, write=step["write"].shape)
        params = memory.WritePort.Signature(
            addr_width=ceil_log2(tiles * self._groups),
            shape=data.ArrayLayout(membrane, 3 * units),
            granularity=1,
        )
        sums = data.ArrayLayout(signed(acc_bits), lanes)
        logits = data.ArrayLayout(membrane, units)
        super().__init__(
            {
                "i_sum": In(stream.Signature(sums, always_ready=True)),
                "room": Out(1),
                "i_step": In(stream.Signature(step)),
                "params": Out(params),
                "o_planes": Out(stream.Signature(levels, always_ready=True)),
                "o_logits": Out(stream.Signature(logits, always_ready=True)),
                "busy": Out(1),
            }
        )

    @property
    def groups(self) -> int:
        """Groups of a tile: cycles of a pass."""
        return self._groups

    @property
    def loop(self) -> int:
        """Cycles from a group's membrane read to the next one that sees what it became."""
        return self._positions.fire - self._positions.v + 2

    @property
    def latency(self) -> int:
        """Cycles from a step to its first planes."""
        return self._groups + self._positions.end + 1

    @property
    def logits_latency(self) -> int:
        """Cycles from a readout's last step, of one update, to its first logits."""
        return self._positions.fire + 2

    def elaborate(self, _platform):
        m = Module()
        positions = self._positions
        units = [NeuronUnit(**self._unit_sizes) for _ in self.o_logits.payload]
        step = Signal(self.i_step.payload.shape())
        start, sums = self._issue(m, step)

        # What a group needs to know on its way, by position.
        at = [start]
        for position in range(1, positions.end + 1):
            at.append(Signal.like(start, name=f"at_{position}"))
            m.d.sync += at[position].eq(at[position - 1])

        self._connect_units(m, at, sums, units)
        self._collect(m, step, at, units)
        logits, logits_valid = Signal.like(self.o_logits.payload), Signal()
        fired = at[positions.fire]
        m.d.sync += [
            logits_valid.eq(fired.valid & fired.logits),
            logits.as_value().eq(Cat(unit.next_v for unit in units)),
        ]
        m.d.comb += [self.o_logits.valid.eq(logits_valid), self.o_logits.payload.eq(logits)]
        return m

    def _issue(self, m, step):
        """Take steps and send their groups, one a cycle; the group, and sums from its own on."""
        turn = len(self.o_logits.payload) * len(self.i_sum.payload[0])
        layer = self.i_step.payload
        sums = Signal(self.i_sum.payload.shape(), reset_less=True)
        active = Signal()
        group = Signal(range(self._groups))
        left = Signal(range(self._timesteps))
        first_update = Signal()
        time = Signal(range(self._timesteps))
        start = Signal(_group_layout(self._groups, self._timesteps, len(self.params.addr)))
        free = Signal(init=1)
        leaves = Signal()  # the sums are not needed after the next cycle
        last_group = Signal()
        fresh, emits, young = Signal(), Signal(), Signal()

        m.d.comb += [
            fresh.eq(step.first_t & first_update),
            emits.eq(step.pool_last & ~layer.readout),
            start.valid.eq(active & ~young),
            start.group.eq(group),
            start.param.eq(Cat(group, step.group[len(group) :])),
            start.time.eq(time),
            start.last.eq(last_group),
            start.restart.eq(first_update),
            start.fresh.eq(fresh),
            start.pool_first.eq(step.pool_first),
            start.emit.eq(emits),
            start.logits.eq(layer.readout & step.last_t & (left == 0)),
            last_group.eq(group == self._groups - 1),
            leaves.eq(start.valid & (group == max(0, self._groups - 2)) & (left == 0)),
            self.room.eq(~self.i_sum.valid & (free | leaves)),
            self.i_step.ready.eq(self.i_sum.valid),
            self.busy.eq(active),
        ]
        m.d.sync += free.eq(self.room)
        loop = self.loop if self._timesteps > 1 else 1
        longest = max(loop, self._positions.planes)
        if self._groups < longest:
            age = Signal(range(longest + 1), init=longest)  # of the pass before
            early = (~fresh & (age < loop)) | (emits & (age < layer.write.planes))
            m.d.comb += young.eq((group == 0) & early)
            with m.If(start.valid & (group == 0)):
                m.d.sync += age.eq(1)
            with m.Elif(age != longest):
                m.d.sync += age.eq(age + 1)

        with m.If(start.valid):
            # The next group comes to the front; after the last one all are where they were.
            m.d.sync += sums.as_value().eq(sums.as_value().rotate_right(turn))
            m.d.sync += group.eq(Mux(last_group, 0, group + 1))
            with m.If(last_group):
                m.d.sync += [left.eq(left - 1), time.eq(time + 1), first_update.eq(0)]
                with m.If(left == 0):
                    m.d.sync += active.eq(0)
        with m.If(self.i_sum.valid):
            m.d.sync += [
                active.eq(1),
                step.eq(self.i_step.payload),
                sums.eq(self.i_sum.payload),
                left.eq(self.i_step.payload.updates - 1),
                first_update.eq(1),
            ]
            with m.If(self.i_step.payload.first_t):
                m.d.sync += time.eq(0)
        return start, sums

    def _connect_units(self, m, at, sums, units):
        """Memories around the units, and what reaches them at which position."""
        layer = self.i_step.payload
        positions = self._positions
        count = len(units)
        membrane = self.o_logits.payload[0].shape()
        depth = self._tiles * self._groups
        values = data.ArrayLayout(membrane, count)
        pairs = data.ArrayLayout(membrane, 2 * count)
        levels = data.ArrayLayout(positions.planes, count)
        moments = self._groups << ceil_log2(self._timesteps)

        # A group never reads what is being written, unless it has no use for it.
        unchecked = {"no_rw_check": 1}
        m.submodules.bias = bias = memory.Memory(
            shape=values, depth=depth, init=[word[0::3] for word in self._init], attrs=unchecked
        )
        m.submodules.theta = theta = memory.Memory(
            shape=pairs,
            depth=depth,
            init=[[x for i, x in enumerate(word) if i % 3] for word in self._init],
            attrs=unchecked,
        )
        bias_write, theta_write = bias.write_port(granularity=1), theta.write_port(granularity=1)
        bias_read, theta_read = bias.read_port(), theta.read_port()

        fired, ended = at[positions.fire], at[-1]
        m.d.comb += [
            bias_write.addr.eq(self.params.addr),
            bias_write.en.eq(Cat(self.params.en[0::3])),
            Cat(bias_write.data).eq(Cat(self.params.data[3 * i] for i in range(count))),
            theta_write.addr.eq(self.params.addr),
            bias_read.addr.eq(at[0].param),
            theta_read.addr.eq(at[positions.theta - 1].param),
        ]
        decay = Signal(positions.decay_bits + 1)
        for bit, factor in enumerate(decay):
            kept = Mux(layer.readout, int(bit == len(decay) - 1), layer.decay[bit])
            m.d.comb += factor.eq(kept & ~at[positions.decay(bit)].fresh)

        for i, unit in enumerate(units):
            m.submodules[f"unit_{i}"] = unit
            acc = Signal(unit.acc.shape(), name=f"acc_{i}", reset_less=True)
            m.d.sync += acc.eq(sums[i])
            m.d.comb += [
                theta_write.en[2 * i : 2 * i + 2].eq(self.params.en[3 * i + 1 : 3 * i + 3]),
                theta_write.data[2 * i].eq(self.params.data[3 * i + 1]),
                theta_write.data[2 * i + 1].eq(self.params.data[3 * i + 2]),
                unit.acc.eq(acc),
                unit.bias.eq(bias_read.data[i]),
                unit.theta.eq(theta_read.data[2 * i]),
                unit.reset.eq(theta_read.data[2 * i + 1]),
                unit.decay.eq(decay),
                unit.shift.eq(layer.shift),
                unit.capacity.eq(layer.capacity),
                unit.fire.eq(~layer.readout),
            ]
        if self._pools:
            m.submodules.pool = pool = memory.Memory(
                shape=levels, depth=moments, init=[], attrs=unchecked if self._groups > 1 else {}
            )
            pool_write = pool.write_port()
            # With one group and one timestep, a position of the window follows the one before at
            # once.
            follow = [pool_write] if self._groups == 1 else []
            pool_read = pool.read_port(transparent_for=follow)
            m.d.comb += [
                pool_read.addr.eq(Cat(at[-2].group, at[-2].time)),
                pool_write.addr.eq(Cat(ended.group, ended.time)),
                pool_write.en.eq(ended.valid),
            ]
            for i, unit in enumerate(units):
                m.d.comb += [
                    unit.pooled.eq(Mux(ended.pool_first, 0, pool_read.data[i])),
                    pool_write.data[i].eq(unit.level),
                ]
        # With one timestep every membrane starts anew.
        if self._timesteps > 1:
            m.submodules.membrane = state = memory.Memory(
                shape=values, depth=self._groups, init=[], attrs=unchecked
            )
            state_write, state_read = state.write_port(), state.read_port()
            m.d.comb += [
                state_read.addr.eq(at[positions.v - 1].group),
                state_write.addr.eq(fired.group),
                state_write.en.eq(fired.valid),
            ]
            for i, unit in enumerate(units):
                m.d.comb += [
                    unit.v.eq(state_read.data[i]),
                    state_write.data[i].eq(unit.next_v),
                ]

    def _collect(self, m, step, at, units):
        """Shift the levels of a pass into planes, and offer them."""
        out = self.o_planes
        write, layer = out.payload.write, self.i_step.payload.write
        ended = at[-1]
        collect = Signal()
        m.d.comb += collect.eq(ended.valid & ended.emit)
        with m.If(Cat(group.valid for group in at[1:]).any() | out.valid):
            m.d.comb += self.busy.eq(1)
        # Passes are at least `groups` cycles apart: so what their last group needs to know moves
        # only that often. The rest of `write` is the layer's.
        place = Cat(step.write.addr, step.write.place, step.write.first)
        for index in range(0, len(at) - 1, self._groups):
            held = Signal(len(place), name=f"place_{index}", reset_less=True)
            with m.If(at[index].valid & at[index].last):
                m.d.sync += held.eq(place)
            place = held

        m.d.sync += out.valid.eq(collect & ended.last)
        with m.If(collect):
            for k, plane in enumerate(out.payload.planes):
                bits = Cat(unit.level[k] for unit in units)
                m.d.sync += plane.eq(Cat(plane, bits)[len(bits) :])
            with m.If(ended.last):
                m.d.sync += [
                    out.payload.restart.eq(ended.restart),
                    Cat(write.addr, write.place, write.first).eq(place),
                ]
        m.d.comb += [
            write.stride.eq(layer.stride),
            write.planes.eq(layer.planes),
            write.granules.eq(layer.granules),
        ]


def _group_layout(groups: int, timesteps: int, param_bits: int) -> data.StructLayout:
    """A group on its way: what of a tile it is, how it begins, and what becomes of it."""
    return data.StructLayout(
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
