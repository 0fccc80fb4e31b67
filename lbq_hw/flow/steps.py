"""The steps of a build: each reads products of earlier steps and writes its own to `work`.

`flow.STEPS` lists them in order. A step returns a note for the user. If it fails, it raises
`FlowError` or an error of the functions that it calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw import bitstream, cycles, families, golden, interpreter, resources, units
from lbq_hw.boards import clocks
from lbq_hw.compiler import listing
from lbq_hw.config import CoreConfig
from lbq_hw.file import load as load_network
from lbq_hw.flow import commands
from lbq_hw.flow.job import FlowError, Job
from lbq_hw.tools import locate, logs, need
from lbq_hw.tools.process import GivenUpError, call, finish

_ZEROS = re.compile(r"  initial begin\n(?:    \S+\[\d+\] = \d+'[hd]0+;\n)+  end\n")
_WORDS = re.compile(r"  initial begin\n((?:    \S+\[\d+\] = \d+'[hd]\w+;\n)+)  end\n")
_PATIENCE = 180  # seconds; a placer that finds no place for a cell tries forever
_ROUNDS = 100  # of a router: the builds that finished needed at most 65
_HOPELESS = 0.95  # of the clock, before routing: the estimate was at most 3 % too low
_LARGE = 4096  # words of a memory whose zeros take Yosys long to read
_LONG, _BLOCK = 1024, 256  # words in one block: slow to read for Yosys, and fast to read


def load(job: Job, work: Path) -> str:
    """Read and check the network."""
    network = load_network(job.options.model)
    shutil.copyfile(job.options.model, work / "net.lbq")
    bits, steps = network.weight_bits, network.timesteps
    return f"{network.name}: {network.parameters:,} parameters of {bits} bits, T = {steps}"


def fit_core(job: Job, work: Path) -> str:
    """Size the core for the board."""
    sized = job.sized()
    _write(work / "core.json", sized.to_dict())
    _write(work / "config.json", sized.to_dict()["config"])
    _write(work / "clock.json", {"clock_hz": sized.clock_hz})
    np.save(work / "images.npy", job.images.raw)
    without = job.options.door and sized.opening is None
    return f"{sized.summary}, without room for a door" if without else sized.summary


def compile_program(job: Job, work: Path) -> str:
    """Compile the network for that core."""
    (work / "program.txt").write_text(listing.text(job.program), encoding="utf-8")
    _write(work / "program.json", listing.summary(job.program))
    chip, size = job.board.chip, len(job.program.tape)
    if job.config.external and chip is not None and size > chip.tape_bytes:
        raise FlowError(
            f"the tape has {size:,} bytes, the memory of {job.board.title} {chip.tape_bytes:,}: "
            "take a board with more of it, or train with fewer weight_bits"
        )
    used = job.program.usage
    return f"{used['weight_rows']:,} weight rows, {used['plane_words']:,} plane words"


def check(job: Job, work: Path) -> str:
    """Execute the program in numpy, compare it with the golden model, and predict its cycles."""
    expected = golden.run(job.network, job.images.raw, keep="levels", observe=lambda _: job.go_on())
    predictions = []
    for number, raw in enumerate(job.images.raw):
        job.go_on()
        found = interpreter.run(job.program, raw)
        predictions.append(cycles.predict(job.program, raw, found.levels, timing=job.timing))
        for name, levels in expected.emitted(number).items():
            if (found.levels[name] != levels).any():
                raise FlowError(
                    f"the program differs from the golden model: image {number}, layer {name!r}"
                )
        if (found.logits != expected.logits[number]).any():
            raise FlowError(f"the program differs from the golden model: image {number}, logits")
    means = cycles.means(predictions, adders=job.config.adders)
    _write(work / "check.json", {"source": job.images.source, **means})
    whole = f"{means['cycles']:,.0f} cycles per image"
    seen = units.images(means["images"])
    return f"equal on {seen} of {job.images.source}, which will take {whole}"


def rtl(job: Job, work: Path) -> str:
    """Write the board's design as Verilog, with the constraints of its pins."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    from lbq_hw.core.system import System
    from lbq_hw.core.top import Top

    board, family = job.board, families.of(job.board)
    platform = board.make_platform()
    tape = job.config.external > 0
    baked = not tape and family.baked(platform)
    system = System(
        job.config,
        clock_hz=job.clock_hz,
        baud=board.baud,
        image=job.program.image() if baked else None,
        chip=board.chip if tape else None,
        opening=job.opening,
    )
    setting = clocks.solve(board.pll, board.clock_hz, job.clock_hz)
    plan = platform.prepare(
        Top(board=board, system=system, setting=setting), "top", debug_verilog=True, emit_src=False
    )
    for name, product in (
        ("top.debug.v", "top.v"),
        (f"top.{family.constraints}", f"top.{family.constraints}"),
    ):
        made = plan.files[name]
        text = made if isinstance(made, str) else made.decode()
        if product == "top.v":
            text = in_blocks(without_zeros(text, least=1 if tape else _LARGE))
        (work / product).write_text(text, encoding="utf-8")
    _write(work / "rtl.json", {"baked": baked})
    size = (work / "top.v").stat().st_size
    return f"{size / 1e6:.1f} MB of Verilog, the model {'' if baked else 'not '}baked in"


def without_zeros(verilog: str, *, least: int = 1) -> str:
    """Verilog without the initial contents of memories that are all zero and have at least `least`
    words.

    For memories that fill a chip, Yosys takes minutes to read them; without initial contents, block
    RAMs are zero too.
    """
    return _ZEROS.sub(lambda found: "" if found[0].count(" = ") >= least else found[0], verilog)


def in_blocks(verilog: str) -> str:
    """Verilog with the initial contents of large memories in many short blocks: the time that Yosys
    takes for a block grows with the square of its length.
    """

    def cut(found: re.Match[str]) -> str:
        lines = found[1].splitlines(keepends=True)
        if len(lines) <= _LONG:
            return found[0]
        blocks = ("".join(lines[i : i + _BLOCK]) for i in range(0, len(lines), _BLOCK))
        return "".join(f"  initial begin\n{block}  end\n" for block in blocks)

    return _WORDS.sub(cut, verilog)


def simulate(job: Job, work: Path) -> str:
    """Run the core's RTL in Verilator and compare every layer with the golden model."""
    if locate("verilator") is None:
        _write(work / "simulate.json", {"skipped": "Verilator is missing"})
        return "skipped, because Verilator is missing: sudo apt install verilator g++"
    # -P: a lbq_hw.py in the current folder is not ours.
    command = [sys.executable, "-P", "-m", "lbq_hw.sim", "--json"]
    command += ["--images", str(job.options.images)]
    for option, name in (("model", "net.lbq"), ("core", "config.json"), ("raw", "images.npy")):
        command += [f"--{option}", str(job.folder / name)]
    if job.config.external:
        command += ["--board", job.board.spelled, "--freq", f"{job.clock_hz / 1e6:.6f}"]
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = finish(command, env=env, stopped=job.stopped)
    log = job.log("simulate")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stderr, encoding="utf-8")
    if done.returncode not in (0, 1) or not done.stdout:
        raise FlowError(f"the simulation failed; its log is {log}\n{done.stderr.strip()[-1500:]}")
    facts = json.loads(done.stdout)
    if not facts["bit_exact"]:
        waves = job.folder / "logs" / "simulate.fst"
        finish([*command, "--waves", str(waves)], env=env, stopped=job.stopped)
        kept = f"; its waves are {waves}" if waves.is_file() else ""
        raise FlowError(f"the RTL differs from the golden model: {facts['difference']}{kept}")
    _write(work / "simulate.json", facts)
    time = units.seconds(facts["cycles"] / job.clock_hz)
    mean = f"{facts['cycles']:,.0f} cycles per image ({time})"
    return f"bit-exact; {mean}, the mean of {facts['images']} of {job.images.source}"


def synth(job: Job, work: Path) -> str:
    """Turn the Verilog into the fabric's cells."""
    shutil.copyfile(job.folder / "top.v", work / "top.v")
    arguments = ["-p", commands.script(job.board, full=job.config.external > 0)]
    call(need("yosys"), arguments, folder=work, log=job.log("synth"), stopped=job.stopped)
    cells = logs.cells(logs.parse(_text(work / "cells.json"), name="cells.json"))
    return f"{sum(cells.values()):,} cells"


def place(job: Job, work: Path) -> str:
    """Place and route, with more seeds while the clock is missed."""
    family, options = families.of(job.board), job.options
    for name in ("netlist.json", f"top.{family.constraints}"):
        shutil.copyfile(job.folder / name, work / name)
    tried: dict[str, float] = {}
    stuck: list[str] = []
    path = ""
    full = job.config.external > 0
    first = first_seed(job)
    assert first is not None
    last = first + options.tries - 1
    for seed in range(first, last + 1):
        arguments = commands.place_arguments(job.board, clock_hz=job.clock_hz, seed=seed, full=full)
        log = job.log(f"place-seed{seed}")
        try:
            call(
                need(family.placer.name), arguments,
                folder=work, log=log, stopped=job.stopped, patience=_PATIENCE,
                give_up=lambda log, seed=seed: (
                    logs.rounds(log) > _ROUNDS or (seed != last and bool(_hopeless(job, log)))
                ),
            )  # fmt: skip
        except GivenUpError:
            estimate = _hopeless(job, log)
            if estimate:
                tried[str(seed)] = estimate
            else:
                stuck.append(str(seed))
            continue
        timing = logs.timing(logs.parse(_text(work / "place.json"), name="place.json"))
        fmax = tried[str(seed)] = min(clock.fmax_hz for clock in timing.clocks)
        if fmax >= job.clock_hz:
            _write(work / "seeds.json", {"seed": seed, "seeds": tried})
            return f"{fmax / 1e6:.1f} MHz of {job.clock_hz / 1e6:.4g} with seed {seed}"
        if fmax == max(tried.values()):
            path = "\n".join(f"  {line}" for line in _critical(timing))
    if not tried:
        raise FlowError(
            f"{family.placer.name} finds no place for all cells, or no way for all wires, with the "
            f"seeds {', '.join(stuck)}: try another --seed or fewer --lanes"
        )
    best = max(tried.values()) / 1e6
    worst = f"\nits critical path:\n{path}" if path else ""
    raise FlowError(
        f"the clock of {units.megahertz(job.clock_hz)} is missed with the seeds "
        f"{', '.join(tried)}; the best reaches {best:.1f} MHz: try --freq {int(best)} or fewer "
        f"--lanes{worst}"
    )


def _hopeless(job: Job, log: Path) -> float | None:
    """The frequency that is estimated before the long work of routing, if it misses the clock by
    much.
    """
    estimate = logs.before_routing(log)
    return estimate if estimate is not None and estimate < _HOPELESS * job.clock_hz else None


def first_seed(job: Job) -> int | None:
    """The seed that `place` begins with: the seed option; if it is not given, the seed with which
    the same netlist met its clock in a measured build; otherwise 1. None before there is a netlist.
    """
    if job.options.seed is not None:
        return job.options.seed
    config, netlist = job.folder / "config.json", job.folder / "netlist.json"
    if not (config.is_file() and netlist.is_file()):
        return None
    had = resources.met(CoreConfig.from_json(_text(config)), job.board)
    if had is None or had.netlist != logs.netlist_digest(netlist):
        return 1
    return had.seed


def pack(job: Job, work: Path) -> str:
    """Turn the routed design into a bitstream."""
    family = families.of(job.board)
    placed = f"placed.{family.placed}"
    shutil.copyfile(job.folder / placed, work / placed)
    arguments = commands.pack_arguments(job.board)
    call(need(family.packer.name), arguments, folder=work, log=job.log("pack"))
    packed = work / f"top.{family.bitstream}"
    return f"{packed.name}, {packed.stat().st_size / 1024:,.0f} KB"


def bits(job: Job, work: Path) -> str:
    """Decode the bitstream and compare it with the routed design and the board's constraints."""
    files = bitstream.files(job.folder, job.board)
    setting = clocks.solve(job.board.pll, job.board.clock_hz, job.clock_hz)
    try:
        facts = bitstream.check(files, job.board, setting)
    except bitstream.UndecodedError as error:
        _write(work / "bits.json", {"skipped": str(error)})
        return f"skipped, for {error}"
    except bitstream.BitsError as error:
        raise FlowError(str(error)) from error
    _write(work / "bits.json", facts)
    return facts["summary"]


def package(job: Job, work: Path) -> str:
    """Gather what the host needs."""
    from lbq_hw import package as packages

    board = job.board
    has_fabric = board.family is not None
    packages.write(
        work / "package",
        board=board.name,
        config=job.config,
        model=job.folder / "net.lbq",
        clock_hz=job.clock_hz,
        baud=board.baud,
        baked=has_fabric and job.json("rtl.json")["baked"],
        bitstream=job.folder / f"top.{families.of(board).bitstream}" if has_fabric else None,
        images=job.selftest.raw,
        tape=job.program.tape if job.config.external else b"",
        chip=board.chip,
        rates=() if board.bridge is None else board.bridge.rates,
        opening=job.opening,
    )
    if has_fabric and (svf := commands.svf(board)):
        shutil.copyfile(job.folder / svf, work / "package" / f"{board.name}.svf")
    if not job.config.external or board.chip is None:
        return str(job.folder / "package")
    size = len(job.program.tape)
    memory = f"{size / 1e6:,.1f} of {board.chip.size_bytes / 1e6:,.1f} MB of external memory"
    return f"{job.folder / 'package'}, whose tape takes {memory}"


def _critical(timing: logs.Timing) -> list[str]:
    """The longest path as lines."""
    path = max(timing.paths, key=lambda path: path.delay_ns, default=None)
    if path is None:
        return ["none was reported"]
    return [f"{path.delay_ns:.1f} ns from {path.source} to {path.sink}"] + [
        f"{segment.delay_ns:6.2f} ns  {segment.kind:8}  {segment.net or segment.source}"
        for segment in path.segments
    ]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
