# amaranth: UnusedElaboratable=no
"""Parameters against a list of words: values written under their enables, read a cycle later."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench

from lbq_hw.core.neurons.parameters import CompactParameters, Parameters, SpreadParameters

BITS, DEPTH = 9, 6


def random_word(source: random.Random, units: int) -> list[int]:
    return [source.randrange(-(1 << BITS - 1), 1 << BITS - 1) for _ in range(3 * units)]


def packed(word: list[int]) -> int:
    return sum((value & (1 << BITS) - 1) << BITS * i for i, value in enumerate(word))


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("kind", [Parameters, CompactParameters, SpreadParameters])
@pytest.mark.parametrize("units", [1, 2, 4, 6])
def test_values_are_written_by_their_enables_and_read_in_the_next_cycle_or_the_next_but_one(
    units: int, kind: type[Parameters], resets: bool
) -> None:
    source, far = random.Random(units), int(kind is SpreadParameters)
    words = [random_word(source, units) for _ in range(4)]  # the others are 0
    sizes = {"units": units, "membrane_bits": BITS, "depth": DEPTH}
    block = kind(**sizes, dropped=() if resets else ("reset",), init=words)
    words += [[0] * 3 * units for _ in range(DEPTH - len(words))]
    kept = (1, 2) if resets else (1,)
    script: list[dict] = []
    expected: list[tuple[int | None, int | None]] = [(None, None)] * (1 + far)
    shown: list[int | None] = [None, None]
    for _ in range(300):
        addr = source.randrange(DEPTH)
        word, enable = random_word(source, units), source.getrandbits(3 * units)
        step = {"addr": addr, "en": enable, "data": packed(word)}
        for port, name in enumerate(("bias", "thresholds")):
            at = source.choice([i for i in range(DEPTH) if i != addr])
            if source.random() < 0.7 or far:
                step |= {f"{name}_en": 1, f"{name}_addr": at}
                part = words[at][0::3] if name == "bias" else [
                    value for i, value in enumerate(words[at]) if i % 3 in kept
                ]  # fmt: skip
                shown[port] = packed(part)
        pairs = enumerate(zip(word, words[addr], strict=True))
        words[addr] = [new if enable >> i & 1 else old for i, (new, old) in pairs]
        script.append(step)
        expected.append((shown[0], shown[1]))
    bench = Bench(block)
    signals = {"addr": block.write.addr, "en": block.write.en, "data": block.write.data.as_value()}
    for name, port in (("bias", block.bias), ("thresholds", block.thresholds)):
        signals |= {f"{name}_en": port.en, f"{name}_addr": port.addr}
    bench.script(signals, script)
    seen = bench.probe(bias=block.bias.data.as_value(), thresholds=block.thresholds.data.as_value())
    bench.run(extra=1 + far)
    for cycle, (bias, thresholds) in enumerate(expected):
        assert bias is None or seen["bias"][cycle] == bias
        assert thresholds is None or seen["thresholds"][cycle] == thresholds
