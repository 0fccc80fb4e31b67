"""How a command ends that is told to stop, or whose output or disk goes away: one sentence.

A command that receives SIGINT (Ctrl-C) or SIGTERM ends its tools, says that it was interrupted and
has the exit code that shells expect, 130 or 143. If nobody reads its output any more, it ends
without a word, with 141. What it cannot write ends it with 2.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

_CODE = {signal.SIGINT: 130, signal.SIGTERM: 143}
_CLOSED = 141
_CANNOT_WRITE = 2
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class TerminatedError(KeyboardInterrupt):
    """SIGTERM: what handles an interrupt handles it too."""


def run(command: Callable[[], int], *, name: str) -> int:
    """Call a command, which has a name in messages; its exit code."""
    received: list[signal.Signals] = []
    with _terminable(received):
        try:
            code = command()
            sys.stdout.flush()
        except KeyboardInterrupt:
            print(f"{name}: interrupted", file=sys.stderr)
            code = _CODE[signal.SIGINT]
        except BrokenPipeError:
            _drop_output()
            return _CLOSED
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):  # as rich ends, with 1
                return _CLOSED
            raise
        except OSError as error:
            if error.errno not in _DISK:
                raise
            _drop_output()
            what = "the output" if error.filename is None else error.filename
            print(
                f"{name}: {what} cannot be written ({error.strerror}): make room, or choose "
                "another place",
                file=sys.stderr,
            )
            return _CANNOT_WRITE
    return _CODE[received[0]] if received else code


@contextlib.contextmanager
def _terminable(received: list[signal.Signals]) -> Iterator[None]:
    """SIGTERM as a `TerminatedError`, and its number in `received`; in the main thread alone, where
    Python handles signals."""

    def end(number: int, _frame: object) -> None:
        received.append(signal.Signals(number))
        raise TerminatedError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop_output() -> None:
    """Let the rest of the output go nowhere, so that Python does not stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
