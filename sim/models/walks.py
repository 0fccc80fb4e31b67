"""The expected output of a walk, computed from the records without state: it multiplies where the
hardware adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.payload import ScanKind
from lbq_hw.network.neuron import FLAGS

Values = dict[str, int]


class Stopped(Exception):
    """The walk ends here, at the record or layer of this number."""

    def __init__(self, error: isa.Error, at: int) -> None:
        super().__init__(error, at)
        self.error, self.at = error, at


@dataclass
class Walk:
    """Requests (an END has only its kind and ``end``), StepInfos, LayerInfos, and the number of
    requests at the end of each layer.

    `costs`: for each step, the cycles of its runs at one request per cycle; `moves`: for each step,
    the cycles of the advances before it that it does not share with another step.
    """

    requests: list[dict] = field(default_factory=list)
    steps: list[dict] = field(default_factory=list)
    layers: list[Values] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    error: isa.Error = isa.Error.NONE
    at: int = 0
    costs: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    setup: int = 0


def walk(config: CoreConfig, tables: Mapping[str, Sequence[int]]) -> Walk:
    """Walk encoded tables; entries that are not given are 0."""
    return _Walker(config, tables).run()


class _Walker:
    def __init__(self, config: CoreConfig, tables: Mapping[str, Sequence[int]]) -> None:
        self.config, self.walk = config, Walk()
        self.tables = {}
        for name, record in isa.TABLES.items():
            words = [*tables[name], *[0] * (getattr(config, name) - len(tables[name]))]
            self.tables[name] = [record.decode(config, word) for word in words]
        self.logit = self.steps_done = 0

    def run(self) -> Walk:
        try:
            for index, layer in enumerate(self.tables["layers"]):
                self.layer(index, layer)
                self.walk.ends.append(len(self.walk.requests))
                if layer["last"]:
                    break
        except Stopped as stop:
            self.walk.error, self.walk.at = stop.error, stop.at
        return self.walk

    def layer(self, index: int, layer: Values) -> None:
        config = self.config
        paths = range(layer["path_first"], layer["path_last"] + 1)
        frame = (layer["planes_last"] + 1) * layer["out_plane"]
        if (
            isa.LAYER.violations(config, layer)
            or len(paths) > config.layer_paths
            or (not layer["last"] and index == config.layers - 1 and not config.external)
        ):
            raise Stopped(isa.Error.LAYER, index)
        if layer["param"] + layer["tiles_last"] >= config.param_tiles:
            raise Stopped(isa.Error.PARAM, index)
        if not layer["readout"] and layer["time_last"] and layer["out_frame"] != frame:
            raise Stopped(isa.Error.LAYER, index)
        for path in paths:
            if isa.PATH.violations(config, self.tables["paths"][path]):
                raise Stopped(isa.Error.PATH, path)
        frames = layer["time_last"] if layer["static"] else 0
        look = max(len(paths) * isa.PATH.slices(config) + 4, layer["planes_last"] + frames + 4)
        self.walk.setup += isa.LAYER.slices(config) + len(paths) + look + 18
        self.walk.layers.append(self.info(layer))
        moves, self.steps_done = 1, 0
        for step in self.steps(layer):
            if step is None:
                moves += 1
                continue
            self.step(index, layer, step)
            self.walk.moves.append(moves * (len(paths) + 2))
            moves = 1

    def info(self, layer: Values) -> Values:
        """The LayerInfo of a LAYER record."""
        again = layer["static"] and not layer["partial_out"]
        partial = ("partial_in", "partial_out") if self.config.external else ()
        return {
            "updates": layer["time_last"] + 1 if again else 1,
            "readout": layer["readout"],
            "capacity": layer["capacity"],
            "decay": layer["decay"],
            "shift": layer["fraction"],
            "stride": layer["out_plane"] % (1 << self.config.plane_address_bits),
            "planes": layer["planes_last"] + 1,
            "granules": (1 << layer["out_chunk"]) // self.config.granule,
            **{rule.name: layer[rule.name] for rule in FLAGS if getattr(self.config, rule.ability)},
            **{name: layer[name] for name in partial},
        }

    def steps(self, layer: Values) -> Iterator[Values | None]:
        """Counters of every step; None for a position that does not exist and takes a move."""
        sizes = ("rows", "columns", "tiles", "window_rows", "window_columns")
        times = 1 if layer["static"] else layer["time_last"] + 1
        for row, column, tile, wy, wx in product(*(range(layer[f"{s}_last"] + 1) for s in sizes)):
            y = layer["window_row_init"] + row * layer["window_row_step"] + wy
            x = layer["window_column_init"] + column * layer["window_column_step"] + wx
            y_in, x_in = 0 <= y <= layer["conv_rows_last"], 0 <= x <= layer["conv_columns_last"]
            if not (y_in and x_in):
                if (y_in and x < 0) or (y < 0 and wx == 0):
                    yield None
                continue
            y_ends = (
                (wy == 0 or y == 0),
                wy == layer["window_rows_last"] or (y == layer["conv_rows_last"]),
            )
            x_ends = (
                (wx == 0 or x == 0),
                wx == layer["window_columns_last"] or (x == layer["conv_columns_last"]),
            )
            for t in range(times):
                yield {
                    "row": row,
                    "column": column,
                    "tile": tile,
                    "wy": wy,
                    "wx": wx,
                    "t": t,
                    "first": int(y_ends[0] and x_ends[0]),
                    "last": int(y_ends[1] and x_ends[1]),
                    "last_t": int(t == times - 1),
                }

    def step(self, index: int, layer: Values, step: Values) -> None:
        config = self.config
        bit = step["column"] * layer["out_pitch"] + step["tile"] * config.lanes
        addr = layer["out_base"] + step["t"] * layer["out_frame"] + bit // config.word
        addr += step["row"] * layer["out_row"]
        frames = layer["time_last"] if layer["static"] else 0
        last = addr + layer["planes_last"] * layer["out_plane"] + frames * layer["out_frame"]
        room = config.partial_words // config.groups
        if (layer["partial_in"] or layer["partial_out"]) and self.steps_done == room:
            raise Stopped(isa.Error.PARTIAL, index)
        self.steps_done += 1
        if layer["partial_out"]:
            pass  # it writes nothing
        elif layer["readout"]:
            if self.logit >= config.logits:
                raise Stopped(isa.Error.LOGIT, index)
            self.logit += config.lanes if step["last"] and step["last_t"] else 0
        elif step["last"] and last >= config.plane_words:
            raise Stopped(isa.Error.PLANE, index)
        place = bit % config.word // config.granule
        write = {
            "addr": addr % (1 << config.plane_address_bits),
            "place": place,
            "first": int(place == 0),
        }
        self.walk.steps.append(
            {
                "group": (layer["param"] + step["tile"]) * config.groups,
                "first_t": int(step["t"] == 0),
                "last_t": step["last_t"],
                "pool_first": step["first"],
                "pool_last": step["last"],
                "write": write,
            }
        )
        self.walk.costs.append(0)
        asked = 0  # number of requests of the last run
        reached = isa.SEGMENT.slots(config)["exponent"].field.largest(config)
        for number in range(layer["segment_first"], layer["segment_last"] + 1):
            segment = self.tables["segments"][number]
            path = layer["path_first"] + segment["path"]
            if (
                isa.SEGMENT.violations(config, segment)
                or path > layer["path_last"]
                or segment["exponent"] > reached
            ):
                raise Stopped(isa.Error.SEGMENT, number)
            reached = segment["exponent"]
            asked = self.segment(index, step, segment, self.tables["paths"][path])
        if asked:
            self.walk.requests[-1]["end"] = 1
        else:
            self.walk.requests.append({"kind": ScanKind.END, "end": 1})

    def segment(self, index: int, step: Values, segment: Values, path: Values) -> int:
        """Add the requests of a segment; returns the number of requests of its last run."""
        found: list[dict] = []
        for number in range(path["run_first"], path["run_last"] + 1):
            run = self.tables["runs"][number]
            if isa.RUN.violations(self.config, run):
                raise Stopped(isa.Error.RUN, number)
            found = self.run_requests(index, step, segment, path, run)
            self.walk.costs[-1] += max(1, len(found))
            self.walk.requests += found
        return len(found)

    def run_requests(
        self, index: int, step: Values, segment: Values, path: Values, run: Values
    ) -> list[dict]:
        config, word = self.config, self.config.word
        base = segment["base"] + step["t"] * path["frame_words"]
        top = path["row_init"] + step["row"] * path["row_step"] + run["row"]
        top += step["wy"] * path["row_window"]
        left = path["column_init"] + step["column"] * path["column_step"] + run["column"]
        left += step["wx"] * path["column_window"]
        low = max(left, path["column_low"])
        high = min(left + run["length_last"], path["column_high"])
        weight = segment["weight"] + step["tile"] * path["tile_rows"]
        if not path["row_low"] <= top <= path["row_high"]:
            return []
        if path["identity"]:
            if not low == left <= path["column_high"]:
                return []
            low = high = left + step["tile"] * config.lanes
        if low > high:
            return []
        begin, end = base + top + low // word, base + top + high // word
        if end >= config.plane_words:
            raise Stopped(isa.Error.PLANE, index)
        lo, hi = low % word, high % word
        if path["identity"]:
            hi = (lo + path["lanes"] - 1) % word
        size = config.summary
        found = []
        for span in range(begin // size, end // size + 1):
            row = weight
            if not path["identity"]:
                row += run["weight"] - left
                row += (span * size - (base + top)) * word
            words = [a for a in range(span * size, (span + 1) * size) if begin <= a <= end]
            found.append(
                {
                    "kind": ScanKind.IDENTITY if path["identity"] else ScanKind.CONV,
                    "end": 0,
                    "span": span,
                    "want": sum(1 << a % size for a in words),
                    "lo": lo,
                    "hi": hi,
                    "lo_en": int(begin in words),
                    "lo_at": begin % size,
                    "hi_en": int(end in words),
                    "hi_at": end % size,
                    "row": row % (1 << config.weight_address_bits),
                    "exponent": segment["exponent"],
                }
            )
        return found
