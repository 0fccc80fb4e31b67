"""Commands that are stopped, or whose output goes away: one sentence, the right exit code."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import evaluate
from lbq_hw.__main__ import main as lbq
from lbq_hw.commands import ending
from lbq_hw.tools.process import StoppedError, finish
from lbq_hw.train.nir import read

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """An interrupt raises KeyboardInterrupt, also where tests run in the background of a shell,
    which has its children ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def killing(number: signal.Signals) -> Any:
    """A function that gets a signal while it runs."""

    def work(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    return work


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.parametrize("name", ["evaluate", "import"])
def test_a_command_that_is_stopped_says_so(
    name: str,
    number: signal.Signals,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(evaluate, "load_samples", killing(number))
    monkeypatch.setattr(read, "load", killing(number))
    words = [str(tmp_path / "net.nir"), "--dataset", "digits", "--timesteps", "2"]
    before = signal.getsignal(signal.SIGTERM)
    assert lbq([name, *(words if name == "import" else [])]) == code
    assert capsys.readouterr() == ("", "interrupted\n")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_that_ends_itself_when_it_is_stopped_has_the_code_too() -> None:
    """As a build does, which says what it keeps."""

    def command() -> int:
        try:
            killing(signal.SIGTERM)()
        except KeyboardInterrupt:
            return 130
        return 0

    assert ending.run(command) == 143


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(ending.run(lambda: 7)))
    thread.start()
    thread.join()
    assert found == [7]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_is_full_or_read_only_is_one_sentence(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        raise OSError(code, os.strerror(code), "out/net.lbq")

    with Path(os.devnull).open("w") as nowhere:
        kept, sys.stdout = sys.stdout, nowhere
        try:
            assert ending.run(command) == 2
        finally:
            sys.stdout = kept
    assert capsys.readouterr().err == (
        f"error: out/net.lbq cannot be written ({os.strerror(code)}): make room, or choose "
        "another place\n"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOENT, "No such file", "a.json"), "a.json: No such file"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS), "a.json"), "a.json cannot be written "
         "(Read-only file system): make room, or choose another place"),
        (OSError("odd"), "odd"),
        (ValueError("bits must be 2, not 1"), "bits must be 2, not 1"),
    ],
)  # fmt: skip
def test_an_error_is_printed_without_the_system_s_number(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending.refuse(error) == 2
    assert capsys.readouterr() == ("", f"error: {said}\n")


def test_a_run_that_cannot_be_written_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    assert lbq(["train", "--config", "digits-t1", "--out", str(full / "run")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {full}")


def test_an_error_that_is_no_want_of_room_is_a_bug_and_raised() -> None:
    def command() -> int:
        raise OSError(errno.EIO, "odd")

    with pytest.raises(OSError, match="odd"):
        ending.run(command)


COMMANDS = (
    ["-m", "lbq_hw", "zoo", "--json"],
    ["-m", "lbq_hw", "boards"],
    ["-m", "lbq_hw.evaluate", "--limit", "2", "--json"],
)


@pytest.mark.parametrize("words", COMMANDS, ids=["zoo", "boards", "evaluate"])
def test_nobody_reading_its_output_ends_a_command_without_a_word(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("words", COMMANDS, ids=["zoo", "boards", "evaluate"])
def test_output_to_a_full_disk_is_one_sentence(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "error: the output cannot be written (No space left on device): make room, or choose "
        "another place\n"
    )


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("how", ["stopped", "interrupted"])
def test_a_program_that_is_ended_early_takes_what_it_started_along(
    how: str, tmp_path: Path
) -> None:
    """As Verilator does with make and the compiler."""
    told = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 1000 & echo $! > {told}.new; mv {told}.new {told}; wait"]
    stopped = threading.Event()

    def end() -> None:
        while not told.is_file():
            time.sleep(0.02)
        if how == "stopped":
            stopped.set()
        else:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(StoppedError if how == "stopped" else KeyboardInterrupt):
        finish(command, stopped=stopped)
    thread.join()
    started = int(told.read_text("utf-8"))
    while not gone(started):  # until init has it
        time.sleep(0.02)


def test_what_a_program_prints_is_kept() -> None:
    done = finish(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


SLOW_TOOL = """#!{python}
import os, sys, time
if sys.argv[1] in ("-V", "--version"):
    sys.exit(print("yosys 1.0.0 (fake)"))
with open("{pid}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("{pid}.new", "{pid}")
time.sleep(1000)
"""


def test_a_build_that_is_terminated_ends_its_tool(tmp_path: Path) -> None:
    tool, pid = tmp_path / "yosys", tmp_path / "pid"
    tool.write_text(SLOW_TOOL.format(python=sys.executable, pid=pid), encoding="utf-8")
    tool.chmod(0o755)
    folder = tmp_path / "build"
    words = ["-m", "lbq_hw", "build", "--board", "ulx3s-12f", "--model", "digits", "--images", "1"]
    # Without Verilator, so that nothing runs beside the tool.
    paths = {"PATH": "/nowhere", "YOSYS": str(tool)}
    build = subprocess.Popen(
        [sys.executable, *words, "--build-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | paths,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not pid.is_file() and build.poll() is None:
        time.sleep(0.05)
    build.terminate()
    _, said = build.communicate()
    assert build.returncode == 143
    lines = said.splitlines()
    assert lines[-1] == f"interrupted; finished steps are kept in {folder}"
    assert "Traceback" not in said
    assert gone(int(pid.read_text("utf-8")))
