"""The configuration of a streaming core: lanes, widths, memory sizes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lbq_hw import decode, numeric
from lbq_hw.config import address_bits

_RANGES = {
    "lanes": (4, 256),
    "units": (1, 256),
    "weight_bits": (2, numeric.MAX_WEIGHT_BITS),
    "acc_bits": (4, 40),
    "membrane_bits": (4, 48),
    "planes": (1, 8),
    "input_planes": (1, 8),
    "input_channels": (1, 12),
    "shifts": (0, 31),
    "decay_bits": (0, 16),
    "fraction_low": (0, 16),
    "fraction_high": (0, 16),
    "side": (1, 255),
    "columns": (1, 255),
    "window": (1, 255),
    "padding": (0, 255),
    "reach": (1, 255),
    "column_steps": (1, (1 << 64) - 1),
    "level_words": (2, 1 << 16),
    "weight_rows": (2, 1 << 16),
    "membrane_words": (2, 1 << 16),
    "positions": (0, 1 << 16),
    "param_words": (2, 1 << 16),
    "map_rows": (2, 1 << 12),
    "taps": (2, 1 << 14),
    "record_words": (2, 1 << 12),
    "layer_paths": (1, 64),
    "tiles": (1, 256),
    "identities": (0, 1),
    "resets": (0, 1),
    "zero_resets": (0, 1),
    "floors": (0, 1),
}


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """The parameters of a streaming core.

    Shape: `lanes` P, a power of two, is the number of parallel accumulators and of bits in a level
    word; `units` L, a divisor of P, is the number of neurons updated in parallel.

    Numbers: `weight_bits`, `acc_bits`, `membrane_bits`, all signed; `planes`, bit planes of the
    largest level that neurons emit, `input_planes` of the input; `input_channels`; `shifts`, the
    largest shift of a weight, the sum of a plane number and an exponent; `decay_bits` B of every
    leak m / 2**B; `fraction_low` and `fraction_high`, the smallest and the largest F.

    Geometry: `side`, the largest number of rows, columns, steps or taps of a window along one axis;
    `columns` of the widest tensor; `window`, columns of the widest window; `padding`, the largest
    number of columns by which a window begins left of its source; `reach`, columns of a source at
    which the windows of one row begin; `column_steps`, a bit for each step between windows; `tiles`
    of P channels of a layer; `layer_paths`, the largest number of paths of one layer.

    Memories: `level_words` of P bits; `weight_rows` of P weights; `membrane_words` and
    `param_words` of L channels; `positions` with a stamp, which only layers that leak and rest need
    (0: no layer leaks); `map_rows`, one bit per pixel; `taps`; `record_words` of 32 bits.

    Abilities: `identities`, `resets`, `zero_resets` and `floors`, as those of a `CoreConfig`.
    """

    lanes: int
    units: int
    weight_bits: int
    acc_bits: int
    membrane_bits: int
    planes: int
    input_planes: int
    input_channels: int
    shifts: int
    decay_bits: int
    fraction_low: int
    fraction_high: int
    side: int
    columns: int
    window: int
    padding: int
    reach: int
    column_steps: int
    tiles: int
    layer_paths: int
    level_words: int
    weight_rows: int
    membrane_words: int
    param_words: int
    positions: int
    map_rows: int
    taps: int
    record_words: int
    identities: int
    resets: int
    zero_resets: int
    floors: int

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if type(value) is not int:
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")
        if self.lanes & (self.lanes - 1):
            raise ValueError(f"lanes must be a power of two, not {self.lanes!r}")
        if self.lanes % self.units:
            raise ValueError(f"units must divide lanes ({self.lanes}), not {self.units!r}")
        if self.fraction_low > self.fraction_high:
            raise ValueError(
                f"fraction_low must be at most fraction_high ({self.fraction_high}), "
                f"not {self.fraction_low!r}"
            )

    def joined(self, other: StreamConfig) -> StreamConfig:
        """A core that can execute the programs of either, with the lanes and units of the first."""
        own, theirs = asdict(self), asdict(other)
        values = {name: max(value, theirs[name]) for name, value in own.items()}
        values |= {name: own[name] for name in ("lanes", "units")}
        values["fraction_low"] = min(self.fraction_low, other.fraction_low)
        values["column_steps"] = self.column_steps | other.column_steps
        return StreamConfig(**values)

    @property
    def groups(self) -> int:
        """Groups of L channels in a tile of P."""
        return self.lanes // self.units

    @property
    def leaks(self) -> bool:
        """Whether membranes of any layer leak."""
        return self.positions > 0

    @property
    def most_planes(self) -> int:
        """The largest number of planes of any tensor."""
        return max(self.planes, self.input_planes)

    @property
    def side_bits(self) -> int:
        """Bits of a row, a column, a step or a size of a window."""
        return self.side.bit_length()

    @property
    def patrol_bits(self) -> int:
        """Bits of a row or a column of the patrol, see `machine`."""
        return address_bits(self.side)

    @property
    def stamp_bits(self) -> int:
        """Bits of a stamp, enough because the patrol visits a position before its age overflows."""
        return 2 * self.patrol_bits + 1

    def to_json(self) -> str:
        """Canonical: equal configs give equal text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StreamConfig:
        known = [field.name for field in fields(cls)]
        decode.check_keys(values, "a streaming core's config", known)
        return cls(**values)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: names the build."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()
