"""Spoken digits of one speaker held out: the others to train on, this one to test on.

    python docs/examples/speakers.py --data DIR/fsdd --speaker theo --out theo.npz
    lbq train --config fsdd --set data.name=npz --data theo.npz --out runs/without-theo

The levels are those of the dataset fsdd, so that the network of its configuration fits.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from lbq_hw import audio
from lbq_hw.datasets import DatasetError, sound

FRAMES = 64


def speaker_of(path: Path) -> str:
    """Of a recording DIGIT_SPEAKER_NUMBER.wav."""
    return path.stem.partition("_")[2].rpartition("_")[0]


def held_out(folder: Path, speaker: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, divided by speaker."""
    paths = sound.recordings(sound.FSDD, folder)
    known = sorted({speaker_of(path) for path in paths})
    if speaker not in known:
        raise DatasetError(f"the speaker must be one of {', '.join(known)}, not {speaker!r}")
    arrays: dict[str, np.ndarray] = {}
    for split in ("train", "test"):
        chosen = [path for path in paths if (speaker_of(path) == speaker) == (split == "test")]
        images, labels = sound.levels(sound.FSDD, chosen, frames=FRAMES)
        arrays |= {f"{split}_images": images, f"{split}_labels": labels}
    return arrays | {"layout": np.array("nchw"), "full_scale": np.array(audio.LEVELS)}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of recordings/")
    parser.add_argument("--speaker", required=True)
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    args = parser.parse_args(argv)
    try:
        arrays = held_out(args.data, args.speaker)
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    np.savez_compressed(args.out, **arrays)
    counts = [len(arrays[f"{split}_labels"]) for split in ("train", "test")]
    print(f"{args.out}: {counts[0]:,} recordings of others, {counts[1]:,} of {args.speaker}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
