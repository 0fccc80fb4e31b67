"""A state machine with one-hot states."""

from collections.abc import Iterator
from contextlib import contextmanager

from amaranth import Cat, Module, Signal

from lbq_hw.core.fabric.contracts import must

__all__ = ["States"]


class States:
    """As ``m.FSM()``, but one-hot: each state is a register of its own.

    Synthesis keeps the state numbers of ``m.FSM()``, and an iCE40 has a register beside every
    look-up table. With many states, decoding the number costs more cells than one-hot registers.

    At most one ``go`` may be reached in a cycle: unlike with ``m.next``, a later ``go`` does not
    replace an earlier one.

    Parameters
    ----------
    m : Module
        The module of the state machine.
    platform
        The platform of the design.
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
        """Context of the statements of a state; used once per state."""
        bit = Signal(name=f"at_{name.lower()}", init=name == self._first)
        self._leave = leave = Signal(name=f"leave_{name.lower()}")
        others = Cat(self._bits).any()
        must(self._m, self._platform, ~(bit & others), "two states are active at once")
        self._bits.append(bit)
        with self._m.If(bit):
            yield
        # An expression, not an If: for an If, synthesis uses the register's reset input, and a
        # look-up table in front of it.
        self._m.d.sync += bit.eq(self._entered(name) | (bit & ~leave))

    def go(self, name: str) -> None:
        """Go to another state in the next cycle."""
        self._m.d.comb += [self._leave.eq(1), self._entered(name).eq(1)]
