"""A state machine with a register per state."""

from collections.abc import Iterator
from contextlib import contextmanager

from amaranth import Cat, Module, Signal

from lbq_hw.core.fabric.contracts import must

__all__ = ["States"]


class States:
    """As ``m.FSM()``, where every state is a bit of its own instead of a number.

    Synthesis keeps the numbers of ``m.FSM()``, and an iCE40 has a register beside each of its
    look-up tables: with many states, decoding the number costs more than the bits.

    In a cycle at most one ``go`` may be reached: unlike ``m.next``, a later one does not replace
    one before it.

    Parameters
    ----------
    m : Module
        Where the states are; the other members are to be used while it is built.
    platform
        Of the design.
    first : str
        The state after a reset.
    """

    def __init__(self, m: Module, platform, first: str):
        self._m = m
        self._platform = platform
        self._first = first
        self._enter: dict[str, Signal] = {}
        self._leave = Signal()
        self._bits: list[Signal] = []

    def _entered(self, name: str) -> Signal:
        return self._enter.setdefault(name, Signal(name=f"enter_{name.lower()}"))

    @contextmanager
    def state(self, name: str) -> Iterator[None]:
        """What to do in a state; each is described once."""
        bit = Signal(name=f"at_{name.lower()}", init=name == self._first)
        self._leave = leave = Signal(name=f"leave_{name.lower()}")
        others = Cat(self._bits).any()
        must(self._m, self._platform, ~(bit & others), "two states are entered at once")
        self._bits.append(bit)
        with self._m.If(bit):
            yield
        # As an expression: for an If, synthesis takes the register's reset, and a table for it.
        self._m.d.sync += bit.eq(self._entered(name) | (bit & ~leave))

    def go(self, name: str) -> None:
        """Be in another state from the next cycle on."""
        self._m.d.comb += [self._leave.eq(1), self._entered(name).eq(1)]
