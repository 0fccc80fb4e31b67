"""Every file that ``lbq rtl`` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jinja2

import lbq_hw
from lbq_hw.cycles import most_cycles
from lbq_hw.isa import Error, bus, regions
from lbq_hw.isa.regions import Region
from lbq_hw.rtl import registers
from lbq_hw.rtl.design import NAME, Design

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("lbq_hw.rtl"),
    autoescape=False,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES = {
    f"{NAME}.h": "driver.h",
    f"{NAME}.c": "driver.c",
    f"{NAME}.core": "fusesoc.core",
    "example_top.v": "example_top.v",
}
_PER_LINE = 8


def files(design: Design) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files; the Verilog is last because it takes longest."""
    config, name = design.program.config, design.program.name
    facts = _facts(design)
    for file, template in _TEMPLATES.items():
        yield file, _ENVIRONMENT.get_template(template).render(facts).encode()
    yield "registers.md", registers.markdown(config, name).encode()
    yield "registers.rdl", registers.systemrdl(config, name).encode()
    yield "core.json", f"{config.to_json()}\n".encode()
    if config.external:
        yield "tape.bin", design.program.tape
    yield f"{NAME}.v", design.verilog().encode()


def _facts(design: Design) -> dict[str, Any]:
    """The variables of the templates."""
    program, layout = design.program, design.program.pixels
    config = program.config
    return {
        "name": program.name,
        "version": lbq_hw.__version__,
        "module": NAME,
        "bus": design.bus,
        "external": config.external,
        "lanes": config.lanes,
        "layout": layout,
        "shift": program.input.shift,
        "capacity": program.input.capacity,
        "tdata_bits": -(-layout.pixel_bits // 8) * 8,
        "address_bits": bus.address_bits(config),
        "registers": registers.placed(config),
        "windows": registers.windows(config),
        "digest": int(config.digest[:8], 16),
        "magic": regions.MAGIC,
        "logits": design.logits,
        "logit_slices": regions.slices(config)[Region.LOGITS],
        "logits_at": bus.address(config, regions.address(config, Region.LOGITS, 0)),
        "most_cycles": 2 * sum(most_cycles(program)) if not config.external else 0,
        "errors": list(Error),
        "program": [] if config.external else list(_program(design)),
        "tape_words": len(program.tape) // (config.external // 8) if config.external else 0,
    }


def _program(design: Design) -> Iterator[dict[str, Any]]:
    """The contents of each region to be loaded, as lines of C."""
    config = design.program.config
    for region, slices in design.program.contents.slices().items():
        if not len(slices):
            continue
        words = [f"0x{word:08x}" for word in slices.ravel().tolist()]
        lines = [words[at : at + _PER_LINE] for at in range(0, len(words), _PER_LINE)]
        count = slices.shape[1]
        yield {
            "name": region.name.lower(),
            "at": bus.address(config, regions.address(config, region, 0)),
            "entries": len(slices),
            "slices": count,
            "stride": 1 << (count - 1).bit_length(),
            "lines": [", ".join(line) for line in lines],
        }
