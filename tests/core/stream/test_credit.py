# amaranth: UnusedElaboratable=no
"""Credit against a count in Python."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench

from lbq_hw.core.stream.credit import Credit


@pytest.mark.parametrize("room", [1, 3, 17])
@pytest.mark.parametrize("returns", [1, 2])
def test_there_is_room_while_less_is_owed_than_there_is(room: int, returns: int) -> None:
    source = random.Random(room)
    script, expected, owed = [], [], 0
    for _ in range(300):
        expected.append(int(owed < room))
        back = [int(owed > i and source.random() < 0.5 / returns) for i in range(returns)]
        sent = int(owed < room and source.random() < 0.6)
        script.append({"sent": sent, "returned": sum(bit << i for i, bit in enumerate(back))})
        owed += sent - sum(back)
    assert 0 in expected
    block = Credit(room=room, returns=returns)
    bench = Bench(block)
    bench.script({"sent": block.sent, "returned": block.returned}, script)
    seen = bench.probe(available=block.available)
    bench.run()
    assert seen["available"][: len(expected)] == expected


def test_a_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^room must be at least 1, not 0$"):
        Credit(room=0)
