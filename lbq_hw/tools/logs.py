"""Reads the output of tools: ``nextpnr --report``, ``stat -json`` of Yosys, logs of failures."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lbq_hw.tools.placed import KINDS, Clock, CriticalPath, Resource, Segment, Timing

_TELLING = re.compile(r"\b(error|fatal|failed|assert\w*|traceback|exception)\b", re.IGNORECASE)
_CHATTER = ("Info:", "Warning:")
# nextpnr's messages if it has no place left for a cell.
_NO_ROOM = re.compile(
    r"Failed to expand region|no BELs remaining|Unable to find a placement location"
)
_COUNTED = re.compile(r"\b\d+ warnings?, \d+ errors?\b")  # nextpnr's last line
_ROUND = re.compile(rb"iter=(\d+) wires=")  # a round of nextpnr's second router
_TAIL = 1 << 12
_ROUTER = b"Running router2"
_FREQUENCY = re.compile(rb"Max frequency for clock\s+'[^']+':\s+([\d.]+) MHz")


# Lines of a netlist that do not affect place and route: the tool's version, source lines, and
# contents of memories.
_UNPLACED = re.compile(rb'\s*"(?:creator|src|INIT(?:VAL|_RAM)?_[0-9A-F]+)":')


class LogError(ValueError):
    """A tool's file has unexpected contents; the message is one sentence."""


def parse(text: str, *, name: str) -> dict[str, Any]:
    """The JSON object that a tool wrote; `name` is for the error."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise LogError(f"{name} must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise LogError(f"{name} must be a JSON object, not {value!r}")
    return value


def netlist_digest(netlist: Path) -> str:
    """SHA-256 of the part of a Yosys netlist that affects place and route. The same core has
    another digest if the tool's version, or the baked contents, lead to other cells or names.
    """
    total = hashlib.sha256()
    with netlist.open("rb") as lines:
        for line in lines:
            if not _UNPLACED.match(line):
                total.update(line)
    return total.hexdigest()


def resources(
    report: Mapping[str, Any], cells: Mapping[str, Sequence[str]]
) -> tuple[Resource, ...]:
    """Used and available resources from nextpnr's report, by the kinds of `placed.KINDS`. `cells`
    has the family's cell names of each kind; the first name that the device has any of counts.
    """
    buckets = report.get("utilization", {})
    found = []
    for kind in KINDS:
        here = [buckets[name] for name in cells.get(kind, ()) if name in buckets]
        available = next((one["available"] for one in here if one["available"]), 0)
        if available:
            used = sum(one["used"] for one in here)
            found.append(Resource(kind=kind, used=used, available=available))
    return tuple(found)


def timing(
    report: Mapping[str, Any], *, seed: int | None = None, seeds: dict[str, float] | None = None
) -> Timing:
    """Clocks and critical paths after routing, from nextpnr's report."""
    clocks = tuple(
        Clock(
            name=_clean(name),
            fmax_hz=clock["achieved"] * 1e6,
            target_hz=clock["constraint"] * 1e6,
        )
        for name, clock in report.get("fmax", {}).items()
    )
    paths = tuple(
        CriticalPath(
            source=_clean(path["from"]),
            sink=_clean(path["to"]),
            segments=tuple(_segment(segment) for segment in path["path"]),
        )
        for path in report.get("critical_paths", ())
    )
    return Timing(clocks=clocks, paths=paths, seed=seed, seeds=seeds)


def _segment(segment: Mapping[str, Any]) -> Segment:
    source, sink = (segment[end] for end in ("from", "to"))
    return Segment(
        kind=segment["type"],
        delay_ns=segment["delay"],
        source=f"{source['cell']}.{source['port']}",
        sink=f"{sink['cell']}.{sink['port']}",
        net=segment.get("net", ""),
    )


def _clean(clock: str) -> str:
    """A clock's name without the suffix that nextpnr adds to global nets."""
    clock = clock.replace("$glbnet$", "")
    return re.sub(r"(\$[A-Z]+_IO_IN)?(_?\$glb_clk)?$", "", clock)


def cells(stat: Mapping[str, Any]) -> dict[str, int]:
    """Cells of the whole design by type, from ``stat -json`` of Yosys."""
    try:
        counted = stat["design"]["num_cells_by_type"]
    except (KeyError, TypeError):
        raise LogError("yosys stat must have design.num_cells_by_type") from None
    return {str(name): int(count) for name, count in counted.items()}


def relevant_lines(log: str, *, limit: int = 12) -> list[str]:
    """The lines of a failed tool's log that tell why: the first error and the lines after it.

    Without an error, the last lines. If there are more than `limit`, the last `limit` lines.
    """
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    telling = [
        line for line in lines if not line.startswith(_CHATTER) and not _COUNTED.search(line)
    ]
    for index, line in enumerate(telling):
        if _TELLING.search(line):
            return telling[index:][-limit:]
    return lines[-limit:]


def rounds(log: Path) -> int:
    """The number of rounds of a router so far, from the end of its log; 0 before the first."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        found = _ROUND.findall(file.read())
    return int(found[-1]) if found else 0


def before_routing(log: Path) -> float | None:
    """The slowest clock's frequency as nextpnr estimates it when its second router begins, in Hz;
    None before that, and with another router.
    """
    placed, began, _ = log.read_bytes().partition(_ROUTER)
    found = [float(each) for each in _FREQUENCY.findall(placed)]
    return 1e6 * min(found) if began and found else None


def explanation(log: str) -> str | None:
    """The meaning of a failed tool's log and the remedy, if known: the end of a sentence."""
    if any(_NO_ROOM.search(line) for line in relevant_lines(log)):
        return (
            "found no room on the chip for all cells of the core: try fewer --lanes, a smaller "
            "network or another --board"
        )
    return None
