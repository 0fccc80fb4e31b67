"""Where the images of a run come from, as ``data.json`` in the run's folder records it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbq_hw.network import HeldOut

FILE = "data.json"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a run's images come from.

    Members: `digest` of all images and labels; `held_out`, the images of undivided data on which
    the run is tested, None if the data itself is divided; `class_names` in the order of labels,
    empty if the data has none; `notes` for the user.
    """

    digest: str
    held_out: HeldOut | None
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Digest, held-out images and names of classes, for JSON."""
        held = None if self.held_out is None else dataclasses.asdict(self.held_out)
        return {"digest": self.digest, "held_out": held, "class_names": self.class_names}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Origin:
        held = facts["held_out"]
        if held is not None:
            held = HeldOut(**(held | {"indices": tuple(held["indices"])}))
        names = tuple(facts.get("class_names", ()))
        return cls(digest=facts["digest"], held_out=held, class_names=names)

    def write(self, folder: Path) -> None:
        """Write `to_dict` into a run's folder."""
        (folder / FILE).write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")


def read(folder: Path) -> Origin:
    """What a run recorded of its images; empty for a run from before this was recorded."""
    path = folder / FILE
    if not path.is_file():
        return Origin(digest="", held_out=None)
    try:
        return Origin.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not what a run writes: train it again") from None
