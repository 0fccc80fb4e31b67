"""An animation: levels become bit planes, and set bits become additions.

The numbers are computed as the core computes them: planes from the highest to the lowest, one
addition per set bit, and the sum doubles between two planes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tools.pictures.svg import ACCENT, INK, PALE, SECOND, box, drawing, text

LEVELS = (5, 0, 3, 1)
WEIGHTS = (3, -2, -4, 7)
BITS = 3
_SECONDS = 1.6  # per scene
_WIDTH, _HEIGHT, _CELL = 720, 330, 64
_LEFT, _TOP = 190, 70


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One scene of the animation: its text, the planes that are shown, the bit that is added (plane
    and input), and the sum after it.
    """

    words: str
    planes: int = 0
    bit: tuple[int, int] | None = None
    total: int | None = None


def scenes() -> Iterator[Scene]:
    """The animation: first the levels, then their planes, then one addition per set bit."""
    yield Scene(words="Four inputs send burst levels, from 0 to 5.")
    yield Scene(words="A level is a binary number: three bit planes.", planes=BITS)
    total = 0
    for plane in reversed(range(BITS)):
        if plane < BITS - 1:
            total *= 2
            words = f"Next plane: the sum doubles to {total}."
            yield Scene(words=words, planes=BITS, total=total)
        for number, level in enumerate(LEVELS):
            if level >> plane & 1:
                total += WEIGHTS[number]
                words = f"A set bit of plane {plane}: add its weight, {WEIGHTS[number]:+}."
                yield Scene(words=words, planes=BITS, bit=(plane, number), total=total)
    terms = " + ".join(f"{level}·({w})" for level, w in zip(LEVELS, WEIGHTS, strict=True))
    yield Scene(words=f"The sum is {terms} = {total}: no multiplier.", planes=BITS, total=total)


def picture() -> str:
    """The animation as one SVG, which browsers play without a script."""
    film = list(scenes())
    whole = _SECONDS * len(film)
    share = 100 / len(film)
    style = (
        f"<style>.scene{{opacity:0;animation:scene {whole:g}s step-end infinite}}"
        f"@keyframes scene{{0%{{opacity:1}}{share:.3f}%{{opacity:0}}}}"
        "@media(prefers-reduced-motion:reduce){.scene{animation:none}.scene:last-of-type{opacity:1}}"
        "</style>"
    )
    parts = [
        f"<g class='scene' style='animation-delay:{_SECONDS * number:g}s'>{_drawn(scene)}</g>"
        for number, scene in enumerate(film)
    ]
    title = "Levels become bit planes, and every set bit one addition"
    return drawing(_WIDTH, _HEIGHT, title, style, text(24, 32, title, size=16, bold=True), *parts)


def _drawn(scene: Scene) -> str:
    parts = [text(_LEFT - 16, _TOP + 26, "level", anchor="end")]
    for number, level in enumerate(LEVELS):
        x = _LEFT + _CELL * number
        parts.append(box(x, _TOP, _CELL - 8, 38, fill="#eef2f6", stroke=PALE))
        parts.append(text(x + 28, _TOP + 26, str(level), anchor="middle", size=18, bold=True))
    for row, plane in enumerate(reversed(range(scene.planes))):
        y = _TOP + 52 + 36 * row
        parts.append(text(_LEFT - 16, y + 20, f"plane {plane}, counts {1 << plane}", anchor="end"))
        for number, level in enumerate(LEVELS):
            x, bit = _LEFT + _CELL * number, level >> plane & 1
            now = scene.bit == (plane, number)
            fill = SECOND if now else "#cfe8ec" if bit else "#ffffff"
            parts.append(box(x, y, _CELL - 8, 28, fill=fill, stroke=PALE))
            ink = "#ffffff" if now else INK if bit else PALE
            parts.append(text(x + 28, y + 20, str(bit), anchor="middle", size=15, fill=ink))
    if scene.planes:
        y = _TOP + 66 + 36 * BITS
        parts.append(text(_LEFT - 16, y + 20, "weight", anchor="end"))
        for number, weight in enumerate(WEIGHTS):
            x = _LEFT + _CELL * number
            now = scene.bit is not None and scene.bit[1] == number
            parts.append(
                text(
                    x + 28, y + 20, f"{weight:+}", anchor="middle", size=15, bold=now,
                    fill=SECOND if now else INK,
                )
            )  # fmt: skip
    if scene.total is not None:
        x = _LEFT + _CELL * len(LEVELS) + 40
        parts.append(text(x + 70, _TOP + 80, "sum of a lane", anchor="middle"))
        parts.append(box(x, _TOP + 92, 140, 52, fill="#e6f4f1", stroke=ACCENT))
        parts.append(
            text(x + 70, _TOP + 127, str(scene.total), anchor="middle", size=26, bold=True)
        )
    parts.append(text(_WIDTH / 2, _HEIGHT - 24, scene.words, anchor="middle", size=15))
    return "".join(parts)
