# amaranth: UnusedElaboratable=no
"""The latencies of the profiles beside those of the blocks and of the cycle model."""

from __future__ import annotations

from lbq_hw import isa
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.lanes.spread_lanes import PairLanes, SpreadLanes, TapeLanes
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.timing import TAPE, TIMINGS, timing
from lbq_hw.cycles import stages


def test_a_core_has_the_latencies_of_its_profile_and_with_external_memory_those_of_a_tape() -> None:
    for profile in Profile:
        assert timing(CoreConfig(profile=profile)) == TIMINGS[profile]
    assert timing(CoreConfig().with_external()) == TAPE


def test_the_blocks_have_the_latencies_of_the_table() -> None:
    assert TIMINGS[Profile.SPREAD].plane_read == SpreadMemory.LATENCY
    sizes = {"lanes": 16, "rows": 8, "weight_bits": 4, "acc_bits": 12}
    ways = [kind(**sizes).way for kind in (LaneArray, SpreadLanes, TapeLanes, PairLanes)]
    read = [TIMINGS[Profile.STANDARD].weight_read, TIMINGS[Profile.SPREAD].weight_read]
    assert ways == [*(cycles + 1 for cycles in read), TAPE.weight_read + 1, TAPE.weight_read + 2]


def test_the_cycle_model_has_the_same_latencies() -> None:
    assert TIMINGS[Profile.SPREAD].plane_read == stages.FAR_CYCLES
    for profile in Profile:
        config = CoreConfig(profile=profile)
        assert stages.lane_way(config) == timing(config).weight_read + 1
    tape = CoreConfig().with_external()
    assert stages.lane_way(tape) == TAPE.weight_read + 1
    assert stages.lane_way(tape.with_(pairs=1)) == TAPE.weight_read + 2


def test_an_error_code_of_the_hardware_is_that_of_the_host() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        code.name: code.value for code in isa.Error
    }
