"""The command lbq: it hands over, speaks its own name, and says what to install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lbq_hw
from lbq_hw import __main__ as command
from lbq_hw import boards, zoo
from lbq_hw.commands import extras
from lbq_hw.commands.arguments import COMMANDS, spoken

ROOT = Path(__file__).parents[2]
AS_MODULE = """
import runpy, sys
sys.modules[{library!r}] = None
sys.argv = ["x", *{arguments!r}]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
WITHOUT = """
import sys
sys.modules[{library!r}] = None
from {module} import main
sys.exit(main({arguments!r}))
"""


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A process in another folder, with our packages where an installation has them."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def without(library: str, module: str, arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """What a command says where a library is not installed."""
    code = WITHOUT.format(library=library, module=module, arguments=arguments)
    done = run(["-c", code], folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_calls_it_and_the_others_by_the_name_of_lbq(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: lbq {name} ")
    spelled = {other.spelled for other in COMMANDS.values()}
    assert not spelled & set(re.findall(r"python -m \w+(?:\.\w+)*", shown))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_python_runs_keeps_its_own_name(name: str, tmp_path: Path) -> None:
    words = COMMANDS[name].spelled.split()[1:]
    done = run([*words, "--help"], tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: {COMMANDS[name].spelled} ")


def test_only_commands_that_lbq_has_are_spoken_by_its_name() -> None:
    text = "python -m train, python -m train.export x; python -m sim.bench. python -m sim."
    assert spoken(text, "python -m train") == text
    assert spoken(text, "lbq train") == "lbq train, lbq export x; python -m sim.bench. lbq sim."


def test_lbq_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    alone = capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize("name", ["zoo", "boards"])
def test_what_there_is_can_be_listed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([name]) == 0
    shown = capsys.readouterr().out
    known = zoo.names() if name == "zoo" else boards.names()
    assert all(re.search(rf"(^|[│ ]){re.escape(one)} ", shown, re.M) for one in known)
    assert command.main([name, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one if name == "zoo" else one["name"] for one in listed] == list(known)


def test_help_lists_the_commands_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert re.search(f"^  {name} +{re.escape(entry.meaning)}$", shown, re.M)


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--version"])
    assert capsys.readouterr().out == f"lbq-hw {lbq_hw.__version__}\n"


def test_arguments_and_the_exit_code_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["evaluate", "--model", "none"]) == 2
    assert capsys.readouterr().err.startswith("error: no model 'none': give the path of ")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_error_in_the_arguments_reads_as_all_others(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([name, "--no-such-option"])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"usage: lbq {name} ")
    assert err.splitlines()[-1].startswith("error: ")


def test_an_unknown_command_names_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["trian"])
    assert ended.value.code == 2
    assert "invalid choice: 'trian'" in capsys.readouterr().err


def test_the_installed_script_calls_this_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"lbq": "lbq_hw.__main__:main"}


def test_lbq_train_works_beside_a_train_of_the_users_own(tmp_path: Path) -> None:
    """As the script that pip installs does it: its own folder is searched, the current is not."""
    (tmp_path / "train.py").write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    script = tmp_path / "bin" / "lbq"
    script.parent.mkdir()
    script.write_text("import sys\nfrom lbq_hw.__main__ import main\nsys.exit(main())\n", "utf-8")
    done = run([str(script), "train", "--list"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "digits" in done.stdout
    assert run(["-m", "train", "--list"], tmp_path).stderr == "not ours\n"
    assert run(["-m", "lbq_hw.train", "--list"], tmp_path).stdout == done.stdout


@pytest.mark.parametrize("name", ["train", "export"])
def test_without_torch_lbq_names_the_extra(name: str, tmp_path: Path) -> None:
    sentence = "error: PyTorch is not installed: pip install 'lbq-hw[train]'\n"
    assert without("torch", "lbq_hw.__main__", [name, "--help"], tmp_path) == (2, "", sentence)


def test_without_torch_the_module_names_the_extra_too(tmp_path: Path) -> None:
    sentence = "error: PyTorch is not installed: pip install 'lbq-hw[train]'\n"
    assert without("torch", "lbq_hw.train.__main__", ["--list"], tmp_path) == (2, "", sentence)


@pytest.mark.parametrize(
    ("module", "library", "arguments", "sentence"),
    [
        (
            "lbq_hw.train.export",
            "torch",
            ["--help"],
            "error: PyTorch is not installed: pip install 'lbq-hw[train]'\n",
        ),
        (
            "lbq_hw.build",
            "amaranth",
            ["--board", "icebreaker", "--model", "mnist-4bit", "--until", "fit"],
            "error: Amaranth is not installed: pip install 'lbq-hw[hw]'\n",
        ),
    ],
)
def test_a_module_that_is_run_names_the_extra_instead_of_a_traceback(
    module: str, library: str, arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    code = AS_MODULE.format(library=library, module=module, arguments=arguments)
    done = run(["-c", code], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(sentence)
    assert "Traceback" not in done.stderr


def test_without_amaranth_a_build_names_the_extra(tmp_path: Path) -> None:
    words = ["build", "--board", "icebreaker", "--model", "mnist-4bit", "--until", "fit"]
    code, out, err = without("amaranth", "lbq_hw.__main__", words, tmp_path)
    assert (code, out) == (2, "")
    assert err.endswith("error: Amaranth is not installed: pip install 'lbq-hw[hw]'\n")


def test_a_library_that_no_extra_brings_is_a_bug_and_raised() -> None:
    error = ModuleNotFoundError("No module named 'numpi'", name="numpi")
    with pytest.raises(ModuleNotFoundError) as caught:
        extras.remedy(error)
    assert caught.value is error
