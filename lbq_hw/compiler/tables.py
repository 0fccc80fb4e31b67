"""Records from lowered layers: addresses become known, everything is packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lbq_hw import isa
from lbq_hw.compiler import neurons
from lbq_hw.compiler.lower import LoweredLayer, LoweredPath
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.windows import Run
from lbq_hw.config import CoreConfig


@dataclass
class Tables:
    """Encoded records, filled layer by layer."""

    config: CoreConfig
    layers: list[int] = field(default_factory=list)
    paths: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    weight_rows: int = 0

    def add(self, lowered: LoweredLayer, tensors: dict[str, Tensor], timesteps: int) -> None:
        """Append a layer; its weight rows follow those of the layers before."""
        path_first, segment_first = len(self.paths), len(self.segments)
        shared: dict[tuple[Run, ...], int] = {}
        for path in lowered.paths:
            if path.runs not in shared:
                shared[path.runs] = self._add_runs(path.runs)
            self._add_path(path, shared[path.runs])
        for segment in lowered.segments:
            base = tensors[segment.source.name].base + segment.plane * segment.source.plane_words
            record = {
                "path": segment.path,
                "exponent": segment.exponent,
                "base": base,
                "weight": self.weight_rows + segment.weight,
            }
            self.segments.append(isa.SEGMENT.encode(self.config, record))
        ranges = {
            "path_first": path_first,
            "path_last": len(self.paths) - 1,
            "segment_first": segment_first,
            "segment_last": len(self.segments) - 1,
        }
        self._add_layer(lowered, tensors.get(lowered.layer.name), timesteps, ranges)
        self.params += neurons.params(lowered.layer, lowered.tiles, self.config)
        self.weight_rows += len(lowered.weights)

    def _add_runs(self, runs: Sequence[Run]) -> int:
        first = len(self.runs)
        for run in runs:
            record = {
                "row": run.row,
                "column": run.column,
                "length_last": run.length - 1,
                "rows_last": run.rows - 1,
                "weight": run.weight,
            }
            self.runs.append(isa.RUN.encode(self.config, record))
        return first

    def _add_path(self, path: LoweredPath, run_first: int) -> None:
        record = path_record(self.config, path) | {
            "run_first": run_first,
            "run_last": run_first + len(path.runs) - 1,
        }
        self.paths.append(isa.PATH.encode(self.config, record))

    def _add_layer(
        self,
        lowered: LoweredLayer,
        output: Tensor | None,
        timesteps: int,
        ranges: dict[str, int],
    ) -> None:
        record = layer_record(self.config, lowered, output, timesteps) | ranges
        record["param"] = len(self.params) // self.config.lanes
        self.layers.append(isa.LAYER.encode(self.config, record))


def path_record(config: CoreConfig, path: LoweredPath) -> dict[str, int]:
    """A PATH record but for the place of its runs."""
    pools = config.window > 1
    source, rows, columns = path.source, path.rows, path.columns
    row, pitch = source.row_words, source.pitch
    return {
        "identity": int(path.identity),
        "stacked": int(path.stacked),
        "row_init": rows.init * row,
        "row_window": rows.window * row * pools,
        "row_step": rows.step * row,
        "row_low": rows.low * row,
        "row_high": rows.high * row,
        "column_init": columns.init * pitch,
        "column_window": columns.window * pitch * pools,
        "column_step": columns.step * pitch,
        "column_low": columns.low * pitch,
        "column_high": (columns.high + 1) * pitch - 1,
        "increment": path.increment,
        "frame_words": source.frame_words if source.frames > 1 else 0,
        "tile_rows": path.tile_rows,
        "lanes": path.lanes,
    }


def layer_record(
    config: CoreConfig, lowered: LoweredLayer, output: Tensor | None, timesteps: int
) -> dict[str, int]:
    """A LAYER record but for the place of its other records and parameters."""
    layer, window = lowered.layer, lowered.window
    pools, several = config.window > 1, config.timesteps > 1
    _, rows, columns = layer.output_shape
    decay, decay_bits = neurons.decay(layer)
    return {
        "last": int(layer.neuron is None),
        "readout": int(layer.neuron is None),
        "static": int(lowered.static and several),
        "rows_last": rows - 1,
        "columns_last": columns - 1,
        "tiles_last": lowered.tiles - 1,
        "time_last": timesteps - 1,
        "window_rows_last": window.kernel[0] - 1,
        "window_columns_last": window.kernel[1] - 1,
        "window_row_init": -window.padding[0] * pools,
        "window_column_init": -window.padding[1] * pools,
        "window_row_step": window.stride[0] if pools and rows > 1 else 0,
        "window_column_step": window.stride[1] if pools and columns > 1 else 0,
        "conv_rows_last": (layer.shape[1] - 1) * pools,
        "conv_columns_last": (layer.shape[2] - 1) * pools,
        "capacity": layer.capacity,
        "planes_last": neurons.output_planes(layer) - 1,
        "decay": decay << (config.decay_bits - decay_bits),
        "fraction": layer.fraction_bits,
        "out_base": output.base if output else 0,
        "out_row": output.row_words if output else 0,
        "out_plane": output.plane_words if output else 0,
        "out_frame": output.frame_words if output and several else 0,
        "out_pitch": output.pitch if output else 0,
        "out_chunk": min(config.lanes, output.pitch).bit_length() - 1 if output else 0,
        "partial_in": 0,
        "partial_out": 0,
        "to_zero": int(neurons.resets_to_zero(layer)),
        "reserved": 0,
    }
