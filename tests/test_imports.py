"""The project's import rules, and proof that the checker sees their violation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("train", "sim", "boards")
FOLDERS = {"lbq_hw": "lbq_hw", "tools": "tools"} | {name: f"lbq_hw.{name}" for name in PARTS}
"""The folders at the top, and the names that they are imported by."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What `module`, with all below it, must not import, directly or through other modules.

    `never` names modules of ours or libraries; `only` lists the modules of ours that are allowed.
    The modules below `apart` are not meant.
    """

    module: str
    apart: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None


# A library, and the one package whose files may import it; tools are no part of what is installed.
LIBRARIES = {
    "torch": "lbq_hw.train",
    "torchvision": "lbq_hw.train",
    "triton": "lbq_hw.train",
    "cocotb": "lbq_hw.sim",
    "cocotb_tools": "lbq_hw.sim",
    "cocotbext": "lbq_hw.sim",
}
RULES = (
    Rule(module="lbq_hw", never=("tools",)),
    Rule(module="lbq_hw", apart=("lbq_hw.train", "lbq_hw.sim"), never=("lbq_hw.train",)),
    Rule(module="lbq_hw.numeric", only=()),
    Rule(module="lbq_hw.decode", only=()),
    Rule(module="lbq_hw.network", only=("lbq_hw.decode", "lbq_hw.numeric")),
    Rule(module="lbq_hw.file", only=("lbq_hw.decode", "lbq_hw.network", "lbq_hw.numeric")),
    Rule(module="lbq_hw.config", only=("lbq_hw.decode", "lbq_hw.numeric")),
    Rule(
        module="lbq_hw.isa",
        apart=("lbq_hw.isa.__main__",),
        only=(
            "lbq_hw.config",
            "lbq_hw.decode",
            "lbq_hw.markdown",
            "lbq_hw.network",
            "lbq_hw.numeric",
        ),
    ),
    Rule(module="lbq_hw.markdown", only=()),
    Rule(
        module="lbq_hw.golden",
        never=(
            "lbq_hw.file",
            "lbq_hw.network.manifest",
            "lbq_hw.compiler",
            "lbq_hw.core",
            "lbq_hw.flow",
        ),
    ),
    Rule(module="lbq_hw.compiler", never=("lbq_hw.golden", "lbq_hw.core", "lbq_hw.flow")),
    Rule(module="lbq_hw.chips", apart=("lbq_hw.chips.captures", "lbq_hw.chips.__main__"), only=()),
    Rule(
        module="lbq_hw.cycles",
        apart=("lbq_hw.cycles.__main__",),
        never=("lbq_hw.golden", "lbq_hw.compiler", "lbq_hw.core", "lbq_hw.flow"),
    ),
    Rule(module="lbq_hw.cycles.__main__", never=("lbq_hw.golden", "lbq_hw.core", "lbq_hw.flow")),
    Rule(module="lbq_hw.core", never=("lbq_hw.golden", "lbq_hw.compiler", "lbq_hw.flow")),
    Rule(
        module="lbq_hw.core.fabric",
        never=("lbq_hw.core.external", "lbq_hw.core.host", "lbq_hw.core.walk"),
    ),
    Rule(module="lbq_hw.core.host", never=("lbq_hw.core.external",)),
    Rule(
        module="lbq_hw.families", never=("amaranth", "lbq_hw.boards", "lbq_hw.core", "lbq_hw.flow")
    ),
    Rule(module="lbq_hw.boards", never=("lbq_hw.core", "lbq_hw.flow", "lbq_hw.compiler")),
    Rule(module="lbq_hw.host", never=("amaranth", "torch")),
    Rule(
        module="lbq_hw.train.data",
        never=(
            "lbq_hw.train.settings",
            "lbq_hw.train.deploy",
            "lbq_hw.train.graph",
            "lbq_hw.train.kernels",
            "lbq_hw.train.neurons",
        ),
    ),
    Rule(
        module="lbq_hw.train.graph",
        never=("lbq_hw.train.settings", "lbq_hw.train.deploy", "lbq_hw.train.quantize"),
    ),
    Rule(
        module="lbq_hw.train.deploy",
        never=("lbq_hw.train.settings", "lbq_hw.train.loop", "lbq_hw.train.preparation"),
    ),
)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def imported_names(tree: ast.AST, package: str) -> Iterator[str]:
    """Dotted names a file imports, at its top or inside a function; relative ones resolved.

    What stands under ``if TYPE_CHECKING:`` is never imported.
    """
    match tree:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
            nodes: list[ast.AST] = [*orelse]
        case _:
            nodes = list(ast.iter_child_nodes(tree))
    for node in nodes:
        yield from imported_names(node, package)
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parts = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*parts, *([module] if module else [])])
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


def read_imports(root: Path) -> dict[str, set[str]]:
    """Every module of the project and what it imports; our own modules by their exact name."""
    files = {}
    for folder, package in FOLDERS.items():
        for path in (root / folder).rglob("*.py"):
            parts = path.relative_to(root / folder).with_suffix("").parts
            files[".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports[module] = set()
        for name in imported_names(tree, package):
            # `from lbq_hw import network` means the module; `from lbq_hw.network import Layer` too
            parents = [parent for parent in prefixes(name) if parent in files]
            imports[module] |= set(parents) or {name}
        imports[module].discard(module)
    return imports


def prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def chains(imports: dict[str, set[str]], start: str) -> Iterator[tuple[str, ...]]:
    """The shortest import chain from `start` to everything it reaches."""
    seen = {start}
    queue: list[tuple[str, ...]] = [(start,)]
    for chain in queue:
        for name in sorted(imports.get(chain[-1], ())):
            if name not in seen:
                seen.add(name)
                queue.append((*chain, name))
                yield queue[-1]


def forbidden(rule: Rule, name: str) -> bool:
    if any(within(name, banned) for banned in rule.never):
        return True
    ours = name.startswith("lbq_hw.")
    return (
        rule.only is not None
        and ours
        and not any(within(name, allowed) for allowed in (rule.module, *rule.only))
    )


def violations(root: Path) -> list[str]:
    imports = read_imports(root)
    found = [
        f"{module} -> {name}: only {home} may import {library}"
        for module, names in imports.items()
        for name in names
        for library, home in LIBRARIES.items()
        if within(name, library) and not (within(module, home) or within(module, "tools"))
    ]
    found += [
        f"{module} -> {name}: say lbq_hw.{name}"
        for module, names in imports.items()
        for name in names
        if name.split(".")[0] in PARTS
    ]
    for rule in RULES:
        meant = [module for module in imports if within(module, rule.module)]
        for module in meant:
            if any(within(module, part) for part in rule.apart):
                continue
            found += [
                f"{' -> '.join(chain)}: {rule.module} must not import it"
                for chain in chains(imports, module)
                if forbidden(rule, chain[-1])
            ]
    return sorted(found)


def test_the_project_keeps_its_import_rules() -> None:
    assert violations(ROOT) == []


def test_the_checker_reads_the_project() -> None:
    imports = read_imports(ROOT)
    assert "lbq_hw.numeric" in imports["lbq_hw.network"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"lbq_hw/golden.py": "import torch.nn as nn"},
            ["lbq_hw.golden -> torch.nn: only lbq_hw.train may import torch"],
        ),
        (
            {"train/loop.py": "from cocotb.triggers import Timer"},
            ["lbq_hw.train.loop -> cocotb.triggers.Timer: only lbq_hw.sim may import cocotb"],
        ),
        (
            {"lbq_hw/report/page.py": "def late():\n    from torch import nn"},
            ["lbq_hw.report.page -> torch.nn: only lbq_hw.train may import torch"],
        ),
        (
            {"boards/x.py": "import importlib\nimportlib.import_module('torch')"},
            ["lbq_hw.boards.x -> torch: only lbq_hw.train may import torch"],
        ),
        (
            {"lbq_hw/numeric.py": "from lbq_hw import network", "lbq_hw/network.py": ""},
            ["lbq_hw.numeric -> lbq_hw.network: lbq_hw.numeric must not import it"],
        ),
        (
            {"lbq_hw/network.py": "from .file import load", "lbq_hw/file.py": ""},
            ["lbq_hw.network -> lbq_hw.file: lbq_hw.network must not import it"],
        ),
        (
            {"lbq_hw/golden.py": "from . import file", "lbq_hw/file.py": ""},
            ["lbq_hw.golden -> lbq_hw.file: lbq_hw.golden must not import it"],
        ),
        (
            {"lbq_hw/evaluate.py": "import lbq_hw.train.data", "train/data/__init__.py": ""},
            ["lbq_hw.evaluate -> lbq_hw.train.data: lbq_hw must not import it"],
        ),
        (
            {
                "lbq_hw/core/__init__.py": "",
                "lbq_hw/core/lane.py": "from ..tools.draw import draw",
                "lbq_hw/tools/draw.py": "from lbq_hw.golden import run",
                "lbq_hw/golden.py": "",
            },
            [
                "lbq_hw.core.lane -> lbq_hw.tools.draw -> lbq_hw.golden: "
                "lbq_hw.core must not import it"
            ],
        ),
        (
            {"lbq_hw/core/top.py": "import lbq_hw.compiler", "lbq_hw/compiler/__init__.py": ""},
            ["lbq_hw.core.top -> lbq_hw.compiler: lbq_hw.core must not import it"],
        ),
        (
            {"train/export.py": "from tools import results", "tools/results.py": "import torch"},
            ["lbq_hw.train.export -> tools.results: lbq_hw must not import it"],
        ),
        (
            {"sim/check.py": "from boards import Board", "boards/__init__.py": ""},
            ["lbq_hw.sim.check -> boards.Board: say lbq_hw.boards.Board"],
        ),
        (
            {
                "lbq_hw/golden.py": "if TYPE_CHECKING:\n    import torch\nelse:\n    import triton",
            },
            ["lbq_hw.golden -> triton: only lbq_hw.train may import triton"],
        ),
        (
            {"lbq_hw/host/device.py": "import lbq_hw.isa", "lbq_hw/isa.py": "import amaranth.hdl"},
            ["lbq_hw.host.device -> lbq_hw.isa -> amaranth.hdl: lbq_hw.host must not import it"],
        ),
    ],
)
def test_a_tree_that_breaks_a_rule_is_reported(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    plant(tmp_path, files)
    assert violations(tmp_path) == expected


def test_a_tree_that_keeps_the_rules_is_clean(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "lbq_hw/__init__.py": "if TYPE_CHECKING:\n    from lbq_hw.core.lane import Lane",
            "lbq_hw/numeric.py": "import math\nimport numpy as np",
            "lbq_hw/network.py": "from lbq_hw import numeric\nfrom lbq_hw.numeric import Integers",
            "lbq_hw/isa.py": "",
            "lbq_hw/core/lane.py": "from amaranth.hdl import Module\nfrom lbq_hw import isa",
            "train/loop.py": "import torch\nfrom lbq_hw.network import Layer\nimport torchless",
            "sim/bench.py": "import cocotb\nfrom lbq_hw import network",
        },
    )
    assert violations(tmp_path) == []


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
