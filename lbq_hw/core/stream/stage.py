"""Stages of a pipeline inside a block."""

from amaranth import Module, Signal

__all__ = ["Stage"]


class Stage:
    """A pipeline stage: ``valid`` and a payload, and ``free`` while its item can move on.

    Parameters
    ----------
    name : str
        Prefix of the signals' names.
    layout : shape of the payload
    """

    def __init__(self, name: str, layout):
        self.valid = Signal(name=f"{name}_valid")
        self.payload = Signal(layout, name=name)
        self.free = Signal(name=f"{name}_free")

    def later(self, m: Module, name: str) -> "Stage":
        """The next stage, behind a register."""
        following = Stage(name, self.payload.shape())
        m.d.comb += self.free.eq(~following.valid | following.free)
        with m.If(self.free):
            m.d.sync += [following.valid.eq(self.valid), following.payload.eq(self.payload)]
        return following

    def without_waiting(self, m: Module, cycles: int) -> "list[Stage]":
        """The next stages, each behind a register and always free: items advance in every cycle."""
        places, moves, payload = [], self.valid & self.free, self.payload
        for cycle in range(cycles):
            place = Stage(f"on_its_way_{cycle}", payload.shape())
            m.d.sync += [place.valid.eq(moves), place.payload.eq(payload)]
            moves, payload = place.valid, place.payload
            places.append(place)
        return places
