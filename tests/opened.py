"""A component of the core taken apart: its own logic, and the components inside it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any


@cache
def opened(component: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Statements of a component's own logic by domain, and its submodules by name."""
    module = component.elaborate(None)
    module._flush()
    parts = {name: part for name, (part, _) in module._named_submodules.items()}
    for used in (component, module, *parts.values()):
        used._MustUse__used = True  # looked at, and never built
    return module._statements, parts


def inside(component: Any) -> Iterator[Any]:
    """All components in one, at any depth."""
    for part in opened(component)[1].values():
        yield part
        if type(part).__module__.startswith("lbq_hw."):
            yield from inside(part)
