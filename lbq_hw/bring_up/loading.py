"""The steps that load a bitstream: finding the program for it, and the load."""

from __future__ import annotations

import re
import shlex

from lbq_hw import families
from lbq_hw.bring_up.plug import ids
from lbq_hw.bring_up.walk import Finding, Visit, failed, ok, skipped
from lbq_hw.doctor import PROGRAMS
from lbq_hw.tools import Tool

_DAPLINK = ("0d28:0204", "1d50:602b")
_VARIANTS = {("ecpix5", "0403:6011"): "ecpix5_r03"}
"""openFPGALoader's name of a board for another bridge, by board and USB id."""
_LOADERS = {
    "openFPGALoader": "https://trabucayre.github.io/openFPGALoader/guide/install.html",
    "dfu-util": "sudo apt install dfu-util",
}
_HELD = (
    "close every program that has a port of the board, see the step rights, and plug it in again"
)
_CHAIN = (
    "check that the board is powered, and that jumpers and buttons are as in docs/bring-up.md; on "
    "a Tang Nano, close the UART and plug it in again"
)
_MENDS = {
    "unable to open ftdi device": _HELD,
    "Can't find iCE FTDI USB device": _HELD,
    "No cable found": _HELD,
    "iCELink open fail": _HELD,
    "mismatch between target's idcode": "the board has another FPGA: see its marking, and build "
    "for the board of that name",
    "no device found": _CHAIN,
    "JTAG init failed": _CHAIN,
    "cdone: low": _CHAIN,
    "CRC": "on a Tang Nano 20K, see the version of its bridge in docs/bring-up.md; else plug it in "
    "again",
}
"""Remedies by text of a tool's output; the first text that occurs counts."""
_LOOKS, _PAUSE = 20, 0.25
"""How often the ports are listed after a load, and the seconds between two listings."""
_LINES = 12
"""Lines of a tool's output that are shown and kept."""


def tool(visit: Visit) -> Finding:
    """Is the program that loads the bitstream installed, and does it know the board?"""
    if not visit.board.program:
        return skipped(f"board {visit.board.name} is not programmed")
    if not visit.load:
        return skipped("left out, by --no-load")
    words = _words(visit, "FILE")
    name = words[0]
    path = visit.machine.which(name)
    tools = {one.name: one for one in PROGRAMS}
    remedy = tools[name].remedy if name in tools else _LOADERS.get(name, f"install {name}")
    if path is None:
        return failed(f"{name} is not on the PATH", remedy)
    version = _version(visit, path, tools.get(name))
    told = f"{name} {version}".strip()
    facts = {"path": path, "version": version}
    newer = f"install a newer one: {_LOADERS.get(name, remedy)}"
    if name == "openFPGALoader":
        family, cmsisdap = families.of(visit.board), set(ids(visit)) & set(_DAPLINK)
        if cmsisdap and version and version == family.no_cmsisdap:
            text = f"{told} cannot load {family.title} devices through CMSIS-DAP"
            return failed(text, newer, **facts)
        if "-b" in words:
            board = words[words.index("-b") + 1]
            listed = visit.machine.run([path, "--list-boards"])
            known = {line.split()[0] for line in listed.output.splitlines() if line.strip()}
            if listed.code == 0 and board not in known:
                return failed(f"{told} does not know the board {board}", newer, **facts)
    return ok(f"{told} ({path})", **facts)


def load(visit: Visit) -> Finding:
    """Load the bitstream."""
    bitstream = visit.packed.bitstream
    if bitstream is None or not visit.board.program:
        return skipped(f"board {visit.board.name} has no bitstream")
    if not visit.load:
        return skipped("left out, by --no-load")
    command = _words(visit, str(bitstream))
    before = _ports(visit)
    done = visit.machine.run(command)
    kept = [line.rstrip() for line in re.split(r"[\r\n]+", done.output) if line.strip()][-_LINES:]
    facts = {"command": shlex.join(command), "code": done.code, "output": kept}
    # iceprog and openFPGALoader may print that the FPGA did not start, and still end with 0.
    low = re.findall(r"cdone: (\w+)", done.output)[-1:] == ["low"]
    if done.code == 0 and not low and not re.search(r"\bFAIL\b", done.output):
        _await(visit, before)
        return ok(shlex.join(command), **facts)
    last = kept[-1].strip() if kept else "it printed nothing"
    mend = next((mend for part, mend in _MENDS.items() if part in done.output), _CHAIN)
    return failed(f"{command[0]} ended with exit code {done.code}: {last}", mend, **facts)


def _words(visit: Visit, bitstream: str) -> list[str]:
    """The command that loads a bitstream, for the bridge that is plugged in."""
    words = shlex.split(visit.board.command(bitstream), comments=True)
    if "-b" in words:
        at = words.index("-b") + 1
        names = {_VARIANTS.get((words[at], device.id), words[at]) for device in visit.plugged}
        words[at] = min(names, default=words[at])
    return words


def _ports(visit: Visit) -> set[str]:
    return {port.name for port in visit.machine.ports()}


def _await(visit: Visit, ports: set[str]) -> None:
    """Wait for the ports to come back: during the load, the tool detaches the kernel's driver."""
    for _ in range(_LOOKS):
        if ports <= _ports(visit):
            return
        visit.machine.sleep(_PAUSE)


def _version(visit: Visit, path: str, known: Tool | None) -> str:
    """The version that a tool prints; empty if it prints none."""
    if known is None or not known.version:
        return ""
    found = re.search(r"\d+(\.\d+)+", visit.machine.run([path, *known.version]).output)
    return found[0] if found else ""
