"""The error for a network that does not fit a core."""

from __future__ import annotations

from lbq_hw.config import CoreConfig


class CompileError(ValueError):
    """A network that does not fit.

    Members: `violations`, one sentence each; `changes`, CoreConfig fields and their smallest
    sufficient values, empty if no core suffices; `would_do`, the core with these changes, or None.
    """

    def __init__(
        self, name: str, config: CoreConfig, violations: tuple[str, ...], changes: dict[str, int]
    ) -> None:
        self.violations = violations
        self.changes = changes
        self.would_do = config.with_(**changes) if changes else None
        lines = [f"network {name!r} does not fit the core:", *(f"  {text}" for text in violations)]
        if changes:
            wanted = ", ".join(f"{field} = {value}" for field, value in changes.items())
            lines.append(f"a core with {wanted} would do")
        super().__init__("\n".join(lines))
