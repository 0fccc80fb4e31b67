"""A program as a text listing, and as a JSON-able object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from lbq_hw import isa
from lbq_hw.compiler.program import LayerInfo, Program
from lbq_hw.config import CoreConfig
from lbq_hw.network import Pair, Shape

Tables = dict[str, list[dict[str, int]]]

_MEMORIES = {
    "plane_words": "activations, words",
    "weight_rows": "weights, rows",
    "channels": "parameters, channels",
    "logits": "logits",
    **{name: f"{record.name} table" for name, record in isa.TABLES.items()},
}


def text(program: Program) -> str:
    """The listing: memories, tensors, then every layer with its paths, runs and segments."""
    return "\n".join(_lines(program)) + "\n"


def summary(program: Program) -> dict[str, Any]:
    """The program as a JSON-able object; records are decoded, unless passes overwrite them."""
    tables = {name: [] if program.config.external else program.table(name) for name in isa.TABLES}
    return {
        "name": program.name,
        "config": program.config.to_dict(),
        "digest": program.config.digest,
        "timesteps": program.timesteps,
        "usage": program.usage,
        "patches": None if program.patches is None else asdict(program.patches),
        "tensors": [
            {**asdict(tensor), "words": tensor.words} for tensor in program.tensors.values()
        ],
        **{name: tables[name] for name in isa.TABLES},
        "layers": [
            {**asdict(info), "record": record}
            for info, record in zip_longest(program.info, tables["layers"])
        ],
        "tape_bytes": len(program.tape),
        "passes": [asdict(one) for one in program.passes],
        "budget": [layer.summary() for layer in program.budget],
    }


def _lines(program: Program) -> Iterator[str]:
    config = program.config
    yield (
        f"program {program.name!r}, T = {program.timesteps}, for core {config.digest[:12]}: "
        f"P = {config.lanes}, W = {config.word}, S = {config.summary}, L = {config.units}, "
        f"{config.weight_bits}-bit weights"
    )
    yield ""
    for field, used in program.usage.items():
        have = getattr(config, field)
        share = 100 * used / have
        yield f"  {_MEMORIES[field]:22} {used:8} of {have:8}  {share:5.1f} %"
    yield ""
    yield "  tensor                 words           bits per pixel  planes  frames  kept for layers"
    for tensor in program.tensors.values():
        place = f"{tensor.base} - {tensor.end - 1}"
        kept = f"{max(tensor.born, 0)} - {max(tensor.dies, 0)}"
        yield (
            f"  {tensor.name:22} {place:15} {tensor.pitch:14}  {tensor.planes:6}  "
            f"{tensor.frames:6}  {kept}"
        )
    if (patches := program.patches) is not None:
        yield (
            f"  the host gathers the input: a pixel holds a {_shape(patches.kernel)} field of view "
            f"(stride {_shape(patches.stride)}, padding {_shape(patches.padding)}) of "
            f"{_shape(program.input.tensor_shape)}, in {patches.channels} channels"
        )
    if config.external:
        yield ""
        yield from _budget(program)
        return
    tables = {name: program.table(name) for name in isa.TABLES}
    for number, info in enumerate(program.info):
        yield ""
        yield from _layer(config, tables, number, info)


def _budget(program: Program) -> Iterator[str]:
    """The planned cost of each layer; compute, and so the waits, are estimates."""
    yield (
        f"tape: {len(program.tape)} bytes, {len(program.passes)} passes; thousands of cycles, "
        f"planned:"
    )
    heading = ("bands", "stay", "part", "passes", "rows", "fetched", "kB", "compute", "fetch")
    yield f"  {'layer':22}" + "".join(f"{name:>9}" for name in (*heading, "wait"))
    for layer in program.budget:
        choice = layer.choice
        counts = (choice.bands, choice.resident, choice.part, layer.passes, layer.rows)
        thousands = (4 * layer.slices, layer.compute, layer.fetch, layer.wait)
        yield (
            f"  {layer.name:22}"
            + "".join(f"{count:9}" for count in (*counts, layer.fetched))
            + "".join(f"{number / 1000:9.1f}" for number in thousands)
        )
    compute, wait = (sum(getattr(x, name) for x in program.budget) for name in ("compute", "wait"))
    yield f"  {compute + wait} cycles: {compute} of compute, {wait} of waits for the tape"


def _layer(config: CoreConfig, tables: Tables, number: int, info: LayerInfo) -> Iterator[str]:
    layer = tables["layers"][number]
    kind = "readout" if layer["readout"] else f"N = {layer['capacity']}"
    if layer["static"]:
        kind += ", static current"
    yield f"layer {number} {info.name!r}: {_shape(info.shape)}, {kind}"
    if info.output_shape != info.shape or layer["window_rows_last"] or layer["window_columns_last"]:
        window = f"{layer['window_rows_last'] + 1}x{layer['window_columns_last'] + 1}"
        yield f"  max-pool {window} -> {_shape(info.output_shape)}"
    leak = "" if layer["readout"] else f", decay {layer['decay']}/{1 << config.decay_bits}"
    yield (
        f"  {layer['tiles_last'] + 1} tile(s), F = {layer['fraction']}{leak}, accumulator "
        f"{info.acc_bits} of {config.acc_bits} bits, membrane {info.membrane_bits} of "
        f"{config.membrane_bits}"
    )
    weight_last = info.weight_first + info.weight_rows - 1
    yield f"  weight rows {info.weight_first} - {weight_last}, parameter tile {layer['param']}"
    paths, runs, segments = (tables[name] for name in ("paths", "runs", "segments"))
    own = segments[layer["segment_first"] : layer["segment_last"] + 1]
    for index in range(layer["path_first"], layer["path_last"] + 1):
        path = paths[index]
        kind = "identity" if path["identity"] else "field of view"
        names = ("window", "step") if config.window > 1 else ("step",)
        down, right = (
            " ".join(f"+{path[f'{axis}_{name}']}" for name in names) for axis in ("row", "column")
        )
        yield (
            f"  path {index - layer['path_first']}: {kind} at row {path['row_init']} "
            f"{down} of {path['row_low']}..{path['row_high']}, "
            f"bit {path['column_init']} {right} "
            f"of {path['column_low']}..{path['column_high']}"
        )
        for run in runs[path["run_first"] : path["run_last"] + 1]:
            yield (
                f"    run at row {run['row']:+} bit {run['column']:+}: "
                f"{run['length_last'] + 1} bits, weight {run['weight']:+}"
            )
    for segment in own:
        yield (
            f"  segment 2**{segment['exponent']}: path {segment['path']}, words from "
            f"{segment['base']}, weight rows from {segment['weight']}"
        )


def _shape(shape: Shape | Pair) -> str:
    return "x".join(str(size) for size in shape)
