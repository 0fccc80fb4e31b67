"""Registers that split long wires across a chip."""

from amaranth import Module, Signal, Value

__all__ = ["copies", "delayed", "delayed_while"]


def copies(m: Module, value, count: int, *, name: str) -> list[Signal]:
    """Copies of a register with the value of the previous cycle, each for a part of the chip.

    Synthesis would merge equal registers. So each copy has its own bit `keep`, which would clear
    the copy but is never 1. The tools cannot prove that, because the bit depends on itself.
    """
    given = Value.cast(value)
    copied = []
    for i in range(count):
        keep = Signal(name=f"{name}_keep_{i}")
        copy = Signal(len(given), name=f"{name}_{i}")
        m.d.sync += [
            keep.eq(keep & given[:1].any()),
            copy.eq(given & ~keep.replicate(len(given))),
        ]
        copied.append(copy)
    return copied


def delayed(m: Module, value, cycles: int, *, name: str, reset_less: bool = False):
    """A value delayed by some cycles, through a chain of registers; by 0, the value itself."""
    for cycle in range(cycles):
        later = Signal(value.shape(), name=f"{name}_{cycle}", reset_less=reset_less)
        m.d.sync += later.eq(value)
        value = later
    return value


def delayed_while(m: Module, advance, value, cycles: int, *, name: str):
    """As `delayed`, but counting only cycles with `advance`; in other cycles the chain holds."""
    for cycle in range(cycles):
        later = Signal(value.shape(), name=f"{name}_{cycle}")
        with m.If(advance):
            m.d.sync += later.eq(value)
        value = later
    return value
