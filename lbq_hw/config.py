"""The configuration of a core: lanes, widths, memory sizes, and values derived from them.

A bitstream depends only on its `CoreConfig`, never on a network. `lbq_hw.compiler` proves that a
network fits a core, and finds the smallest core for a network.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lbq_hw import decode, numeric

_RANGES = {
    "lanes": (4, 256),
    "word": (8, 256),
    "summary": (1, 256),
    "units": (1, 256),
    "weight_bits": (2, numeric.MAX_WEIGHT_BITS),
    "acc_bits": (4, 32),
    "membrane_bits": (4, 48),
    "planes": (1, numeric.plane_count(numeric.MAX_CAPACITY)),
    "decay_bits": (0, 16),
    "fraction_bits": (0, 16),
    "timesteps": (1, 1024),
    "side": (1, 1024),
    "window": (1, 1024),
    "row_words": (1, 1 << 16),
    "plane_words": (1, 1 << 21),
    "weight_rows": (1, 1 << 21),
    "channels": (1, 1 << 20),
    "logits": (1, 1 << 20),
    "layers": (1, 1 << 12),
    "paths": (1, 1 << 14),
    "segments": (1, 1 << 16),
    "runs": (1, 1 << 16),
    "layer_paths": (1, 1 << 10),
    "exponents": (0, 31),
    "identities": (0, 1),
    "resets": (0, 1),
    "zero_resets": (0, 1),
    "floors": (0, 1),
    "external": (0, 32),
    "pairs": (0, 1),
    "narrow": (0, (1 << numeric.MAX_WEIGHT_BITS) - 1),
    "partial_words": (0, 1 << 16),
    "partial_bits": (0, 32),
    "fifo_depth": (3, 1 << 12),
    "counters": (1, 7),
    "counter_bits": (8, 40),
}
_LATER = ("floors", "narrow")
_FORMER = {"stacks": 0}
_POWERS = ("lanes", "word", "summary", "units")
LEAST_PAIR_LANES = 16
"""Fewest lanes of a core with pairs: half of a word must be whole bytes."""
MOST_NARROW = 3
"""Largest number of further widths that the weight rows of a core's tape may have."""
SPREAD_WEIGHT_BITS = 1 << 20
"""A core with more bits of on-chip weights than this is spread: the memory of an iCE40 UltraPlus.
"""


class Profile(enum.StrEnum):
    """How deeply a core is pipelined.

    `core.timing` has the latencies of each profile. All profiles compute the same results.
    """

    COMPACT = "compact"
    """Fewest registers in the neuron units: for a clock of 33 MHz on an iCE40 UP5K."""
    STANDARD = "standard"
    """A register in front of each addition."""
    SPREAD = "spread"
    """Also registers on the paths to memories that fill a good part of the chip."""


def address_bits(size: int) -> int:
    """Bits that number `size` things from 0: at least 1."""
    return max(1, (size - 1).bit_length())


def granule_bits(lanes: int) -> int:
    """G: bits of a plane word that a core with these lanes writes together."""
    return min(8, lanes)


def narrow_mask(widths: Iterable[int]) -> int:
    """The field `narrow` of a core whose tape may have rows of these widths."""
    return sum(1 << bits for bits in widths)


def largest(field: str) -> int:
    """The largest value of a field in any core."""
    return _RANGES[field][1]


@dataclass(frozen=True, kw_only=True)
class CoreConfig:
    """The parameters of a core.

    Shape: `lanes` P, the number of parallel accumulators; `word` W, bits of a plane word; `summary`
    S, non-zero flags in a summary word; `units` L, neuron units; `fifo_depth`, events between
    scanner and lanes; `profile`, see `Profile`. The first four are powers of two; P <= W, S <= W,
    L <= P.

    Numbers: `weight_bits`, `acc_bits`, `membrane_bits`, all signed; `planes`, bit planes of the
    largest level; `decay_bits` B, since every decay is m / 2**B; `fraction_bits`, the largest F;
    `timesteps`, the largest T; `side`, the largest number of rows or columns of a layer before or
    after its max-pool, or of a kernel; `window`, the same for a max-pool (1: the core has no
    max-pools); `row_words`, the longest row of a tensor.

    Memories: `plane_words` of activations (a multiple of S); `weight_rows` of P weights;
    `channels` with a bias, threshold and reset, and `logits` (both multiples of P, because every
    tile is padded to P channels); table entries for `layers`, `paths`, `segments`, `runs`;
    `layer_paths`, the largest number of paths of one layer.

    Abilities, left out if no network needs them: `exponents`, the largest exponent of a segment;
    `identities`, 1 if paths may be identities; `resets`, 1 if each channel has a reset value,
    otherwise its threshold is the reset; `zero_resets`, 1 if the neurons of a layer may reset to
    zero; `floors`, 1 if membranes may have a floor.

    External memory: `external`, bits of its words, 16 or 32 (0: none). A core with external memory
    is spread, with W = P and `partial_words` (a multiple of P / L) of L partial sums of
    `partial_bits`; other cores have no partial sums. `pairs`, 1 if lanes add two weight rows per
    cycle, of an even and of an odd channel. `narrow`: bit b is 1 if the tape may have weight rows
    of b bits, fewer than `weight_bits`; at most three widths.

    Counters: `counters`, the number of counters that the core has, in the order of their registers
    (1: only cycles); `counter_bits`, the width at which each wraps around.
    """

    lanes: int = 16
    word: int = 32
    summary: int = 16
    units: int = 4
    weight_bits: int = 8
    acc_bits: int = 24
    membrane_bits: int = 32
    planes: int = 3
    decay_bits: int = 8
    fraction_bits: int = 15
    timesteps: int = 16
    side: int = 64
    window: int = 64
    row_words: int = 64
    plane_words: int = 4096
    weight_rows: int = 4096
    channels: int = 512
    logits: int = 64
    layers: int = 32
    paths: int = 64
    segments: int = 256
    runs: int = 256
    layer_paths: int = 16
    exponents: int = 31
    identities: int = 1
    resets: int = 1
    zero_resets: int = 0
    floors: int = 0
    external: int = 0
    pairs: int = 0
    narrow: int = 0
    partial_words: int = 0
    partial_bits: int = 0
    fifo_depth: int = 16
    profile: Profile = Profile.STANDARD
    counters: int = 7
    counter_bits: int = 40

    def __post_init__(self) -> None:
        if self.profile not in tuple(Profile):
            raise ValueError(f"profile must be one of {', '.join(Profile)}, not {self.profile!r}")
        object.__setattr__(self, "profile", Profile(self.profile))
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if type(value) is not int:
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")
        for name in _POWERS:
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        for small, large in (("lanes", "word"), ("summary", "word"), ("units", "lanes")):
            if getattr(self, small) > getattr(self, large):
                raise ValueError(
                    f"{small} must be at most {large} ({getattr(self, large)}), "
                    f"not {getattr(self, small)!r}"
                )
        self._check_external()
        for name, unit in (("plane_words", "summary"), ("channels", "lanes"), ("logits", "lanes")):
            if getattr(self, name) % getattr(self, unit):
                raise ValueError(
                    f"{name} must be a multiple of {unit} ({getattr(self, unit)}), "
                    f"not {getattr(self, name)!r}"
                )

    def _check_external(self) -> None:
        if self.external not in (0, 16, 32):
            raise ValueError(f"external must be 0, 16 or 32, not {self.external!r}")
        if self.external and self.word != self.lanes:
            raise ValueError(
                f"word must be lanes ({self.lanes}) with external memory, not {self.word!r}"
            )
        if self.pairs and not self.external:
            raise ValueError(f"pairs must be 0 without external memory, not {self.pairs!r}")
        if self.pairs and self.lanes < LEAST_PAIR_LANES:
            raise ValueError(
                f"lanes must be at least {LEAST_PAIR_LANES} with pairs, not {self.lanes!r}"
            )
        if self.pairs and self.weight_rows % 2:
            raise ValueError(f"weight_rows must be even with pairs, not {self.weight_rows!r}")
        if self.narrow and not self.external:
            raise ValueError(f"narrow must be 0 without external memory, not {self.narrow!r}")
        if narrow_mask(self.narrow_bits) != self.narrow or len(self.narrow_bits) > MOST_NARROW:
            raise ValueError(
                f"narrow must have at most {MOST_NARROW} bits set, from bit 2 to the bit before "
                f"weight_bits ({self.weight_bits}), not {self.narrow!r}"
            )
        if self.external and self.layers & (self.layers - 1):
            raise ValueError(
                f"layers must be a power of two with external memory, not {self.layers!r}"
            )
        if self.partial_words % self.groups:
            raise ValueError(
                f"partial_words must be a multiple of lanes / units ({self.groups}), "
                f"not {self.partial_words!r}"
            )
        for name in ("partial_words", "partial_bits"):
            if bool(getattr(self, name)) != bool(self.external):
                raise ValueError(
                    f"{name} must be 0 without external memory, and only then, "
                    f"not {getattr(self, name)!r}"
                )
        if self.external and self.profile is not Profile.SPREAD:
            raise ValueError(f"profile must be spread with external memory, not {self.profile}")

    @property
    def granule(self) -> int:
        """G: bits of a plane word that are written together."""
        return granule_bits(self.lanes)

    @property
    def groups(self) -> int:
        """Groups of L channels in a tile of P."""
        return self.lanes // self.units

    @property
    def adders(self) -> int:
        """Weights that can be added in one cycle: one in each lane, or two with pairs."""
        return self.lanes * (1 + self.pairs)

    @property
    def narrow_bits(self) -> tuple[int, ...]:
        """The narrow widths of weight rows on the tape, the widest first."""
        return tuple(bits for bits in range(self.weight_bits - 1, 1, -1) if self.narrow >> bits & 1)

    def row_bits(self, bits: int) -> int:
        """Weight bits of a row on the tape for weights of `bits`: the narrowest that suffices."""
        return min((have for have in self.narrow_bits if have >= bits), default=self.weight_bits)

    @property
    def capacity(self) -> int:
        """Largest level that the output planes hold."""
        return (1 << self.planes) - 1

    @property
    def lane_log2(self) -> int:
        return self.lanes.bit_length() - 1

    @property
    def word_log2(self) -> int:
        return self.word.bit_length() - 1

    @property
    def summary_log2(self) -> int:
        return self.summary.bit_length() - 1

    @property
    def plane_address_bits(self) -> int:
        return address_bits(self.plane_words)

    @property
    def summary_words(self) -> int:
        return self.plane_words // self.summary

    @property
    def summary_address_bits(self) -> int:
        return address_bits(self.summary_words)

    @property
    def weight_address_bits(self) -> int:
        """Bits of a weight row's number; sums of rows wrap around at their power of two."""
        return address_bits(self.weight_rows)

    @property
    def spread(self) -> bool:
        """Whether memories fill a good part of the chip, so that there are registers on the paths
        to them.
        """
        return self.profile is Profile.SPREAD

    @property
    def param_tiles(self) -> int:
        return self.channels // self.lanes

    @property
    def exponent_bits(self) -> int:
        return max(1, self.exponents.bit_length())

    @property
    def row_offset_bits(self) -> int:
        """Signed bits of a row's first word, counted from its plane: room for rows of padding."""
        return self.plane_address_bits + 3

    @property
    def column_bits(self) -> int:
        """Signed bits of a bit's place in its row: room for columns of padding."""
        return address_bits(self.row_words * self.word) + 3

    @property
    def coordinate_bits(self) -> int:
        """Signed bits of a pixel's row or column in a layer, padding of a max-pool included."""
        return address_bits(self.side) + 2

    def to_dict(self) -> dict[str, Any]:
        """The fields, as `from_dict` takes them. One of `_LATER` is left out where it is 0, so that
        cores that were built before there was such a field keep their digests.
        """
        return {name: value for name, value in asdict(self).items() if value or name not in _LATER}

    def to_json(self) -> str:
        """Canonical: equal configs give equal text."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> CoreConfig:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"a core config must be JSON: {error}") from None
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CoreConfig:
        """Missing fields have their defaults. Unknown fields are refused, and so is a core with an
        ability that no longer exists.
        """
        known = [field.name for field in fields(cls)]
        decode.check_keys(values, "a core config", [*known, *_FORMER], optional=[*known, *_FORMER])
        for name, value in _FORMER.items():
            if values.get(name, value) != value:
                raise ValueError(f"cores no longer have {name}: build the core again")
        return cls(**{name: value for name, value in values.items() if name not in _FORMER})

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: names the build. Fields of `_FORMER` are in it, so that
        cores that were built when there were such fields keep their digests.
        """
        text = json.dumps(self.to_dict() | _FORMER, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def with_(self, **changes: Any) -> CoreConfig:
        """The same config with `changes`, checked again."""
        return replace(self, **changes)

    def with_external(self, bits: int = 16, **changes: Any) -> CoreConfig:
        """The same config with external memory of words of `bits`, and with what that implies; the
        fewest partial sums, unless they are among the `changes`.
        """
        lanes, units = (changes.get(name, getattr(self, name)) for name in ("lanes", "units"))
        implied = {
            "word": lanes,
            "profile": Profile.SPREAD,
            "partial_words": lanes // units,
            "partial_bits": 1,
        }
        return self.with_(external=bits, **(implied | changes))
