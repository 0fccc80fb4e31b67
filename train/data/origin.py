"""Where the images of a run come from, and the file of its folder that says it: ``data.json``."""

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

    Members: `digest` of all of them, with their labels; `held_out`, which images of undivided data
    the run is tested on, None where the data itself says it; `class_names` in the order of labels,
    empty where the data has none; `notes` for the user.
    """

    digest: str
    held_out: HeldOut | None
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Digest, held-out images and names of classes, as JSON has them."""
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
        """Leave what `to_dict` says in a run's folder."""
        (folder / FILE).write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")


def read(folder: Path) -> Origin:
    """What a run says of its images; nothing, where it is from before runs said it."""
    path = folder / FILE
    if not path.is_file():
        return Origin(digest="", held_out=None)
    try:
        return Origin.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not what a run writes: train it again") from None
