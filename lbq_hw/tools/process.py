"""A tool as a child process: its log in a file, its last relevant lines when it fails."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event

from lbq_hw.tools import Found, logs

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 5  # from SIGTERM to SIGKILL
_MUCH = 10
_USED = (11, 12)  # fields of /proc/PID/stat after the name: user time and system time


class ToolError(RuntimeError):
    """A tool failed; the message is a sentence, then the lines of its log that tell why."""


class GivenUpError(RuntimeError):
    """A tool was ended early: it made no progress, or its log told the caller to give up."""


class StoppedError(RuntimeError):
    """A program was ended because a parallel step had failed."""


def call(
    found: Found,
    arguments: Sequence[str],
    *,
    folder: Path,
    log: Path,
    stopped: Event | None = None,
    patience: float | None = None,
    give_up: Callable[[Path], bool] = lambda _log: False,
) -> None:
    """Run a tool in `folder` and keep all that it prints in `log`.

    ToolError if it fails; OSError if it fails because the disk is full; StoppedError soon after
    `stopped` is set. GivenUpError if `give_up` is true for its log, or if it prints nothing for
    `patience` seconds of CPU time and for `_MUCH` times the CPU time that it had used before. If
    the call ends early, also by an interrupt, the tool is ended too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        file.write(f"$ {found.tool.name} {' '.join(arguments)}\n")
        file.flush()
        process = subprocess.Popen(
            [found.path, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            silence = _Silence(process.pid, log, patience)
            code = _wait(process, stopped or Event(), lambda: silence.too_long() or give_up(log))
        finally:
            _end(process)
    if code:
        text = log.read_text(encoding="utf-8", errors="replace")
        if os.strerror(errno.ENOSPC) in text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        what = logs.explanation(text) or f"failed ({ended})"
        lines = "\n".join(f"  {line}" for line in logs.relevant_lines(text))
        raise ToolError(f"{found.tool.name} {what}; its log is {log}\n{lines}")


def finish(
    command: Sequence[str], *, stopped: Event | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it prints.

    StoppedError soon after `stopped` is set. If the call ends early, also by an interrupt, the
    program and all its children are ended.
    """
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while stopped is None or not stopped.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = process.communicate(timeout=_POLL_SECONDS)
                return subprocess.CompletedProcess(command, process.returncode, out, err)
        raise StoppedError("a step beside this one failed")
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a session leader and all programs of its session."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GRACE_SECONDS)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


class _Silence:
    """How long a process runs without new output in its log. CPU time is counted, so that a busy
    machine makes no difference. If the system does not tell CPU time, no silence is too long.
    """

    def __init__(self, process: int, log: Path, patience: float | None) -> None:
        self._stat, self._log, self._patience = Path(f"/proc/{process}/stat"), log, patience
        self._size, self._spoke = -1, 0.0

    def too_long(self) -> bool:
        if self._patience is None or not self._stat.exists():
            return False
        fields = self._stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        computed = sum(int(fields[i]) for i in _USED) / os.sysconf("SC_CLK_TCK")
        if self._log.stat().st_size != self._size:
            self._size, self._spoke = self._log.stat().st_size, computed
        return computed - self._spoke > max(self._patience, _MUCH * self._spoke)


def _wait(process: subprocess.Popen[bytes], stopped: Event, give_up: Callable[[], bool]) -> int:
    while not stopped.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_POLL_SECONDS)
        if give_up():
            raise GivenUpError("it was given up")
    raise StoppedError("a step beside this one failed")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_SECONDS)
        return
    process.kill()
    process.wait()
