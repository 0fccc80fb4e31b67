"""The parser of a command's arguments; its errors have the same form as all others."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from lbq_hw.commands import ending


class Parser(argparse.ArgumentParser):
    """argparse's parser, with ``error: SENTENCE`` below the usage."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise SystemExit(ending.refuse(message))
