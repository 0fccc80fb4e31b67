"""``python -m train.nir``: hands over to `train.nir.command`, or says what to install."""

from __future__ import annotations

import sys

from lbq_hw.commands import ending, extras


def main(argv: list[str] | None = None, *, prog: str = "python -m train.nir") -> int:
    try:
        from lbq_hw.train.nir import command
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    return command.main(argv, prog=prog)


if __name__ == "__main__":
    sys.exit(ending.run(main))
