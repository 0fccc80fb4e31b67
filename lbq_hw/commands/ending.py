"""How a command ends early: one sentence on stderr, and the exit code that shells expect.

Every error reads ``error: SENTENCE``. The exit code is 2, or 1 if work had begun and failed. A
command that receives SIGINT (Ctrl-C) or SIGTERM ends its tools, prints ``interrupted`` and exits
with 130 or 143. If its output pipe is closed, it exits silently with 141. A full or read-only disk
is an error like any other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

REFUSED, INTERRUPTED = 2, 130
_TERMINATED, _CLOSED = 143, 141
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_WRITING = _DISK | {errno.EACCES, errno.EPERM}


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, as a KeyboardInterrupt, so that code for interrupts handles it too."""


def refuse(error: object, code: int = REFUSED) -> int:
    """Print an error; returns the exit code."""
    print(f"error: {said(error)}", file=sys.stderr)
    return code


def interrupted(tail: str = "") -> int:
    """Print that the command was interrupted, and the state of its work; returns the exit code."""
    print("interrupted" + (f"; {tail}" if tail else ""), file=sys.stderr)
    return INTERRUPTED


def run(command: Callable[[], int]) -> int:
    """Call a command; returns its exit code."""
    received: list[int] = []
    with _terminable(received):
        try:
            code = command()
            sys.stdout.flush()
        except KeyboardInterrupt:
            code = interrupted()
        except BrokenPipeError:
            _drop_output()
            return _CLOSED
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):  # rich turns it into exit code 1
                return _CLOSED
            raise
        except OSError as error:
            if error.errno not in _WRITING:
                raise
            _drop_output()
            return refuse(_unwritten(error))
    return _TERMINATED if received else code


def said(error: object) -> str:
    """An error in words; an error of the system without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.errno in _DISK:
        return _unwritten(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _unwritten(error: OSError) -> str:
    what = "the output" if error.filename is None else error.filename
    return f"{what} cannot be written ({error.strerror}): make room, or choose another place"


@contextlib.contextmanager
def _terminable(received: list[int]) -> Iterator[None]:
    """Turn SIGTERM into a `TerminatedError`, with its number in `received`. Only in the main
    thread, where Python handles signals."""

    def end(number: int, _frame: object) -> None:
        received.append(number)
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
    """Discard the rest of the output, so that Python's flush at exit does not fail."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
