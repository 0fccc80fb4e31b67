"""``python -m tools.results``: a page from a folder of JSON, or rows for that folder from runs."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from tools.results import ablation, curves, layers, levels, page, store, summary, surrogates

_EPILOG = """\
examples:
  python -m tools.results docs/results
      write docs/results.md, docs/results/details.md and the figures in docs/results
  python -m tools.results docs/results/ablation --collect runs/v1 runs/v2 runs/v3
      add a row a run: docs/results/ablation/v1.json and so on
  python -m tools.results docs/results/validation --collect runs/a runs/b
      the same for runs with data.validation, which no other folder takes
  python -m tools.results docs/results/curves.json --collect runs/v1 runs/v2
      add their losses by epoch to the training curves
"""


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m tools.results",
        description="Make the page of results from JSON files.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="where the JSON files are, or rows are to go")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page; default: FOLDER.md")
    parser.add_argument(
        "--collect", type=Path, nargs="+", metavar="RUN", help="write the rows of these run folders"
    )
    parser.add_argument(
        "--config", metavar="NAME", help="of a collected run whose last.json was not kept"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of --config"
    )
    args = parser.parse_args(argv)
    if args.collect is None and (args.config or args.set):
        parser.error("--config and --set go with --collect")
    if args.set and not args.config:
        parser.error("--set goes with --config")
    split = "validation" if args.folder.name == store.VALIDATION else "test"
    try:
        if args.collect is None:
            _write_page(args.folder, args.out or args.folder.with_suffix(".md"))
        elif args.folder.name == store.CURVES:
            store.add_curves(args.folder, args.collect)
        else:
            for run in args.collect:
                row = store.collect(run, config=args.config, overrides=args.set, split=split)
                path = args.folder / f"{run.absolute().name}.json"
                store.save(row, path)
                print(f"{path}: {row.accuracy:.2f} % after {row.epochs} epochs of {row.name}")
    except (ValueError, OSError) as error:
        return ending.refuse(error)
    return 0


def figure_note(data: object) -> str:
    """A note in a figure with the digest of its data, by which a stale figure is recognized."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    return f"made by python -m tools.results from data of SHA-256 {digest}"


def _write_page(folder: Path, out: Path) -> None:
    results = store.load(folder)
    for path, text in (
        (out, summary.page(results)),
        (folder / summary.DETAILS, page.page(results)),
        (folder / page.COMMANDS, page.commands(results)),
    ):
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    from lbq_hw.train import figures  # imports matplotlib, which `--collect` does not need
    from tools.results import dots, pictures

    net = layers.described(results)
    drawn: dict[str, tuple[Callable[..., None], Any, Any]] = {
        layers.FIGURE: (figures.draw_row, net and layers.facts(net), net),
    }
    for name, draw, data in (
        (ablation.FIGURE, dots.draw, ablation.facts(results)),
        (summary.FIGURE, pictures.draw_additions, summary.additions(results)),
        (levels.FIGURE, pictures.draw_activity, levels.facts(results)),
        (curves.FIGURE, pictures.draw_curves, curves.facts(results)),
        (surrogates.FIGURE, pictures.draw_surrogates, surrogates.facts()),
    ):
        drawn[name] = draw, data, data
    for name, (draw, data, source) in drawn.items():
        if data:
            draw(data, folder / name, note=figure_note(source))
            print(f"wrote {folder / name}")
