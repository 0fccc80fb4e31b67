from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from lbq_hw.config import CoreConfig, Profile, address_bits, largest, narrow_mask


def test_a_config_survives_json() -> None:
    config = CoreConfig(lanes=64, word=64, units=8, plane_words=4800)
    assert CoreConfig.from_json(config.to_json()) == config


def test_fields_left_out_of_json_keep_their_defaults() -> None:
    assert CoreConfig.from_json('{"lanes": 8, "units": 1}') == CoreConfig(lanes=8, units=1)


def test_the_digest_is_that_of_the_sorted_json_with_what_cores_once_had() -> None:
    config = CoreConfig(lanes=8)
    values = json.loads(config.to_json()) | {"stacks": 0}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert config.digest == hashlib.sha256(text.encode()).hexdigest()
    assert config.digest != CoreConfig(lanes=16).digest


def test_a_core_keeps_the_digest_that_it_had_before_a_field_was_there() -> None:
    """As registers of bitstreams say it, and packages."""
    assert CoreConfig().digest.startswith("eb5419b463919512")
    assert "floors" not in CoreConfig().to_dict()
    assert CoreConfig(floors=1).to_dict()["floors"] == 1
    assert CoreConfig.from_json(CoreConfig(floors=1).to_json()) == CoreConfig(floors=1)
    assert "narrow" not in CoreConfig().with_external().to_dict()


def test_rows_of_the_tape_have_the_fewest_bits_that_do() -> None:
    config = CoreConfig(weight_bits=8).with_external(narrow=narrow_mask((6, 3, 2)))
    assert config.narrow_bits == (6, 3, 2)
    assert [config.row_bits(bits) for bits in (2, 3, 4, 6, 7, 8)] == [2, 3, 6, 6, 8, 8]
    assert CoreConfig.from_json(config.to_json()) == config


def test_a_core_of_before_is_read_unless_it_has_what_cores_no_longer_have() -> None:
    config = CoreConfig(lanes=8)
    assert CoreConfig.from_dict(config.to_dict() | {"stacks": 0}) == config
    with pytest.raises(ValueError, match=r"^cores no longer have stacks: build the core again$"):
        CoreConfig.from_dict(config.to_dict() | {"stacks": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 2}, "lanes must be between 4 and 256, not 2"),
        ({"narrow": 4}, "narrow must be 0 without external memory, not 4"),
        *(
            (
                CoreConfig().with_external(weight_bits=6).to_dict() | {"narrow": narrow},
                "narrow must have at most 3 bits set, from bit 2 to the bit before weight_bits "
                f"(6), not {narrow}",
            )
            for narrow in (1, 2, 64, 60)
        ),
        ({"lanes": 12}, "lanes must be a power of two, not 12"),
        ({"lanes": 64}, "lanes must be at most word (32), not 64"),
        ({"summary": 64}, "summary must be at most word (32), not 64"),
        ({"units": 32}, "units must be at most lanes (16), not 32"),
        ({"planes": 6}, "planes must be between 1 and 5, not 6"),
        ({"plane_words": 100}, "plane_words must be a multiple of summary (16), not 100"),
        ({"channels": 24}, "channels must be a multiple of lanes (16), not 24"),
        ({"logits": 10}, "logits must be a multiple of lanes (16), not 10"),
        ({"fifo_depth": 2}, "fifo_depth must be between 3 and 4096, not 2"),
        ({"profile": "slow"}, "profile must be one of compact, standard, spread, not 'slow'"),
        (
            {"external": 16, "lanes": 32, "partial_words": 64, "partial_bits": 8},
            "profile must be spread with external memory, not standard",
        ),
        (
            {"external": 16, "lanes": 32, "profile": "spread"},
            "partial_words must be 0 without external memory, and only then, not 0",
        ),
        (
            {"partial_words": 64, "partial_bits": 8},
            "partial_words must be 0 without external memory, and only then, not 64",
        ),
        ({"pairs": 1}, "pairs must be 0 without external memory, not 1"),
        (
            {"pairs": 1, "external": 16, "lanes": 8, "word": 8, "summary": 8},
            "lanes must be at least 16 with pairs, not 8",
        ),
        (
            {"pairs": 1, "external": 16, "lanes": 32, "weight_rows": 511},
            "weight_rows must be even with pairs, not 511",
        ),
    ],
)
def test_a_value_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CoreConfig(**changes)


@pytest.mark.parametrize("value", [16.0, "16", True, None])
def test_a_value_that_is_no_integer_is_refused(value: object) -> None:
    message = f"lanes must be an integer, not {value!r}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        CoreConfig.from_dict({"lanes": value})


def test_a_core_with_external_memory_is_all_that_this_implies() -> None:
    core = CoreConfig().with_external(32, lanes=32, pairs=1)
    assert (core.external, core.word, core.profile) == (32, 32, Profile.SPREAD)
    assert (core.partial_words, core.partial_bits) == (core.groups, 1)
    assert CoreConfig.from_json(core.to_json()) == core


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^a core config has the unknown key 'lane' \(nearest: 'lanes'\)$"
    ):
        CoreConfig.from_json('{"lane": 8}')


def test_text_that_is_no_object_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a core config must be an object, not \[\]$"):
        CoreConfig.from_json("[]")
    with pytest.raises(ValueError, match=r"^a core config must be JSON: "):
        CoreConfig.from_json("lanes = 8")


def test_a_change_is_checked_again() -> None:
    assert CoreConfig().with_(lanes=32).lanes == 32
    with pytest.raises(ValueError, match=r"^lanes must be a power of two, not 17$"):
        CoreConfig().with_(lanes=17)


def test_derived_sizes() -> None:
    config = CoreConfig(
        lanes=64, word=64, summary=32, units=8, planes=5, plane_words=36864, weight_rows=4097
    )
    assert config.granule == 8
    assert CoreConfig(lanes=4).granule == 4
    assert config.groups == 8
    assert config.capacity == 31
    assert (config.lane_log2, config.word_log2, config.summary_log2) == (6, 6, 5)
    assert config.plane_address_bits == 16
    assert (config.summary_words, config.summary_address_bits) == (1152, 11)
    assert config.weight_address_bits == 13
    assert config.param_tiles == 8


def test_address_bits_number_every_entry() -> None:
    assert [address_bits(size) for size in (1, 2, 3, 4, 5, 256, 257)] == [1, 1, 2, 2, 3, 8, 9]


def test_the_largest_core_has_256_lanes() -> None:
    assert largest("lanes") == 256
