"""Registers that are there for the way from one part of a chip to another."""

from amaranth import Module, Signal, Value

__all__ = ["copies", "delayed", "delayed_while"]


def copies(m: Module, value, count: int, *, name: str) -> list[Signal]:
    """Registers that all have the value of the cycle before, each for a part of the chip.

    Synthesis would merge them. So each is cleared by a bit of its own that is never set, which no
    tool finds out: it depends on itself.
    """
    given = Value.cast(value)
    copied = []
    for i in range(count):
        never = Signal(name=f"{name}_never_{i}")
        copy = Signal(len(given), name=f"{name}_{i}")
        m.d.sync += [
            never.eq(never & given[:1].any()),
            copy.eq(given & ~never.replicate(len(given))),
        ]
        copied.append(copy)
    return copied


def delayed(m: Module, value, cycles: int, *, name: str, reset_less: bool = False):
    """A value as it was so many cycles ago: a chain of registers; with none, the value itself."""
    for cycle in range(cycles):
        later = Signal(value.shape(), name=f"{name}_{cycle}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


def delayed_while(m: Module, moves, value, cycles: int, *, name: str):
    """As `delayed`, but only cycles in which it `moves` count: in others all stay as they are."""
    for cycle in range(cycles):
        later = Signal(value.shape(), name=f"{name}_{cycle}")
        with m.If(moves):
            m.d.sync += later.eq(value)
        value = later
    return value
