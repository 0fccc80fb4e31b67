"""The membrane and parameter memories, and the pipeline that updates a group of neurons."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.hints import APART
from lbq_hw.core.streaming.layouts import Beat, layer_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["NeuronPipe"]


class NeuronPipe(wiring.Component):
    """Reads the membranes of a beat, leaks and updates them, and writes them back.

    ``U = leaks(V) + bias + sum * 2**F``. The level S is the number of thresholds that U reaches, up
    to the capacity, found by a division: the largest multiple theta * 2**k is subtracted if it
    fits, then the next smaller one, and so on. A readout keeps U; its parameter ``floor`` must be
    the most negative number.

    Timing. A beat taken in cycle c has its membranes in c + 1, and is in the leak stage from c + 2
    on. It stays there for one cycle per leak that it owes, at least one, but leaves with the first
    leak that changes none of its membranes; later beats wait. After that nothing stalls: the beat
    is at ``o`` ``planes + 4`` cycles later, and its membranes are written in the same cycle.

    Members
    -------
    layer : in
    i : stream of `Beat`
    sums, param : in
        Sums and parameter word of the beat at ``i``.
    clear, clear_addr : in
        Clear a word of membranes, while nothing runs.
    o : stream of `Beat`, always ready
        Beats whose groups have been updated.
    levels, hot : out
        Levels of the group at ``o``; whether any of its membranes still reaches its threshold.
    overflow : out
        A membrane overflowed its width.
    membranes : read port
        For the host, while nothing runs.
    params : write port
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        self._kinds = 2 + c.resets + c.floors
        word = c.units * c.membrane_bits
        membrane, param = address_bits(c.membrane_words), address_bits(c.param_words)
        super().__init__(
            {
                "layer": In(layer_of(c)),
                "i": In(stream.Signature(Beat(c))),
                "sums": In(data.ArrayLayout(signed(c.acc_bits), c.units)),
                "param": In(param),
                "clear": In(1),
                "clear_addr": In(membrane),
                "o": Out(stream.Signature(Beat(c), always_ready=True)),
                "levels": Out(data.ArrayLayout(c.planes, c.units)),
                "hot": Out(1),
                "overflow": Out(1),
                "membranes": Out(memory.ReadPort.Signature(addr_width=membrane, shape=word)),
                "params": Out(
                    memory.WritePort.Signature(addr_width=param, shape=word * self._kinds)
                ),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, layer = self._config, self.layer
        bits, word = c.membrane_bits, c.units * c.membrane_bits
        m.submodules.membranes = membranes = memory.Memory(
            shape=word, depth=c.membrane_words, init=[], attrs=APART
        )
        m.submodules.params = params = memory.Memory(
            shape=word * self._kinds, depth=c.param_words, init=[], attrs=APART
        )
        read, write = membranes.read_port(), membranes.write_port()
        fetch, store = params.read_port(), params.write_port()
        asked, asked_beat = Signal(), Signal(Beat(c))
        asked_sums = Signal.like(self.sums)
        beat_valid, beat = Signal(), Signal(Beat(c))
        advance, leaves = Signal(), Signal()
        accept = Signal()
        m.d.comb += [
            advance.eq(~beat_valid | leaves),
            self.i.ready.eq(~asked | advance),
            accept.eq(self.i.valid & self.i.ready),
            read.addr.eq(Mux(self.membranes.en, self.membranes.addr, self.i.payload.membrane)),
            read.en.eq(accept | self.membranes.en),
            self.membranes.data.eq(read.data),
            fetch.addr.eq(self.param),
            fetch.en.eq(accept),
            store.addr.eq(self.params.addr),
            store.data.eq(self.params.data),
            store.en.eq(self.params.en),
        ]
        with m.If(self.i.ready):
            m.d.sync += asked.eq(self.i.valid)
        with m.If(accept):
            m.d.sync += [asked_beat.eq(self.i.payload), asked_sums.eq(self.sums)]
        with m.If(advance):
            m.d.sync += [beat_valid.eq(asked), beat.eq(asked_beat)]

        # Leaks, one per cycle.
        numbers = data.ArrayLayout(signed(bits), c.units)
        v, sums, fetched = Signal(numbers), Signal.like(self.sums), Signal(word * self._kinds)
        leaked, changes = Signal(numbers), Signal(c.units)
        m.d.comb += leaked.eq(v)
        m.d.comb += leaves.eq(1)
        if c.leaks:
            with m.If(layer.leaks):
                for i in range(c.units):
                    m.d.comb += leaked[i].eq((v[i] * layer.decay) >> c.decay_bits)
                    m.d.comb += changes[i].eq(leaked[i] != v[i])
                with m.If(beat.valid):
                    m.d.comb += leaves.eq((beat.owed <= 1) | ~changes.any())
        with m.If(advance):
            m.d.sync += [v.eq(read.data), sums.eq(asked_sums), fetched.eq(fetch.data)]
        with m.Else():
            m.d.sync += [v.eq(leaked)]
            if c.leaks:
                m.d.sync += beat.owed.eq(beat.owed - 1)

        passes = self._shift(m, beat_valid & leaves, beat, stages=c.planes + 4)
        found = [
            self._unit(m, leaked[i], sums[i], self._params(fetched, i)) for i in range(c.units)
        ]
        m.d.comb += [
            self.o.valid.eq(passes.valid),
            self.o.payload.eq(passes.payload),
            self.hot.eq(Cat(unit.hot for unit in found).any()),
            self.overflow.eq(
                passes.valid & passes.payload.valid & Cat(u.overflow for u in found).any()
            ),
            write.addr.eq(Mux(self.clear, self.clear_addr, passes.payload.membrane)),
            write.data.eq(Mux(self.clear, 0, Cat(unit.v for unit in found))),
            write.en.eq(self.clear | (passes.valid & passes.payload.valid)),
        ]
        m.d.comb += [self.levels[i].eq(unit.s) for i, unit in enumerate(found)]
        return m

    def _params(self, fetched, i):
        """Bias, theta, reset and floor of a unit."""
        c, bits = self._config, self._config.membrane_bits
        own = [
            fetched.word_select(i * self._kinds + kind, bits).as_signed()
            for kind in range(self._kinds)
        ]
        reset = own[2] if c.resets else own[1]
        return own[0], own[1], reset, own[-1] if c.floors else None

    def _shift(self, m, valid, payload, *, stages):
        """Shift a beat through all stages."""
        for stage in range(stages):
            later = _Passing(payload.shape(), stage)
            m.d.sync += [later.valid.eq(valid), later.payload.eq(payload)]
            valid, payload = later.valid, later.payload
        return later

    def _unit(self, m, leaked, total, params):
        """One neuron: sum, thresholds, reset, floor; a register after each."""
        c, layer, bits = self._config, self.layer, self._config.membrane_bits
        bias, theta, reset, floor = params
        wide = max(bits, c.acc_bits + c.fraction_high) + 2
        v, current = Signal(signed(bits)), Signal(signed(wide))
        shifted = Signal(signed(wide))
        for f in range(c.fraction_low, c.fraction_high + 1):
            with m.If(layer.fraction == f - c.fraction_low):
                m.d.comb += shifted.eq(total << f)
        m.d.sync += [v.eq(leaked), current.eq(shifted + bias)]
        kept = _Kept(m, theta, reset, floor, bits)
        u, large = Signal(signed(bits)), Signal()
        whole = v + current
        m.d.sync += [u.eq(whole), large.eq(_leaves(whole, bits))]
        kept.later(m)
        left, s = u, None
        for plane in reversed(range(c.planes)):
            rest, fits = Signal(signed(bits + c.planes)), Signal()
            m.d.comb += [
                rest.eq(left - (kept.theta << plane)),
                fits.eq((rest >= 0) & ~layer.readout),
            ]
            after, was, beyond = Signal(signed(bits)), Signal(signed(bits)), Signal()
            level = Signal(c.planes)
            before = 0 if s is None else s
            m.d.sync += [
                after.eq(Mux(fits, rest, left)),
                was.eq(u),
                beyond.eq(large),
                level.eq(before | (fits << plane)),
            ]
            left, u, large, s = after, was, beyond, level
            kept.later(m)
        fired, capped = s.any(), Signal(c.planes)
        lower, past = Signal(signed(bits + 1)), Signal()
        m.d.sync += [
            capped.eq(Mux(s > layer.capacity, layer.capacity, s)),
            lower.eq(Mux(fired, Mux(layer.to_zero, 0, u - kept.reset), u)),
            past.eq(large),
        ]
        kept.later(m)
        result = _Result(c.planes, bits)
        least = lower if kept.floor is None else Mux(lower < kept.floor, kept.floor, lower)
        m.d.sync += [
            result.v.eq(least),
            result.s.eq(capped),
            result.hot.eq(~layer.readout & (least >= kept.theta)),
            result.overflow.eq(past | _leaves(least, bits)),
        ]
        return result


def _leaves(value, bits):
    """Whether a number needs more than `bits` bits."""
    high = value[bits - 1 :]
    return high.any() & ~high.all()


class _Passing:
    def __init__(self, shape, stage: int):
        self.valid = Signal(name=f"passing_{stage}_valid")
        self.payload = Signal(shape, name=f"passing_{stage}")


class _Kept:
    """The parameters that later stages of a neuron still need."""

    def __init__(self, m, theta, reset, floor, bits: int):
        self.theta, self.reset, self.floor, self._bits = theta, reset, floor, bits
        self.later(m)

    def later(self, m):
        """Pass them to the next stage."""
        for name in ("theta", "reset", "floor"):
            value = getattr(self, name)
            if value is not None:
                kept = Signal(signed(self._bits), name=f"kept_{name}")
                m.d.sync += kept.eq(value)
                setattr(self, name, kept)


class _Result:
    def __init__(self, planes: int, bits: int):
        self.v = Signal(signed(bits), name="v_after")
        self.s = Signal(planes, name="level")
        self.hot = Signal(name="hot_after")
        self.overflow = Signal(name="overflow_after")
