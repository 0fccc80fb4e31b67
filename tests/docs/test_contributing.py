"""CONTRIBUTING.md, the README and the hooks name what exists: targets, modules, files, classes."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import lbq_hw

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = ("lbq_hw", "train", "sim", "boards")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def all_of(pattern: str, text: str) -> list[str]:
    return sorted(set(re.findall(pattern, text, re.M)))


@pytest.mark.parametrize("target", all_of(r"(?:`|^    )make ([a-z-]+)", GUIDE + README))
def test_a_target_that_is_named_exists(target: str) -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    assert target in phony.split()
    assert re.search(rf"^(\w+ )*{target}( \w+)*:", MAKEFILE, re.M)


def test_every_check_is_in_the_guide() -> None:
    for target in ("setup", "lint", "test", "test-all", "regression", "demo", "bench", "docs"):
        assert f"`make {target}`" in GUIDE or f"    make {target}\n" in GUIDE


@pytest.mark.parametrize("module", all_of(r"python -m ([\w.]+)", GUIDE + README))
def test_a_module_that_is_run_exists(module: str) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    if spec.submodule_search_locations is not None:
        assert importlib.util.find_spec(f"{module}.__main__") is not None


def test_files_that_the_guide_names_exist() -> None:
    named = all_of(r"(?<![\w/.])((?:\w[\w-]*/)+[\w.-]*|\.ci/[\w.]+)(?=[`)\s])", GUIDE)
    assert len(named) >= 10
    for name in named:
        assert (ROOT / name).exists(), name


def test_modules_and_classes_that_the_guide_names_exist() -> None:
    for module in all_of(r"`(lbq_hw\.[a-z_.]+)`", GUIDE):
        assert importlib.util.find_spec(module) is not None
    files = [file for name in PACKAGES for file in (ROOT / name).rglob("*.py")]
    code = "\n".join(file.read_text("utf-8") for file in files)
    for name in [*all_of(r"`([A-Z]\w*[a-z]\w*)`", GUIDE), "LBQ"]:
        assert re.search(rf"\bclass {name}\b", code), name
    assert re.search(r"^KINDS\b", code, re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_the_hooks_are_the_tools_of_the_environment() -> None:
    entries = re.findall(r"^ +entry: (.*)$", HOOKS, re.M)
    assert entries == [
        ".venv/bin/ruff check",
        ".venv/bin/ruff format --check",
        ".venv/bin/basedpyright",
    ]
    assert re.findall(r"repo: (\S+)", HOOKS) == ["local"]
    lint = MAKEFILE.partition("\nlint:")[2].partition("\n\n")[0]
    for entry in entries:
        assert entry.replace(".venv/bin", "$(VENV)") in lint


def test_the_version_is_that_of_the_project() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "lbq_hw.__version__"}
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    sections = re.findall(r"^## (.*)$", log, re.M)
    assert sections[0] == "Unreleased"
    assert sections[1] == lbq_hw.__version__


def test_a_released_version_tells_training_and_hardware_apart() -> None:
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = log.partition(f"\n## {lbq_hw.__version__}\n")[2].partition("\n## ")[0]
    parts = re.findall(r"^(?:### (.*)|\*\*(.*)\*\*)$", newest, re.M)
    kinds = ["Added", "Changed", "Fixed"]
    heads = ["Training", *kinds, "Hardware and tools", *kinds]
    assert [head or kind for head, kind in parts] == heads


def test_the_package_says_that_it_has_types_and_ships_the_mark() -> None:
    assert (ROOT / "lbq_hw" / "py.typed").read_bytes() == b""
    assert "py.typed" in PROJECT["tool"]["setuptools"]["package-data"]["lbq_hw"]
