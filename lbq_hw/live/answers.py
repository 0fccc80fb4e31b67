"""The page's data for an input: class, logits, levels and events by layer, time."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.datasets import mapping, meaning
from lbq_hw.datasets.fitting import Samples
from lbq_hw.golden import Trace
from lbq_hw.live.machines import Machine
from lbq_hw.network import Network

SHOWN = 24
"""Channels of a layer that are shown; of a layer without rows and columns, all are shown."""
WHITE = 255
"""Full scale of the pictures that the page sends."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """A network, the machine that runs it, and inputs to replay. One input runs at a time."""

    network: Network
    machine: Machine
    samples: Samples | None
    _turn: Lock

    @classmethod
    def of(cls, network: Network, machine: Machine, samples: Samples | None) -> Live:
        return cls(network=network, machine=machine, samples=samples, _turn=Lock())

    @property
    def picture_bytes(self) -> int:
        """Bytes of a picture that the page sends; 0 for recordings, which cannot be drawn."""
        return int(np.prod(self.network.input.shape)) if self.network.input.static else 0

    def facts(self) -> dict[str, Any]:
        """The facts that the page loads first."""
        channels, height, width = self.network.input.shape
        return {
            "model": self.network.name,
            "where": self.machine.where,
            "static": self.network.input.static,
            "shape": [channels, height, width],
            "classes": self.network.classes,
            "class_names": list(meaning.class_names(self.network)),
            "samples": 0 if self.samples is None else len(self.samples.images),
        }

    def picture(self, data: bytes) -> dict[str, Any]:
        """The answer to a picture ``(C, H, W)`` of bytes; white is 255."""
        levels = np.frombuffer(data, np.uint8).reshape(self.network.input.shape)
        scale = meaning.full_scale(self.network)
        assert scale is not None  # the network takes pictures
        return self._answer(mapping.scaled(levels, of=WHITE, to=scale))

    def sample(self, number: int) -> dict[str, Any]:
        """The answer to an input of the samples, with its label."""
        assert self.samples is not None
        raw, labels = self.samples.images[number], self.samples.labels
        answer = self._answer(raw)
        label = None if labels is None else int(labels[number])
        return answer | {"label": label, "input": _picture(raw, self.network)}

    def _answer(self, raw: NDArray[np.uint8]) -> dict[str, Any]:
        with self._turn:
            outcome = self.machine.run(raw)
            layers: list[dict[str, Any]] = []
            wanted = golden.run(
                self.network, raw[np.newaxis], observe=lambda trace: _add(layers, trace)
            )
        return {
            "class": int(outcome.logits.argmax()),
            "logits": outcome.logits.tolist(),
            "equal": bool(np.array_equal(outcome.logits, wanted.logits[0])),
            "seconds": outcome.seconds,
            "cycles": outcome.cycles,
            "core_seconds": outcome.core_seconds,
            "layers": layers,
        }


def _add(layers: list[dict[str, Any]], trace: Trace) -> None:
    """Append a layer: its levels, as the mean over time, and its events, the number of set bits."""
    if trace.output is None:
        return
    levels = np.asarray(trace.output, np.uint8)[:, 0]
    mean = levels.mean(axis=0)
    channels, height, width = mean.shape
    shown = mean if height * width == 1 else mean[:SHOWN]
    most = max(float(mean.max()), 1.0)
    layers.append(
        {
            "name": trace.name,
            "shape": [channels, height, width],
            "timesteps": len(levels),
            "shown": len(shown),
            "levels": _encoded(np.rint(shown * (WHITE / most))),
            "largest": int(levels.max()),
            "active": float(np.mean(levels > 0)),
            "events": int(np.unpackbits(levels).sum()),
        }
    )


def _picture(raw: NDArray[np.uint8], network: Network) -> str:
    """An input as bytes ``(C, H, W)``, scaled to 255; the frames of a recording are summed."""
    image = raw if network.input.static else raw.sum(axis=0, dtype=np.int64)
    scale = meaning.full_scale(network) or max(1, int(image.max()))
    return _encoded(np.minimum(image * (WHITE / scale), WHITE))


def _encoded(values: NDArray[Any]) -> str:
    return base64.b64encode(values.astype(np.uint8).tobytes()).decode()
