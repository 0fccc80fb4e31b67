"""Command line arguments that several commands share."""

from __future__ import annotations

import argparse

from lbq_hw import datasets


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """The options that say which test images: ``--dataset``, ``--data`` and ``--limit``."""
    known = ", ".join(datasets.names())
    parser.add_argument(
        "--dataset", help=f"default: the one the model was trained on; one of {known}"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="folder of the dataset's official files (digits needs none)"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N test images")
