"""All boards in one table: what they are, and which of them hold a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from lbq_hw import boards, file, flow
from lbq_hw.sizing import survey
from lbq_hw.sizing.activity import activity


def list_boards(*, as_json: bool) -> None:
    """Print what the boards are."""
    found = [boards.find(name) for name in boards.names()]
    if as_json:
        print(json.dumps([board.facts() for board in found]))
        return
    table = Table(box=box.SIMPLE, padding=0)
    for heading in ("name", "device", "LUTs", "BRAM", "SPRAM", "SDRAM", "MHz", "core"):
        left = heading in ("name", "device")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for board in found:
        counts = (board.luts, board.block_rams, board.sprams)
        table.add_row(
            board.name,
            board.device,
            *(f"{count:,}" if count else "" for count in counts),
            "" if board.chip is None else f"{board.chip.size_bytes >> 20} MB",
            *(f"{hertz / 1e6:g}" for hertz in (board.clock_hz, board.target_hz)),
        )
    Console().print(table)


def what_fits(options: flow.Options, *, as_json: bool) -> None:
    """Print which boards hold a network, and how fast each of them would be."""
    network = file.load(options.model)
    job = flow.Job(options, boards.find("sim"), Path())
    job.network = network
    sample = job.sample
    busy = activity(
        network,
        images=sample.raw if sample.source != "noise" else None,
        evaluation=job.evaluation,
    )
    asked = {
        "lanes": options.lanes,
        "weight_bits": options.weight_bits,
        "memory": options.memory,
        "target_hz": None if options.freq is None else round(options.freq * 1e6),
    }
    with Console(stderr=True).status(f"sizing {network.name} for every board"):
        lines = survey.survey(network, busy=busy, options=asked)
    if as_json:
        found = [asdict(line) for line in lines]
        print(json.dumps({"model": network.name, "activity": busy.source, "boards": found}))
        return
    _show(network.name, lines, busy.remark)


def _show(name: str, lines: Sequence[survey.Line], remark: str) -> None:
    title = f"{name}: estimates; the link is not in the times"
    table = Table(box=box.SIMPLE, title=title, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(survey.COLUMNS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for line in lines:
        if line.fits:
            table.add_row(*line.cells)
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(table)
    for line in lines:
        if not line.fits:
            console.print(f"{line.board} does not hold it: {'; '.join(line.short)}")
    if remark:
        console.print(f"Times are {remark}.")
