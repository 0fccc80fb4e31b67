"""The loops of the walker, on a core of the smallest kind."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Cat, Mux, Signal, Value

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk import records
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_CONFIG = CoreConfig(
    lanes=4, word=8, summary=2, units=1, planes=1, timesteps=2, side=2, window=2, row_words=2,
    plane_words=8, weight_rows=16, channels=8, logits=4, layers=1, paths=1, segments=1, runs=1,
    layer_paths=1, exponents=1, identities=0,
)  # fmt: skip
_SETTLES = 3  # cycles from a `go` to the next, at least
_LOOPS = ("row", "column", "tile", "wy", "wx", "t")  # the outermost first


def _visited(code: ModuleType) -> Contract:
    """Positions come in the order of the loops, and none that has a step is left out.

    The solver chooses one position besides: it never lies between two that follow each other, nor
    behind the last, if it has a step.
    """
    c = Contract()
    block = c.add(code.Loops(_CONFIG))
    layer, advance = block.layer, code.Advance
    c.assume(c.before(Value.cast(layer), 1) == Value.cast(layer), after=1)
    c.assume(~records.illegal(isa.LAYER, _CONFIG, layer))
    begun, age = Signal(), Signal(range(_SETTLES + 1))
    moves, settled = block.start | block.go, begun & (age == _SETTLES)
    c.assume(block.start == ~begun)
    c.assume(~block.go | (settled & (block.following != advance.END)))
    c.m.d.sync += [begun.eq(1), age.eq(Mux(moves, 1, Mux(settled, age, age + 1)))]

    at = {name: Signal(2, name=f"at_{name}") for name in _LOOPS}
    after = {name: Signal(2, name=f"after_{name}") for name in _LOOPS}
    for kind, goes_on in (
        (advance.TIMESTEP, "t"), (advance.WINDOW_COLUMN, "wx"), (advance.WINDOW_ROW, "wy"),
        (advance.TILE, "tile"), (advance.COLUMN, "column"), (advance.ROW, "row"),
    ):  # fmt: skip
        outer = _LOOPS[: _LOOPS.index(goes_on)]
        with c.m.If(block.following == kind):
            c.m.d.comb += [after[name].eq(at[name]) for name in outer]
            c.m.d.comb += after[goes_on].eq(at[goes_on] + 1)
    with c.m.If(block.go):
        c.m.d.sync += [at[name].eq(after[name]) for name in _LOOPS]
    other = {name: c.fixed(2, f"other_{name}") for name in _LOOPS}
    y, x = _pixel(layer, at)
    c.assume((y - at["wy"] <= layer.conv_rows_last) & (y - at["wy"] + layer.window_rows_last >= 0))
    c.assume(
        (x - at["wx"] <= layer.conv_columns_last) & (x - at["wx"] + layer.window_columns_last >= 0)
    )

    here, last = _has_step(layer, at), block.following == advance.END
    between = (_order(at) < _order(other)) & (last | (_order(other) < _order(after)))
    c.must(~settled | (block.step_exists == here))
    c.must(~settled | ~(between & _has_step(layer, other)))
    c.must(~settled | last | (_order(at) < _order(after)))
    c.must(~settled | _in_loops(layer, at))
    c.must(~settled | (block.state.tile == at["tile"]))
    c.must(~(settled & here) | (block.state.first_t == (at["t"] == 0)))
    c.must(
        ~(settled & here) | (block.state.last_t == ((at["t"] == layer.time_last) | layer.static))
    )
    first = ((at["wy"] == 0) | (y == 0)) & ((at["wx"] == 0) | (x == 0))
    c.must(~(settled & here) | (block.state.pool_first == first))
    return c


def _order(position: dict[str, Any]) -> Any:
    """A number that is larger for a later position."""
    return Cat(position[name] for name in reversed(_LOOPS))


def _pixel(layer: Any, position: dict[str, Any]) -> tuple[Any, Any]:
    """Row and column before max-pooling."""
    y = layer.window_row_init + position["row"] * layer.window_row_step + position["wy"]
    x = layer.window_column_init + position["column"] * layer.window_column_step + position["wx"]
    return y, x


def _in_loops(layer: Any, position: dict[str, Any]) -> Any:
    """No loop counts too far."""
    lasts = (
        layer.rows_last, layer.columns_last, layer.tiles_last, layer.window_rows_last,
        layer.window_columns_last, Mux(layer.static, 0, layer.time_last),
    )  # fmt: skip
    inside: Any = Cat(position[name] <= last for name, last in zip(_LOOPS, lasts, strict=True))
    return inside.all()


def _has_step(layer: Any, position: dict[str, Any]) -> Any:
    y, x = _pixel(layer, position)
    inside = (y >= 0) & (y <= layer.conv_rows_last) & (x >= 0) & (x <= layer.conv_columns_last)
    return _in_loops(layer, position) & inside


PROOFS = (
    Proof(
        name="loops",
        says="Loops of a layer, up to 2 rounds each: every step in order, 4 positions",
        module="lbq_hw.core.walk.loops",
        contract=_visited,
        bug=Bug(old="(at.wy == 0) | (at.y == 0)", new="at.wy == 0"),
        cycles=14,
    ),
)
