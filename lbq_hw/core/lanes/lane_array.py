"""Weight memory and lanes: one event per cycle, one accumulation in every lane."""

from itertools import pairwise

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.memory.far_rows import FarRows, lanes_a_slice
from lbq_hw.core.memory.rows import RowMemory
from lbq_hw.core.memory.spread import FAR_LANES_A_COPY, LANES_A_COPY, SpreadRows, far_copies
from lbq_hw.core.payload import Event
from lbq_hw.core.sizes import check_size

__all__ = ["LaneArray"]


class LaneArray(wiring.Component):
    """Accumulates weight rows event by event, and offers the sums of each step.

    An event makes every lane compute ``acc = (clear ? 0 : double ? 2*acc : acc) + (mask[lane] ?
    weight[row][lane] : 0)``, modulo ``2**acc_bits``. One with ``end`` completes a step: its sums
    are offered once there is ``room`` for them, and until then nothing moves.

    Timing. An event taken in cycle c reads its weights in c + 1 and adds them in c + 2; after an
    ``end`` the sums are there in c + 3. They are valid for one cycle, the first one with ``room``
    in the cycle before it. An event is taken every cycle, but for those in which sums are there and
    not valid: then ``i_event.ready`` is 0. No port depends on another of the same cycle: a register
    enables all that moves in the lanes. With `whole_rows` all of this is a cycle later, since the
    address comes from a register, and with `far_rows` or `pairs` two, since registers are behind
    the memory, too. The sums are the accumulators themselves, so whoever takes them must copy them;
    the next step begins without a gap.

    Weights are written while not ``busy``; an event taken after the write sees them. In the cycle
    of a write no event is taken: the memory may have one port for both. With `whole_rows`, see
    `SpreadRows`.

    Parameters
    ----------
    lanes : int
        Lanes P.
    rows : int
        Weight rows. An event with mask 0 may have any row.
    weight_bits, acc_bits : int
        Signed widths of a weight and of an accumulator.
    masks : bool
        Whether an event may add to some of the lanes alone.
    whole_rows : bool
        Weights are written by the whole row, and at any time, but not while an event that adds the
        row is on its way.
    pairs : bool
        With `whole_rows`: an event may add an even and an odd row, which lie in two memories.
    far_rows : bool
        The weights, written lane by lane, fill a good part of the chip: they are a `FarRows`.
    init : iterable of int
        Weight rows after configuration, as `RowMemory` takes them.

    Members
    -------
    i_event : stream of `Event`
    o_sum : stream of ``lanes`` signed sums, always ready
    room : bit
        Sums can be taken in the next cycle.
    weights : write port of a row, one enable per lane; or one, if `whole_rows`
    busy : bit
        An event or a sum is on its way.
    rooms : in, if `whole_rows`
        Copies of ``room``, one for each `FAR_LANES_A_COPY` lanes.
    o_valids : out, if `whole_rows`
        Copies of ``o_sum.valid``, two for each `FAR_LANES_A_COPY` lanes.
    """

    def __init__(
        self,
        *,
        lanes: int,
        rows: int,
        weight_bits: int,
        acc_bits: int,
        masks: bool = True,
        whole_rows: bool = False,
        far_rows: bool = False,
        pairs: bool = False,
        init=(),
    ):
        check_size("lanes", lanes)
        check_size("rows", rows)
        check_size("weight_bits", weight_bits, least=2)
        check_size("acc_bits", acc_bits)
        if acc_bits < weight_bits:
            raise ValueError(f"acc_bits must be at least weight_bits, not {acc_bits!r}")
        if whole_rows and far_rows:
            raise ValueError("rows must be whole or far, not both")
        if pairs and (not whole_rows or rows % 2):
            raise ValueError(f"pairs must be of an even number of whole rows, not {rows!r}")
        self._rows = rows
        self._whole_rows = whole_rows
        self._far_rows = far_rows
        self._init = list(init)
        row_bits = ceil_log2(rows)
        row_shape = data.ArrayLayout(signed(weight_bits), lanes)
        sums = data.ArrayLayout(signed(acc_bits), lanes)
        event = Event(lanes=lanes, row_bits=row_bits, masks=masks, pairs=pairs)
        weights = memory.WritePort.Signature(
            addr_width=row_bits, shape=row_shape, granularity=None if whole_rows else 1
        )
        super().__init__(
            {
                "i_event": In(stream.Signature(event)),
                "o_sum": Out(stream.Signature(sums, always_ready=True)),
                "room": In(1),
                "weights": Out(weights),
                "busy": Out(1),
            }
            | (
                {"rooms": In(far_copies(lanes)), "o_valids": Out(2 * far_copies(lanes))}
                if whole_rows
                else {}
            )
        )

    @property
    def rows(self) -> int:
        """Weight rows."""
        return self._rows

    def elaborate(self, _platform):
        m = Module()
        row_shape = self.weights.data.shape()
        event = self.i_event.payload
        count = len(self.weights.data)
        waits = self._whole_rows or self._far_rows
        # Copies of one register, each of which drives some of the lanes.
        shared = self._lanes_a_copy()
        advances = [Signal(init=1, name=f"advance_{i}") for i in range(-(-count // shared))]
        advance = advances[0]
        offered = Signal()
        stage = data.StructLayout({"mask": len(event.mask), "act": _ACT})
        asked, fetched = Signal(stage), Signal(stage)
        between = [Signal(stage, name="between")] if self._far_rows else []
        pairs = event.shape().pairs
        paired = [Signal(_ACT, name="paired")] if pairs else []
        stages = [asked, *between, fetched]
        acts = [*(stage.act for stage in stages), *paired]
        adding = [Signal(_ACT, name=f"adding_{i}") for i in range(len(advances))]
        addend = Signal(self._addend(), reset_less=True)
        acc = Signal(self.o_sum.payload.shape(), reset_less=True)

        # Those of the memory are others, so that they can be near it.
        fetches = [Signal(init=1, name=f"fetch_{i}") for i, _ in enumerate(advances)]
        reads = self._keep_rows(m, fetches if self._far_rows else advances)
        ends = adding[0].valid & adding[0].end
        moving = acts[-1].valid | adding[0].valid | ~advance | offered
        for before in acts[:-1] if waits else ():
            moving |= before.valid
        m.d.comb += self.i_event.ready.eq(advance)
        for read, row in zip(reads, event.rows if pairs else [event.row], strict=True):
            m.d.comb += [read.addr.eq(row), read.en.eq(advance & self.i_event.valid)]
        m.d.comb += [
            self.o_sum.valid.eq(offered),
            self.o_sum.payload.eq(acc),
            self.busy.eq(moving),
        ]
        m.d.sync += offered.eq(self.room & (~advance | ends))
        adds = None
        if waits:
            adds = self._foresee(m, advances, fetches, acts[-1], adding)
        else:
            # Each copy feeds itself back, so that synthesis cannot merge them.
            m.d.sync += [copy.eq(self.room | (copy & ~ends)) for copy in advances]
        ahead = m.d.sync if waits else m.d.comb
        with m.If(advance if waits else 1):
            ahead += [
                asked.mask.eq(event.mask),
                asked.act.valid.eq(self.i_event.valid),
                asked.act.clear.eq(event.clear),
                asked.act.double.eq(event.double),
                asked.act.end.eq(event.end),
            ]
        with m.If(advance):
            m.d.sync += [later.eq(sooner) for sooner, later in pairwise(acts)]
        for moves, act in zip(advances, adding, strict=True):
            with m.If(moves):
                m.d.sync += act.eq(acts[-1])
        weights = [data.View(row_shape, read.data) for read in reads]
        chosen = self._choose(m, advances) if pairs else None
        for lane, (total, weight) in enumerate(zip(acc, addend, strict=True)):
            moves, act = advances[lane // shared], adding[lane // shared]
            # One LUT per bit chooses what the carry chain adds to.
            start = Mux(act.double, total << 1, total)[: len(total)]
            start &= (~act.clear).replicate(len(total))
            bit = lane % len(event.mask)
            if chosen:
                masked = self._pair(m, moves, fetched.mask[bit], chosen[lane // shared],
                                    [row[lane] for row in weights])  # fmt: skip
            elif len(event.mask) > 1:
                # Of the choice below tools make a synchronous reset: a control set for each lane,
                # and cells of an iCE40 share one by eights.
                masked = weights[0][lane] & fetched.mask[bit].replicate(len(weight)).as_signed()
            else:
                masked = Mux(fetched.mask[bit], weights[0][lane], 0)
            with m.If(moves):
                m.d.sync += [
                    later.mask[bit].eq(sooner.mask[bit]) for sooner, later in pairwise(stages)
                ]
                m.d.sync += weight.eq(masked)
            with m.If(adds[lane // shared] if adds else moves & act.valid):
                m.d.sync += total.eq(start.as_signed() + weight)
        return m

    def _addend(self):
        """What is added in each lane: a weight, or the sum of two."""
        weight, pairs = self.weights.data[0].shape(), self.i_event.payload.shape().pairs
        return data.ArrayLayout(signed(weight.width + pairs), len(self.weights.data))

    def _choose(self, m, advances):
        """Which of the two rows that have come are added: two bits for each copy of ``advance``."""
        chosen = []
        for i, moves in enumerate(advances):
            asked, fetched = (Signal(2, name=f"{name}_adds_{i}") for name in ("asked", "fetched"))
            with m.If(moves):  # these differ, so that synthesis cannot merge the copies
                m.d.sync += [asked.eq(self.i_event.payload.adds), fetched.eq(asked)]
            chosen.append(fetched)
        return chosen

    def _pair(self, m, moves, mask, adds, weights):
        """The sum of the two weights of a lane, which are a cycle on their way from the memory."""
        parts = []
        for weight, add in zip(weights, adds, strict=True):
            parts.append(Signal.like(weight, name="part", reset_less=True))
            with m.If(moves):
                m.d.sync += parts[-1].eq(weight & (mask & add).replicate(len(weight)).as_signed())
        return parts[0] + parts[1]

    def _lanes_a_copy(self):
        """Lanes that share one copy of the registers that let them move."""
        if self._far_rows:
            return lanes_a_slice(self._rows, len(self.weights.data[0]))
        return FAR_LANES_A_COPY if self._whole_rows else LANES_A_COPY

    def _foresee(self, m, advances, fetches, fetched, adding):
        """Registers that let lanes add, with no gate behind them. They, and those that offer sums,
        look at nothing but copies for the same lanes.
        """
        adds, valids = [], []
        rooms = self.rooms if self._whole_rows else [self.room] * len(advances)
        copied = zip(rooms, advances, fetches, adding, strict=True)
        for i, (room, advance, fetch, act) in enumerate(copied):
            adds.append(Signal(name=f"adds_{i}"))
            ends = act.valid & act.end
            moves = room | (advance & ~ends)
            follows = Mux(advance, fetched.valid, act.valid)
            m.d.sync += [advance.eq(moves), adds[-1].eq(moves & follows)]
            if self._far_rows:
                m.d.sync += fetch.eq(room | (fetch & ~ends))
            if self._whole_rows:
                valids += copies(m, room & (~advance | ends), 2, name=f"offered_{i}")
        if self._whole_rows:
            m.d.comb += self.o_valids.eq(Cat(valids))
        return adds

    def _keep_rows(self, m, advances):
        """The memory of the weights, written from the port: its read port; or two, with pairs."""
        weights = self.weights
        lanes, bits = len(weights.data), len(weights.data[0])
        if self.i_event.payload.shape().pairs:
            return self._keep_pairs(m, advances)
        if self._whole_rows:
            store = SpreadRows(width=lanes * bits, depth=self._rows, moves=len(advances))
        elif self._far_rows:
            sizes = {"rows": self._rows, "lanes": lanes, "weight_bits": bits, "init": self._init}
            store = FarRows(**sizes, slices=len(advances))
        else:
            store = RowMemory(rows=self._rows, lanes=lanes, weight_bits=bits, init=self._init)
        if self._whole_rows or self._far_rows:
            m.d.comb += store.moves.eq(Cat(advances))
        m.submodules.memory = store
        m.d.comb += [
            store.write.addr.eq(weights.addr),
            store.write.data.eq(weights.data),
            store.write.en.eq(weights.en),
        ]
        return [store.read]

    def _keep_pairs(self, m, advances):
        """A memory of the even rows and one of the odd ones."""
        reads = []
        for odd in range(2):
            store = SpreadRows(
                width=len(self.weights.data.as_value()), depth=self._rows // 2, moves=len(advances)
            )
            m.submodules[f"memory_{odd}"] = store
            m.d.comb += [
                store.moves.eq(Cat(advances)),
                store.write.addr.eq(self.weights.addr >> 1),
                store.write.data.eq(self.weights.data),
                store.write.en.eq(self.weights.en & (self.weights.addr[0] == odd)),
            ]
            reads.append(store.read)
        return reads


_ACT = data.StructLayout({"valid": 1, "clear": 1, "double": 1, "end": 1})
