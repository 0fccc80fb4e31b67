"""Where the images of a run come from, and the file of its folder that says it: ``data.json``."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from lbq_hw.network import HeldOut

FILE = "data.json"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a run's images come from.

    Members: `digest` of all of them, with their labels; `held_out`, which images of undivided data
    the run is tested on, None where the data itself says it; `notes` for the user.
    """

    digest: str
    held_out: HeldOut | None
    notes: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Leave digest and held-out images in a run's folder."""
        held = None if self.held_out is None else dataclasses.asdict(self.held_out)
        text = json.dumps({"digest": self.digest, "held_out": held})
        (folder / FILE).write_text(text + "\n", encoding="utf-8")


def held_out_of(folder: Path) -> HeldOut | None:
    """The held-out images of a run on undivided data; None for other runs, and for those from
    before they said it."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))["held_out"]
        return None if held is None else HeldOut(**(held | {"indices": tuple(held["indices"])}))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not what a run writes: train it again") from None
