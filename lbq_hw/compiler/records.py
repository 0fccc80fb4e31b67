"""LAYER, PATH and RUN records of lowered layers, without the fields that depend on a pass."""

from __future__ import annotations

from lbq_hw.compiler import neurons
from lbq_hw.compiler.lower import LoweredLayer, LoweredPath
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.windows import Run
from lbq_hw.config import CoreConfig

Values = dict[str, int]


def path_record(config: CoreConfig, path: LoweredPath) -> Values:
    """A PATH record without the place of its runs."""
    pools = config.window > 1
    source, rows, columns = path.source, path.rows, path.columns
    row, pitch = source.row_words, source.pitch
    return {
        "identity": int(path.identity),
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
        "frame_words": source.frame_words if source.frames > 1 else 0,
        "tile_rows": path.tile_rows,
        "lanes": path.lanes,
    }


def layer_record(
    config: CoreConfig, lowered: LoweredLayer, output: Tensor | None, timesteps: int
) -> Values:
    """A LAYER record without the places of its other records and parameters."""
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
        "reserved": 0,
    } | neurons.flags(layer)


def run_record(run: Run) -> Values:
    """A RUN record."""
    return {
        "row": run.row,
        "column": run.column,
        "length_last": run.length - 1,
        "weight": run.weight,
    }
