"""Answers before the end of an input: the logits after each timestep, and when they suffice.

A run may stop at the first timestep at which the leading class is ahead of the second by a margin.
The margin is chosen on training inputs, so that test inputs show its true accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.golden import Trace
from lbq_hw.network import Network
from lbq_hw.numeric import Integers

CANDIDATES = 200
"""Candidates for the margin: quantiles of the observed leads."""


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """The result of stopping at a margin: percent of right answers, and timesteps per input."""

    margin: int
    images: int
    accuracy: float
    mean_steps: float
    most_steps: int


def logits_by_step(
    network: Network, raw: NDArray[np.uint8], *, batch: int | None = None
) -> Integers:
    """Logits so far after every timestep: ``(T, n, classes)``; the last are the final logits."""
    parts: list[Integers] = []

    def observe(trace: Trace) -> None:
        if trace.levels is None and trace.u is not None:
            steps, images = trace.u.shape[:2]
            parts.append(np.asarray(trace.u, np.int64).reshape(steps, images, network.classes))

    golden.run(network, raw, batch=batch, observe=observe)
    return np.concatenate(parts, axis=1)


def accuracy_by_step(logits: Integers, labels: NDArray[np.int64]) -> list[float]:
    """Percent of right answers if every input is stopped after the same number of timesteps."""
    return (100 * (logits.argmax(axis=-1) == labels).mean(axis=1)).tolist()


def leads(logits: Integers) -> Integers:
    """How far the leading class is ahead of the next, ``(T, n)``."""
    if logits.shape[-1] < 2:
        raise ValueError("a network must have at least 2 classes for one of them to lead")
    ordered = np.sort(logits, axis=-1)
    return ordered[..., -1] - ordered[..., -2]


def stop(logits: Integers, labels: NDArray[np.int64], margin: int) -> Stopped:
    """Every input stops at the first timestep with a lead of `margin`, or else at the end."""
    enough = leads(logits) >= margin
    enough[-1] = True
    steps = enough.argmax(axis=0)
    classes = logits[steps, np.arange(len(labels))].argmax(axis=-1)
    return Stopped(
        margin=int(margin),
        images=len(labels),
        accuracy=100 * float((classes == labels).mean()),
        mean_steps=float((steps + 1).mean()),
        most_steps=int(steps.max()) + 1,
    )


def choose(logits: Integers, labels: NDArray[np.int64]) -> Stopped:
    """The smallest margin without loss: with it, or any larger margin, accuracy is at least the
    accuracy on whole inputs.
    """
    tried = np.unique(np.quantile(leads(logits), np.linspace(0, 1, CANDIDATES), method="higher"))
    whole = accuracy_by_step(logits[-1:], labels)[0]
    chosen = stop(logits, labels, int(tried[-1]) + 1)
    for margin in tried[::-1].tolist():
        found = stop(logits, labels, margin)
        if found.accuracy < whole:
            break
        chosen = found
    return chosen
