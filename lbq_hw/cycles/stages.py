"""The timing of the stages behind the walker: scanner, event FIFO and lanes, neuron units.

A stage takes its next item when the item has arrived and its destination has room. In a queue of
depth n, item i has room when item i - n has left. So the cycle of each item is a maximum over
cycles of earlier items, plus constants. Nothing is simulated cycle by cycle, and the events of a
plane word are handled as one item. All cycles count from the layer's start.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapreplace

from lbq_hw.config import CoreConfig, Profile

ASKED_QUEUE = 2
"""Requests that wait in the scanner for their flags, in a spread core."""
SPAN_QUEUE = 2
"""Requests that wait in the scanner for their words."""
WORD_QUEUE = 17
"""Words that wait in the scanner for their events; one of them is in a register behind the queue's
memory.
"""
ADDS_PER_STAGE = 2
"""Bits of the decay that a neuron unit handles in one cycle."""
PLANES_PER_STAGE = 2
"""Bits of a level that a neuron unit of a compact core handles in one cycle, after the first bit.
"""
FAR_CYCLES = 4
"""Cycles of a read in a memory that fills a good part of the chip."""
PARTIAL_CYCLES = FAR_CYCLES
"""Additional cycles of a group in cores with partial sums."""
NEAR_WAY = 2
"""Cycles to read weights and to add them, in a core that is not spread."""

_NEVER = -(1 << 60)


@dataclass(frozen=True, kw_only=True)
class NeuronTiming:
    """A tile takes `groups` cycles; updates of one membrane begin `loop` cycles apart or more;
    a group's levels are collected `depth` cycles after it was sent, and their planes are offered
    `offer` cycles later.
    """

    groups: int
    loop: int
    depth: int
    offer: int = 1

    @classmethod
    def of(cls, config: CoreConfig) -> NeuronTiming:
        leak = -(-max(0, config.decay_bits - 1) // ADDS_PER_STAGE)
        if config.profile is Profile.COMPACT:
            depth = leak + config.planes // PLANES_PER_STAGE + 2
        else:
            depth = leak + config.planes + 5 + (PARTIAL_CYCLES if config.external else 0)
        offer = int(config.profile is not Profile.COMPACT)
        return cls(groups=config.groups, loop=leak + 3, depth=depth, offer=offer)


class Neurons:
    """Neuron units and writer, of one layer.

    Nothing stalls inside: an update begins late enough that its membranes are ready, and that the
    writer can take its planes at once. A pass that `leaves` partial sums has one update per step,
    always a first one, and writes nothing.
    """

    def __init__(
        self,
        timing: NeuronTiming,
        *,
        updates: int,
        planes: int,
        readout: bool,
        leaves: bool = False,
    ) -> None:
        self._timing, self._updates = timing, 1 if leaves else updates
        self._planes, self._leaves = planes, leaves
        self._writes = not (readout or leaves)
        self._began = _NEVER  # cycle of the first group of the last update
        self._free = 0
        self._passing = 0

    def take(self, ready: int, *, first: bool, emits: bool) -> int:
        """Cycle in which sums are taken that are ready from cycle `ready` on.

        `first`: the membrane starts at 0. `emits`: levels are sent, as at the last window position.
        """
        timing = self._timing
        cycle = max(ready, self._free)
        began = cycle + 1
        for update in range(self._updates):
            apart = timing.groups
            if (update or not first) and not self._leaves:
                apart = max(apart, timing.loop)
            if emits and self._writes:
                apart = max(apart, self._planes)
            self._passing += apart
            self._began = began = max(began, self._began + apart)
        # New sums may come while the last group is sent; a single group must be sent before.
        self._free = began + max(1, timing.groups - 1)
        return cycle

    @property
    def least(self) -> int:
        """Cycles that all updates would take on their own."""
        return self._passing

    def idle(self) -> int:
        """First cycle in which nothing is in flight, once all steps are taken."""
        taken = self._began + self._timing.groups + self._timing.depth
        # The writer offers its last plane a cycle after it has left its register.
        return taken + self._timing.offer + self._planes + 1 if self._writes else taken


def lane_way(config: CoreConfig) -> int:
    """Cycles to read the weights and to add them, including the registers before and behind their
    memory.
    """
    if not config.spread:
        return NEAR_WAY
    return NEAR_WAY + 1 if config.external and not config.pairs else NEAR_WAY + 2


class Lanes:
    """Event FIFO and lanes: one event per cycle is made, waits, and is taken.

    No event is taken while a finished sum waits for the neuron units. Events are numbered, and the
    lag of an event is the cycle in which it is made, or taken, minus its number. A lag never falls;
    the lag of taken events rises only if a word comes late or a sum waits. `way`: cycles from the
    taking of an event to the addition of its weights.
    """

    def __init__(self, depth: int, neurons: Neurons, *, way: int = NEAR_WAY) -> None:
        if depth < 3:
            raise ValueError(f"fifo_depth must be at least 3 for the cycle model, not {depth!r}")
        self._depth, self._neurons = depth, neurons
        self._way = way
        self._next = 0  # number of the next event
        self._made = _NEVER  # lag of the last event
        self._taken = _NEVER
        self._lags: deque[tuple[int, int]] = deque(
            [(_NEVER, _NEVER)]
        )  # number of an event, and the lag of those from it on
        self._waits: deque[tuple[int, int]] = (
            deque()
        )  # cycles from which a sum waits, and in which it is taken
        self.stalls = 0
        self.sums: list[int] = []  # cycles in which the sums were taken

    def word(self, cycle: int, count: int) -> int:
        """Make `count` events of a word loaded in `cycle`; returns the cycle of the last event."""
        start, last = self._next, self._next + count - 1
        made = max(self._made, cycle + 1 - start, self._room(start))
        taken = max(self._taken, made + 3)
        if taken > self._taken:
            self._lags.append((start, taken))
        waits = self._waits
        while waits and waits[0][0] <= last + taken:
            begin, end = waits[0]
            if start + taken >= end:
                waits.popleft()
                continue
            start = max(start, begin - taken)
            taken = end - start
            self._lags.append((start, taken))
        self._next, self._taken = last + 1, taken
        self._made = max(made, self._room(last))
        return last + self._made

    def end(self, *, first: bool, emits: bool) -> None:
        """The last event of a step was made: pass its sums to the neuron units."""
        cycle = self._next - 1 + self._taken
        for _ in range(self._way):
            cycle += 1
            for begin, end in self._waits:
                if begin <= cycle < end:
                    cycle = end
        ready = cycle + 1
        handed = self._neurons.take(ready, first=first, emits=emits)
        if handed > ready:
            self._waits.append((ready, handed))
            self.stalls += handed - ready
        self.sums.append(handed)

    def _room(self, event: int) -> int:
        """Smallest lag of an event: the event before it must have room in the FIFO."""
        lags = self._lags
        event -= self._depth + 1
        while len(lags) > 1 and lags[1][0] <= event:
            lags.popleft()
        return lags[0][1] - self._depth


class Scanner:
    """The scanner in one layer: summary flags, queue of spans, words and queue of words; `far` in a
    spread core, as with external memory.
    """

    def __init__(self, lanes: Lanes, *, far: bool = False) -> None:
        self._lanes, self._far = lanes, far
        self._accepted = self._flags_read = self._flags_left = _NEVER
        self._issued = self._read = self._left = self._taken = self._made = _NEVER
        self._asked = deque([_NEVER] * ASKED_QUEUE, maxlen=ASKED_QUEUE)
        self._spans = deque([_NEVER] * SPAN_QUEUE, maxlen=SPAN_QUEUE)
        self._words = deque([_NEVER] * (WORD_QUEUE - 1), maxlen=WORD_QUEUE - 1)
        self._room = [_NEVER] * WORD_QUEUE  # cycles in which words in flight make room; a heap

    def take(self, cycle: int, words: list[int]) -> int:
        """Take a request offered from `cycle` on; returns the cycle in which it is taken.

        `words` has the number of events of each word with a flag; 0: no bit in range.
        """
        if self._far:
            accepted = max(cycle, self._accepted + 1, self._asked[0] + 1)
            asked = max(max(accepted, self._asked[-1]) + 1, self._flags_read)
            self._asked.append(asked)
            self._flags_read = read = max(asked + 1, self._flags_left)
            self._flags_left = arrived = max(read, self._spans[0]) + 1
        else:
            accepted = max(cycle, self._accepted + 1, self._flags_left)
            self._flags_left = arrived = max(accepted, self._spans[0]) + 1
        self._accepted = accepted
        if words:
            self._spans.append((self._read_far if self._far else self._read_near)(arrived, words))
        return accepted

    def _read_near(self, arrived: int, words: list[int]) -> int:
        """Read the words of a request that has arrived; returns the cycle of the last choice."""
        issued, read, left = self._issued, self._read, self._left
        taken, made = self._taken, self._made
        queue, word = self._words, self._lanes.word
        for count in words:
            issued = max(max(issued, arrived) + 1, read)
            read = max(issued + 1, left)
            left = max(read, queue[0]) + 1
            if count:
                offered = max(left + 1, taken)
                queue.append(offered)
                taken = max(offered + 1, made)
                made = word(taken, count)
        self._issued, self._read, self._left = issued, read, left
        self._taken, self._made = taken, made
        return issued

    def _read_far(self, arrived: int, words: list[int]) -> int:
        """As `_read_near`, for reads of a fixed latency that begin only if there is room."""
        issued, taken, made = self._issued, self._taken, self._made
        room, word = self._room, self._lanes.word
        for count in words:
            issued = max(max(issued, arrived) + 1, room[0] + 1)
            left = issued + FAR_CYCLES + 4
            if count:
                taken = max(max(left + 1, taken) + 1, made)
                made = word(taken, count)
            heapreplace(room, taken + 1 if count else left)
        self._issued, self._taken, self._made = issued, taken, made
        return issued
