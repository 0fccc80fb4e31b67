from __future__ import annotations

import hashlib
import json
import re

import pytest

from lbq_hw.config import FAR_WEIGHT_BITS, CoreConfig, address_bits, largest


def test_a_config_survives_json() -> None:
    config = CoreConfig(lanes=64, word=64, units=8, plane_words=4800)
    assert CoreConfig.from_json(config.to_json()) == config


def test_fields_left_out_of_json_keep_their_defaults() -> None:
    assert CoreConfig.from_json('{"lanes": 8, "units": 1}') == CoreConfig(lanes=8, units=1)


def test_the_digest_is_that_of_the_sorted_json() -> None:
    config = CoreConfig(lanes=8)
    values = json.loads(config.to_json())
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert config.digest == hashlib.sha256(text.encode()).hexdigest()
    assert config.digest != CoreConfig(lanes=16).digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 2}, "lanes must be between 4 and 256, not 2"),
        ({"lanes": 12}, "lanes must be a power of two, not 12"),
        ({"lanes": 64}, "lanes must be at most word (32), not 64"),
        ({"summary": 64}, "summary must be at most word (32), not 64"),
        ({"units": 32}, "units must be at most lanes (16), not 32"),
        ({"planes": 6}, "planes must be between 1 and 5, not 6"),
        ({"plane_words": 100}, "plane_words must be a multiple of summary (16), not 100"),
        ({"channels": 24}, "channels must be a multiple of lanes (16), not 24"),
        ({"logits": 10}, "logits must be a multiple of lanes (16), not 10"),
        ({"fifo_depth": 2}, "fifo_depth must be between 3 and 4096, not 2"),
        ({"fast": 2}, "fast must be between 0 and 1, not 2"),
        ({"fast": 0, "external": 16, "lanes": 32}, "fast must be 1 with external memory, not 0"),
        (
            {"fast": 0, "partial_words": 64, "partial_bits": 8},
            "fast must be 1 with partial sums, not 0",
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
def test_a_value_out_of_range_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CoreConfig(**changes)


@pytest.mark.parametrize("value", [16.0, "16", True, None])
def test_a_value_that_is_no_integer_is_refused(value: object) -> None:
    message = f"lanes must be an integer, not {value!r}"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        CoreConfig.from_dict({"lanes": value})


def test_a_core_without_pairs_has_the_digest_that_it_had_before_there_were_any() -> None:
    core = CoreConfig(lanes=32, external=16)
    assert "pairs" not in core.to_json()
    assert '"pairs":1' in core.with_(pairs=1).to_json()
    assert CoreConfig.from_json(core.with_(pairs=1).to_json()).pairs == 1
    assert core.digest == "22541f279bc0e86a8d8a8de4245d6e552118ae0221d48aa54fbc6994d671ed3e"


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


def test_weights_fill_a_chip_beyond_a_mbit_unless_they_are_on_a_tape() -> None:
    most = CoreConfig(lanes=16, word=16, weight_bits=8, weight_rows=FAR_WEIGHT_BITS // 128)
    more = most.with_(weight_rows=most.weight_rows + 1)
    tape = more.with_(external=16)
    assert [core.far_weights for core in (most, more, tape)] == [False, True, False]
    assert [core.far for core in (most, more, tape)] == [False, True, True]
