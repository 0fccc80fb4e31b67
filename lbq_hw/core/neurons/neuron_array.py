"""The neuron units: turn the sums of a tile into burst levels, or into logits."""

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import checked, must
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.neurons.level_collector import LevelCollector
from lbq_hw.core.neurons.neuron_unit import NeuronUnit, Positions
from lbq_hw.core.neurons.parameters import Parameters
from lbq_hw.core.neurons.updates import Updates
from lbq_hw.core.payload import LayerInfo, LevelPlanes, StepInfo
from lbq_hw.core.sizes import check_power, check_size
from lbq_hw.network.neuron import SUBTRACT, Rule

__all__ = ["NeuronArray"]


class NeuronArray(wiring.Component):
    """Updates the membranes of a tile, `units` channels per cycle, and collects their levels.

    A step is taken together with its sums, and has one or more ``updates``, one per timestep. An
    update sends all groups of `units` channels of the tile through the units, which compute::

        U  = floor(m * V / 2**B) + bias + (acc << F)        V = 0 at the first timestep
        S  = min(number of k >= 1 with U >= k * theta, N)
        V' = U, changed by the rules of the neurons         U - (S > 0 ? reset : 0), and others

    The maximum of a level over the pool window is sent on at the window's last position. A readout
    computes ``V' = V + bias + (acc << F)``, and sends V' as logits at the last timestep. Membranes
    wrap around at ``2**membrane_bits``: the compiler proves that U and V' fit, and stores
    ``1 <= theta < 2**(membrane_bits - 1)``. Channels that pad a tile must get a theta that they
    never reach, because their levels are written too.

    Timing. A step taken in cycle c has its first planes in cycle ``c + latency``, and a group of
    logits in every cycle from ``c + logits_latency`` on. An update begins `groups` cycles after the
    previous one, but at least `loop` cycles if it continues a membrane, and at least
    ``layer.planes`` cycles if its levels are sent, so that planes come no faster than they can be
    written. The next step is taken with the last group of the last update, or one cycle later if
    there is only one group. ``room`` is 1 in the cycle before that; it depends combinationally on
    ``i_sum.valid``.

    Other cores have `CompactNeurons` or `PartialNeurons`; `neuron_array` chooses.

    Parameters
    ----------
    lanes : int
        Channels P of a tile, a power of two.
    units : int
        Neuron units L, a power of two, at most ``lanes``.
    acc_bits, membrane_bits : int
        Signed widths of a sum, and of all membrane values.
    timesteps : int
        Largest number of timesteps.
    tiles : int
        Number of tiles that have parameters.
    layer : `LayerInfo`
        Layout of the port ``layer``; planes, decay bits and largest shift follow from it.
    step : `StepInfo`
        Layout of a step.
    pools : bool
        Whether there are max-pools; otherwise ``pool_first`` and ``pool_last`` are always set.
    rules : sequence of `Rule`
        The rules that neurons may follow, see `lbq_hw.network.neuron`.
    resets : bool
        Whether each channel has a reset value; otherwise theta is subtracted.
    init : iterable of words
        Parameters after configuration, each word a list as ``params`` takes it; words left out
        are 0.

    Members
    -------
    i_sum : stream of ``lanes`` signed sums, always ready
        Valid only in cycles after one with ``room``.
    room : bit
        Sums can be taken in the next cycle.
    i_step : stream of `StepInfo`
        Taken with its sums: it must be valid when they are. ``group`` is a multiple of `groups`.
    layer : in, `LayerInfo`
        The layer of all steps in flight: stable from the first of them to the last cycle of
        `busy`.
    params : write port of the values of ``units`` channels, one enable per value
        Word ``tile * groups + group``: bias, theta, reset and the parameters of rules for the first
        unit, then for the next. Not written while a step of its tile is in flight.
    o_planes : stream of `LevelPlanes`, always ready
    o_logits : stream of ``units`` signed membranes, always ready
        In the order of steps, then of channels.
    busy : bit
        A step is in flight.
    """

    UPDATES = Updates
    PARAMETERS = Parameters
    COLLECTOR = LevelCollector
    OFFER = 1
    """Output registers behind the levels and behind the logits."""
    ADDED = 0
    """Cycles from a group at the output of `Updates` to its position 0."""

    def __init__(
        self,
        *,
        lanes: int,
        units: int,
        acc_bits: int,
        membrane_bits: int,
        timesteps: int,
        tiles: int,
        layer: LayerInfo,
        step: StepInfo,
        pools: bool = True,
        rules: Sequence[Rule] = (SUBTRACT,),
        resets: bool = True,
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
        if not isinstance(layer, LayerInfo):
            raise TypeError(f"layer must be a LayerInfo, not {layer!r}")
        if not isinstance(step, StepInfo):
            raise TypeError(f"step must be a StepInfo, not {step!r}")
        planes, decay_bits = layer["capacity"].width, layer["decay"].width - 1
        if membrane_bits < planes:
            raise ValueError(f"membrane_bits must be at least planes, not {membrane_bits!r}")
        self._groups = lanes // units
        self._timesteps = timesteps
        self._pools = pools
        self._rules = tuple(rules)
        self._resets = resets
        self._init = [list(word) for word in init]
        self._unit_sizes = {
            "acc_bits": acc_bits,
            "membrane_bits": membrane_bits,
            "planes": planes,
            "decay_bits": decay_bits,
            "shift_bits": layer["shift"].width,
            "rules": self._rules,
        }
        self._positions = self._make_positions(planes=planes, decay_bits=decay_bits)
        self._depth = tiles * self._groups
        membrane = signed(membrane_bits)
        params = memory.WritePort.Signature(
            addr_width=ceil_log2(self._depth),
            shape=data.ArrayLayout(membrane, len(self._values) * units),
            granularity=1,
        )
        sums = data.ArrayLayout(signed(acc_bits), lanes)
        logits = data.ArrayLayout(membrane, units)
        super().__init__(
            {
                "i_sum": In(stream.Signature(sums, always_ready=True)),
                "room": Out(1),
                "i_step": In(stream.Signature(step)),
                "layer": In(layer),
                "params": Out(params),
                "o_logits": Out(stream.Signature(logits, always_ready=True)),
                "busy": Out(1),
            }
            | self._more_members(LevelPlanes(lanes=lanes, planes=planes, write=step["write"].shape))
        )

    def _make_positions(self, **sizes) -> Positions:
        return Positions(**sizes)

    def _make_unit(self) -> NeuronUnit:
        return NeuronUnit(**self._unit_sizes)

    def _more_members(self, levels: LevelPlanes):
        """Members for the output of planes."""
        return {"o_planes": Out(stream.Signature(levels, always_ready=True))}

    @property
    def _values(self):
        """The names of a channel's parameters, in the order in which they are written."""
        return ("bias", "theta", *(rule.name for rule in self._rules if rule.per_channel))

    @property
    def groups(self) -> int:
        """Groups of a tile: cycles of an update."""
        return self._groups

    @property
    def loop(self) -> int:
        """Cycles from the read of a group's membranes to the first read that sees their update."""
        return self._positions.loop

    @property
    def latency(self) -> int:
        """Cycles from a step to its first planes, or to their announcement."""
        return self._groups + self._positions.end + self.OFFER + self.ADDED

    @property
    def logits_latency(self) -> int:
        """Cycles from the last step of a readout, if it has one update, to its first logits."""
        return self._positions.fire + 1 + self.OFFER + self.ADDED

    def elaborate(self, platform):
        m = Module()
        sums, units = self.i_sum.payload, [self._make_unit() for _ in self.o_logits.payload]
        m.submodules.updates = updates = self.UPDATES(
            lanes=len(sums),
            units=len(units),
            acc_bits=len(sums[0]),
            timesteps=self._timesteps,
            param_bits=len(self.params.addr),
            layer=self.layer.shape(),
            step=self.i_step.payload.shape(),
            positions=self._positions,
        )
        connect(m, flipped(self.i_sum), updates.i_sum)
        connect(m, flipped(self.i_step), updates.i_step)

        sent, write, totals = self._take(m, updates)
        # The control values of a group at each position of the pipeline.
        at = [sent[-1]]
        for position in range(1, self._positions.end + 1):
            at.append(Signal.like(updates.o, name=f"at_{position}"))
            m.d.sync += at[position].eq(at[position - 1])

        moving = Cat(group.valid for group in (*sent[1:], *at[1:])).any() | self.o_planes.valid
        m.d.comb += [
            updates.layer.eq(self.layer),
            self.room.eq(updates.room),
            self.busy.eq(updates.busy | moving),
        ]
        self._feed(m, sent, at, totals, units)
        self._keep_levels(m, at, units)
        self._keep_membranes(m, at, units)
        self._collect(m, at, write, units)
        self._offer_logits(m, at[self._positions.fire], units)
        if checked(platform):
            layer, was_busy = Signal.like(self.layer), Signal()
            m.d.sync += [layer.eq(self.layer), was_busy.eq(self.busy)]
            steady = layer.as_value() == self.layer.as_value()
            must(m, platform, ~(was_busy & self.busy) | steady, "the layer changes while busy")
        return m

    def _take(self, m, updates):
        """Delay a group from `Updates` to position 0. Returns the group in each of these cycles,
        its `WriteInfo` at position 0, and its sums where the units take them.
        """
        totals = [Signal.like(total, name=f"acc_{i}", reset_less=True)
                  for i, total in enumerate(updates.sums)]  # fmt: skip
        m.d.sync += [acc.eq(total) for acc, total in zip(totals, updates.sums, strict=True)]
        return [updates.o], updates.step.write, totals

    def _feed(self, m, sent, at, sums, units):
        """Connect the inputs of the units, each at its position."""
        m.submodules.parameters = parameters = self.PARAMETERS(
            units=len(units),
            membrane_bits=len(self.o_logits.payload[0]),
            depth=self._depth,
            values=self._values,
            dropped=() if self._resets else (SUBTRACT.name,),
            init=self._init,
        )
        connect(m, flipped(self.params), parameters.write)
        bias, thresholds = parameters.bias, parameters.thresholds
        bias_at, theta_at = self._parameters_at(sent, at)
        layers, decays = self._layers(m, len(units)), self._decays(m, at, len(units))
        m.d.comb += [
            bias.en.eq(1),
            bias.addr.eq(bias_at.param),
            thresholds.en.eq(1),
            thresholds.addr.eq(theta_at.param),
        ]
        for i, (unit, layer) in enumerate(zip(units, layers, strict=True)):
            m.submodules[f"unit_{i}"] = unit
            m.d.comb += [
                unit.acc.eq(sums[i]),
                unit.bias.eq(bias.data[i]),
                unit.theta.eq(thresholds.data[i].theta),
                *self._feed_parameters(unit, thresholds.data[i]),
                unit.decay.eq(decays[i]),
                unit.shift.eq(layer.shift),
                unit.capacity.eq(layer.capacity),
                unit.fire.eq(~layer.readout),
            ]
            m.d.comb += [getattr(unit, flag).eq(layer[flag]) for flag in layer.shape().flags]

    def _feed_parameters(self, unit, thresholds):
        """Connect the parameters of rules; theta serves as reset if channels have none."""
        for rule in self._rules:
            if rule.per_channel:
                kept = rule.name in thresholds.shape().members
                yield getattr(unit, rule.name).eq(thresholds[rule.name] if kept else unit.theta)

    def _parameters_at(self, _sent, at):
        """The groups whose bias and whose thresholds are read in this cycle."""
        return at[0], at[self._positions.theta - 1]

    def _layers(self, _m, units):
        """The `LayerInfo` for each unit."""
        return [self.layer] * units

    def _decays(self, m, at, units):
        """The decay for each unit."""
        decay = Signal(self._positions.decay_bits + 1)
        for bit, factor in enumerate(decay):
            m.d.comb += factor.eq(self._factor(bit) & ~at[self._positions.decay(bit)].fresh)
        return [decay] * units

    def _factor(self, bit):
        """A bit of the decay factor; the factor of a readout is 1."""
        layer, top = self.layer, self._positions.decay_bits
        return Mux(layer.readout, int(bit == top), layer.decay[bit])

    def _keep_levels(self, m, at, units):
        """The largest levels of each timestep over the positions of the pool window so far."""
        if not self._pools:
            return
        several = self._groups > 1
        m.submodules.pool = pool = memory.Memory(
            shape=data.ArrayLayout(self._positions.planes, len(units)),
            depth=self._groups << ceil_log2(self._timesteps),
            init=[],
            attrs=APART if several else {},
        )
        write = pool.write_port()
        # With one group and one timestep, positions of a pool window come in consecutive cycles.
        read = pool.read_port(transparent_for=[] if several else [write])
        asked, ended = at[-2], at[-1]
        m.d.comb += [
            read.addr.eq(Cat(asked.group, asked.time)),
            write.addr.eq(Cat(ended.group, ended.time)),
            write.en.eq(ended.valid),
        ]
        for i, unit in enumerate(units):
            m.d.comb += [
                unit.pooled.eq(Mux(ended.pool_first, 0, read.data[i])),
                write.data[i].eq(unit.level),
            ]

    def _keep_membranes(self, m, at, units):
        """Store the membranes of the tile; with one timestep each starts from 0."""
        if self._timesteps == 1:
            return
        m.submodules.membrane = state = memory.Memory(
            shape=self.o_logits.payload.shape(), depth=self._groups, init=[], attrs=APART
        )
        write, read = state.write_port(), state.read_port()
        asked, fired = at[self._positions.v - 1], at[self._positions.fire]
        m.d.comb += [
            read.addr.eq(asked.group),
            write.addr.eq(fired.group),
            write.en.eq(fired.valid),
        ]
        for i, unit in enumerate(units):
            m.d.comb += [unit.v.eq(read.data[i]), write.data[i].eq(unit.next_v)]

    def _collect(self, m, at, write, units):
        """Collect levels into planes, and send them with `write`."""
        m.submodules.collector = collector = self.COLLECTOR(
            lanes=len(self.i_sum.payload),
            units=len(units),
            planes=self._positions.planes,
            group=at[0].shape(),
            write=write.shape(),
            ends=self._positions.end,
        )
        connect(m, collector.o, flipped(self.o_planes))
        m.d.comb += [
            Cat(collector.at).eq(Cat(at)),
            Cat(collector.levels).eq(Cat(unit.level for unit in units)),
            collector.write.eq(write),
        ]
        return collector

    def _offer_logits(self, m, fired, units):
        """Offer the membranes of a readout, a cycle after they are computed."""
        logits, valid = Signal.like(self.o_logits.payload, reset_less=True), Signal()
        m.d.sync += [
            valid.eq(fired.valid & fired.logits),
            logits.as_value().eq(Cat(unit.next_v for unit in units)),
        ]
        m.d.comb += [self.o_logits.valid.eq(valid), self.o_logits.payload.eq(logits)]
