"""Contracts of blocks, as circuits that a solver looks at: what it may give, and what must hold.

A `Contract` is a design around a block. All inputs that the design does not drive are the solver's,
in every cycle anew. The contracts that blocks check themselves, see
`lbq_hw.core.fabric.contracts`, must hold too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from amaranth import ClockDomain, Module, Signal, Value
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume
from amaranth.lib.wiring import In

from lbq_hw.sim.verilog import ports

TOP = "contract"


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A fault that is planted in a module: the text `old`, which is there once, becomes `new`."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A contract of a block, and a fault in the block that breaks it.

    Members
    -------
    name : str
    says : str
        What is proven, for people.
    module : str
        Where the block is.
    contract : function
        Of that module's classes and functions, the `Contract`.
    bug : `Bug`
        In that module.
    cycles : int
        After a reset, that are looked at.
    always : bool
        It holds in all later cycles too, since it holds in a cycle before which it has held for
        that many, whatever the block's state was.
    fast : bool
        It takes seconds, so that CI runs it.
    """

    name: str
    says: str
    module: str
    contract: Callable[[ModuleType], Contract]
    bug: Bug
    cycles: int = 1
    always: bool = False
    fast: bool = False

    @property
    def bound(self) -> str:
        """How many cycles it covers: all of them, too, where a circuit has no registers."""
        return "all" if self.always or self.cycles == 1 else str(self.cycles)

    def rtlil(self, *, planted: bool) -> str:
        """The contract for Yosys, of the block as it is or with the fault."""
        return self.contract(load(self.module, self.bug if planted else None)).rtlil()


def load(name: str, bug: Bug | None = None) -> ModuleType:
    """A module, with a fault planted in it: a copy, which nothing else imports."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")
    if bug is not None:
        if text.count(bug.old) != 1:
            raise ValueError(f"{bug.old!r} must be in {name} once, not {text.count(bug.old)} times")
        text = text.replace(bug.old, bug.new)
    module = ModuleType(name)
    exec(compile(text, spec.origin, "exec", dont_inherit=True), vars(module))
    return module


class Contract:
    """A design around a block, without a reset.

    Members
    -------
    m : Module
        To which a contract adds what it needs.
    """

    def __init__(self) -> None:
        self.m: Any = Module()  # Amaranth has no types
        self.m.domains.sync = sync = ClockDomain(reset_less=True)
        self._ports: list[Signal] = [sync.clk]

    def add(self, block: Any, name: str = "block") -> Any:
        """Put a block into the design; its inputs are the solver's where nothing drives them."""
        self.m.submodules[name] = block
        members = block.signature.flatten(block)
        inputs = {id(Value.cast(value)) for _, member, value in members if member.flow is In}
        self._ports += [port for port in ports(block) if id(port) in inputs]
        return block

    def any(self, shape: Any, name: str) -> Any:
        """A value that is the solver's in every cycle."""
        value = Signal(shape, name=name)
        self._ports.append(Value.cast(value))
        return value

    def fixed(self, shape: Any, name: str) -> Any:
        """A value that is the solver's, and the same in all cycles."""
        value = self.any(shape, name)
        self.assume(self.before(value, 1) == value, after=1)
        return value

    def before(self, value: Any, cycles: int) -> Any:
        """A value as it was some cycles ago."""
        for _ in range(cycles):
            later = Signal.like(value, name="before")
            self.m.d.sync += later.eq(value)
            value = later
        return value

    def must(self, holds: Any, *, after: int = 0) -> None:
        """It holds in every cycle, but for so many first ones."""
        self.m.d.comb += Assert(holds | ~self._past(after))

    def assume(self, holds: Any, *, after: int = 0) -> None:
        """The solver gives only what makes it hold."""
        self.m.d.comb += Assume(holds | ~self._past(after))

    def _past(self, cycles: int) -> Any:
        """So many cycles have passed."""
        past: Any = Value.cast(1)
        for _ in range(cycles):
            later = Signal(name="past")
            self.m.d.sync += later.eq(past)
            past = later
        return past

    def obeys(self, port: Any) -> None:
        """A stream of the block: what waits is neither withdrawn nor changed."""
        self.must(self._kept(port), after=1)

    def offered(self, port: Any) -> None:
        """A stream to the block, on which the solver keeps the same rules."""
        self.assume(self._kept(port), after=1)

    def _kept(self, port: Any) -> Any:
        payload = Value.cast(port.payload)
        waits = self.before(port.valid & ~port.ready, 1)
        return ~waits | (port.valid & (payload == self.before(payload, 1)))

    def rtlil(self) -> str:
        return rtlil.convert(self.m, name=TOP, ports=self._ports)
