"""The build as named steps, each with a saved product: ``python -m lbq_hw.build --help``.

`STEPS` is the whole flow. A step names the products that it needs and makes, its options and its
tools. `runner` executes the steps, skips a step whose inputs have not changed, and estimates the
time of each step. Steps that only check the design run in parallel with place and route.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbq_hw.flow import closing, commands, proofs, steps
from lbq_hw.flow.closing import FMAX, next_commands, results
from lbq_hw.flow.job import FlowError, Job, Options, Outcome
from lbq_hw.flow.runner import Step, plan, run
from lbq_hw.tools import MissingToolError
from lbq_hw.tools.process import ToolError

__all__ = [
    "FMAX", "PROOFS", "STEPS", "FlowError", "Job", "MissingToolError", "Options", "Outcome", "Step",
    "ToolError", "names", "next_commands", "plan", "results", "run", "with_proof",
]  # fmt: skip

_SOURCE = ("dataset", "data", "raw", "reading")
_IMAGES = (*_SOURCE, "images")
# Steps that run a tool for minutes depend only on the code that calls it and reads its output.
_TOOL_SOURCES = (
    "lbq_hw/flow/steps.py",
    "lbq_hw/flow/commands.py",
    "lbq_hw/families/{name}.py",
    "lbq_hw/tools/process.py",
    "lbq_hw/tools/logs.py",
)
STEPS = (
    Step(
        name="load",
        run=steps.load,
        makes=("net.lbq",),
        options=("model",),
        seconds=1,
    ),
    Step(
        name="fit",
        run=steps.fit_core,
        needs=("net.lbq",),
        makes=("core.json", "config.json", "clock.json", "images.npy"),
        options=("lanes", "weight_bits", "memory", "freq", "door", *_IMAGES),
        seconds=3,
    ),
    Step(
        name="compile",
        run=steps.compile_program,
        needs=("net.lbq", "config.json", "clock.json"),
        makes=("program.txt", "program.json"),
        seconds=1,
    ),
    Step(
        name="check",
        run=steps.check,
        needs=("net.lbq", "config.json", "clock.json"),
        makes=("check.json",),
        options=_IMAGES,
        beside=True,
        seconds=5,
        external=30,
    ),
    Step(
        name="rtl",
        run=steps.rtl,
        needs=("net.lbq", "core.json", "config.json", "clock.json"),
        makes=("top.v", "top.{constraints}", "rtl.json"),
        fabric=True,
        seconds=10,
        external=4,
    ),
    Step(
        name="simulate",
        run=steps.simulate,
        needs=("net.lbq", "config.json", "clock.json", "images.npy"),
        makes=("simulate.json",),
        options=("images",),
        optional_tools=("verilator", "g++"),
        sources=("lbq_hw", "lbq_hw/boards", "lbq_hw/sim"),
        beside=True,
        seconds=60,
        external=6,
    ),
    Step(
        name="synth",
        run=steps.synth,
        needs=("top.v", "config.json"),
        makes=("netlist.json", "cells.json"),
        tools=("yosys",),
        command=commands.script,
        sources=_TOOL_SOURCES,
        libraries=(),
        fabric=True,
        seconds=60,
        seconds_per_lut=0.012,
        external=0.4,
    ),
    Step(
        name="place",
        run=steps.place,
        needs=("netlist.json", "top.{constraints}", "config.json", "clock.json"),
        makes=("placed.{placed}", "place.json", "seeds.json", "{routed}"),
        options=("seed", "tries"),
        tools=("{placer}",),
        command=lambda board: " ".join(commands.place_arguments(board, clock_hz=0, seed=0)),
        chosen=steps.first_seed,
        sources=_TOOL_SOURCES,
        libraries=(),
        fabric=True,
        seconds=20,
        seconds_per_lut=0.012,
        external=3,
        slowed=40,  # digits on a Tang Nano 9K, 94 % full: 9 minutes instead of 2
    ),
    Step(
        name="pack",
        run=steps.pack,
        needs=("placed.{placed}",),
        makes=("top.{bitstream}", "{svf}"),
        tools=("{packer}",),
        command=lambda board: " ".join(commands.pack_arguments(board)),
        sources=_TOOL_SOURCES,
        libraries=(),
        fabric=True,
        seconds=5,
    ),
    Step(
        name="bits",
        run=steps.bits,
        needs=(
            "top.{constraints}",
            "netlist.json",
            "placed.{placed}",
            "top.{bitstream}",
            "clock.json",
        ),
        makes=("bits.json",),
        tools=("{packer}",),
        sources=("lbq_hw/bitstream", "lbq_hw/flow/steps.py", "lbq_hw/families", "lbq_hw/boards"),
        libraries=("numpy", "{distribution}"),
        fabric=True,
        seconds=10,
    ),
    Step(
        name="package",
        run=steps.package,
        needs=("net.lbq", "config.json", "clock.json", "top.{bitstream}", "{svf}", "rtl.json"),
        makes=("package",),
        options=_SOURCE,
        seconds=1,
    ),
    Step(
        name="report",
        run=closing.write_report,
        needs=("core.json", "check.json", "simulate.json", "place.json", "bits.json", "package"),
        makes=("report",),
        seconds=5,
    ),
)

PROOFS = {
    "bitstream": Step(
        name="prove",
        run=proofs.prove_bitstream,
        needs=(
            "top.{constraints}", "netlist.json", "placed.{placed}", "{routed}", "top.{bitstream}",
            "config.json", "clock.json", "images.npy", "package",
        ),
        makes=("prove.json",),
        options=("images",),
        optional_tools=("verilator", "g++"),
        sources=("lbq_hw", "lbq_hw/boards", "lbq_hw/sim"),
        fabric=True,
        seconds=300,
    ),
}  # fmt: skip
"""Optional proofs of a build by name of the proof; the step comes before the report."""


def with_proof(steps: Sequence[Step], name: str | None) -> tuple[Step, ...]:
    """The steps of a build, with the step of `PROOFS` that `name` asks for."""
    return (*steps[:-1], PROOFS[name], steps[-1]) if name is not None else tuple(steps)


def names() -> list[str]:
    """Names of the steps, in order."""
    return [step.name for step in STEPS]
