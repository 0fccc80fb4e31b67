"""Contracts of blocks, as circuits for a solver: assumptions about inputs, and assertions.

A `Contract` is a design around a block. The solver chooses all inputs that the design does not
drive, in every cycle. The contracts that blocks check themselves (`lbq_hw.core.fabric.contracts`)
must hold, too.
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
    """A fault to plant in a module: the text `old`, which occurs once, is replaced by `new`."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A contract of a block, and a fault in the block that breaks the contract.

    Members
    -------
    name : str
    says : str
        The proven statement, as text.
    module : str
        The module of the block.
    contract : function
        Makes the `Contract` from the module's classes and functions.
    bug : `Bug`
        A fault in that module.
    cycles : int
        Number of cycles after a reset that the solver examines.
    always : bool
        The contract holds in all later cycles, too, by induction: from any state, if it has held
        for this many cycles, it holds in the next.
    fast : bool
        The proof takes seconds, so CI runs it.
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
        """The cycles that the proof covers; all cycles also for a circuit without registers."""
        return "all" if self.always or self.cycles == 1 else str(self.cycles)

    def rtlil(self, *, planted: bool) -> str:
        """The contract for Yosys, with the block as it is or with the fault."""
        return self.contract(load(self.module, self.bug if planted else None)).rtlil()


def load(name: str, bug: Bug | None = None) -> ModuleType:
    """A private copy of a module, with a fault planted in it."""
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
        The module to which a contract adds its logic.
    """

    def __init__(self) -> None:
        self.m: Any = Module()  # Amaranth has no types
        self.m.domains.sync = sync = ClockDomain(reset_less=True)
        self._ports: list[Signal] = [sync.clk]

    def add(self, block: Any, name: str = "block") -> Any:
        """Put a block into the design; the solver chooses the inputs that nothing drives."""
        self.m.submodules[name] = block
        members = block.signature.flatten(block)
        inputs = {id(Value.cast(value)) for _, member, value in members if member.flow is In}
        self._ports += [port for port in ports(block) if id(port) in inputs]
        return block

    def any(self, shape: Any, name: str) -> Any:
        """A value that the solver chooses in every cycle."""
        value = Signal(shape, name=name)
        self._ports.append(Value.cast(value))
        return value

    def fixed(self, shape: Any, name: str) -> Any:
        """A value that the solver chooses once, for all cycles."""
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
        """Assert that this holds in every cycle, except in the first `after` cycles."""
        self.m.d.comb += Assert(holds | ~self._past(after))

    def assume(self, holds: Any, *, after: int = 0) -> None:
        """Assume that this holds: the solver considers no other inputs."""
        self.m.d.comb += Assume(holds | ~self._past(after))

    def _past(self, cycles: int) -> Any:
        """Whether this many cycles have passed."""
        past: Any = Value.cast(1)
        for _ in range(cycles):
            later = Signal(name="past")
            self.m.d.sync += later.eq(past)
            past = later
        return past

    def obeys(self, port: Any) -> None:
        """Assert the rules of a stream from the block: a waiting payload stays valid and stable."""
        self.must(self._kept(port), after=1)

    def offered(self, port: Any) -> None:
        """Assume the same rules for a stream to the block."""
        self.assume(self._kept(port), after=1)

    def _kept(self, port: Any) -> Any:
        payload = Value.cast(port.payload)
        waits = self.before(port.valid & ~port.ready, 1)
        return ~waits | (port.valid & (payload == self.before(payload, 1)))

    def rtlil(self) -> str:
        return rtlil.convert(self.m, name=TOP, ports=self._ports)
