"""Network -> streaming program, with the smallest core that can execute it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbq_hw.network import INPUT, Layer, Network
from lbq_hw.network.bounds import prove
from lbq_hw.numeric import plane_count, signed_width
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.pieces import Piece, pieces_of
from lbq_hw.streaming.program import StreamProgram, Tensor
from lbq_hw.streaming.records import StreamRegion

HORIZON, MAX_HORIZON = 1 << 12, 1 << 16
"""Number of steps for which membranes without a leak are proven to fit: the default, and the
maximum."""


class StreamCompileError(ValueError):
    """A network that a streaming core cannot execute; one sentence."""


def compile_stream(
    network: Network,
    *,
    lanes: int,
    units: int,
    horizon: int = HORIZON,
    config: StreamConfig | None = None,
) -> StreamProgram:
    """The program of a network for the smallest core that can execute it, or for a given core.

    `horizon`: number of steps for which membranes without a leak are proven to stay in their width;
    after that, the core reports the first membrane that overflows. StreamCompileError if the core
    cannot execute the network.
    """
    if not 1 <= horizon <= MAX_HORIZON:
        raise StreamCompileError(f"horizon must be 1..{MAX_HORIZON}, not {horizon!r}")
    _refuse(network, lanes)
    pieces = {layer.name: list(pieces_of(network, layer)) for layer in network.layers}
    planes = network.input.bits if config is None else config.input_planes
    tensors = _tensors(network, lanes, planes)
    smallest, proven = _config(network, pieces, tensors, lanes, units, horizon)
    if config is None:
        config = _with_records(smallest, pieces)
    elif _with_records(config, pieces).joined(smallest) != config:
        raise StreamCompileError(
            f"network {network.name!r} needs a larger core: build one for it, or leave config out"
        )
    image, logits = _image(network, pieces, tensors, config)
    return StreamProgram(
        name=network.name,
        config=config,
        input=network.input,
        image=image,
        tensors=tensors,
        logits=logits,
        shape=network.layers[-1].shape,
        proven=proven,
    )


def _refuse(network: Network, lanes: int) -> None:
    if network.input.static:
        raise StreamCompileError(
            f"network {network.name!r} has a static input: a stream needs one frame per step"
        )
    most = min(lanes, records.VALUE_BITS)
    if network.input.shape[0] > most:
        raise StreamCompileError(
            f"the input has {network.input.shape[0]} channels: an event word has room for {most}"
        )
    for layer in network.layers:
        if layer.pool is not None:
            raise StreamCompileError(
                f"layer {layer.name!r} has a max-pool, which needs the levels of positions that a "
                "streaming core does not visit: use a stride or a sum-pool"
            )


def _tensors(network: Network, lanes: int, input_planes: int) -> dict[str, Tensor]:
    """Places of all tensors; the input has as many words per pixel as the core has input planes."""
    tensors: dict[str, Tensor] = {}
    base = row = 0
    shapes = {INPUT: (network.input.tensor_shape, network.input.bits)} | {
        layer.name: (layer.shape, plane_count(layer.capacity))
        for layer in network.layers
        if layer.neuron is not None
    }
    for name, (shape, planes) in shapes.items():
        pixel = input_planes if name == INPUT else -(-shape[0] // lanes) * planes
        tensors[name] = Tensor(shape=shape, base=base, map=row, planes=planes, pixel=pixel)
        base += shape[1] * shape[2] * pixel
        row += shape[1]
    return tensors


def _leaks(layer: Layer) -> bool:
    return layer.neuron is not None and layer.neuron.decay != 1 << layer.neuron.decay_bits


def _membrane_bits(network: Network, layer: Layer, horizon: int) -> tuple[int, bool]:
    """Bits that hold every membrane for `horizon` steps, and whether they are enough for ever."""
    capacities = [network.source_capacity(path) for path in layer.paths]
    bits = prove(layer, capacities, horizon).membrane_bits
    endless = bits == prove(layer, capacities, 2 * horizon).membrane_bits
    vectors = [layer.bias, *(layer.neuron.vectors.values() if layer.neuron else ())]
    low, high = min(int(v.min()) for v in vectors), max(int(v.max()) for v in vectors)
    return max(bits, signed_width(low, high)), endless


def _config(
    network: Network,
    pieces: dict[str, list[Piece]],
    tensors: dict[str, Tensor],
    lanes: int,
    units: int,
    horizon: int,
) -> tuple[StreamConfig, int | None]:
    every = [piece for layer in network.layers for piece in pieces[layer.name]]
    spiking = [layer.neuron for layer in network.layers if layer.neuron is not None]
    tiles = {layer.name: -(-layer.shape[0] // lanes) for layer in network.layers}
    groups = {layer.name: -(-layer.shape[0] // units) for layer in network.layers}
    positions = {layer.name: layer.shape[1] * layer.shape[2] for layer in network.layers}
    axes = [axis for piece in every for axis in (piece.rows, piece.columns)]
    sides = [side for tensor in tensors.values() for side in tensor.shape[1:]]
    sides += [side for layer in network.layers for side in layer.shape[1:]]
    reach = [
        (layer.shape[2] - 1) * piece.columns.step + 1
        for layer in network.layers
        for piece in pieces[layer.name]
    ]
    sides += [n for axis in axes for n in (len(axis.taps), axis.step, abs(axis.init))]
    sides += [len(axis.taps) + abs(axis.init) for axis in axes]
    widths = [tensor.shape[2] for tensor in tensors.values()]
    widths += [layer.shape[2] for layer in network.layers]
    membranes = [_membrane_bits(network, layer, horizon) for layer in network.layers]
    acc = [network.bounds(layer) for layer in network.layers]
    leaky = sum(positions[layer.name] for layer in network.layers if _leaks(layer))
    sizes = {
        "level_words": sum(
            tensor.shape[1] * tensor.shape[2] * tensor.pixel for tensor in tensors.values()
        ),
        "weight_rows": sum(
            tiles[layer.name] * _tile_rows(piece)
            for layer in network.layers
            for piece in pieces[layer.name]
        ),
        "membrane_words": sum(groups[name] * count for name, count in positions.items()),
        "param_words": sum(groups.values()),
        "map_rows": sum(tensor.shape[1] for tensor in tensors.values()),
        "taps": sum(len(piece.taps) for piece in every),
        "record_words": 2,
    }
    config = StreamConfig(
        **{name: max(2, size) for name, size in sizes.items()},
        lanes=lanes,
        units=units,
        weight_bits=network.weight_bits,
        acc_bits=max(4, max(bounds.acc_bits for bounds in acc)),
        membrane_bits=max(4, max(bits for bits, _ in membranes)),
        planes=max((tensor.planes for name, tensor in tensors.items() if name != INPUT), default=1),
        input_planes=network.input.bits,
        input_channels=network.input.shape[0],
        shifts=max(tensors[piece.source].planes - 1 + piece.exponent for piece in every),
        decay_bits=max((neuron.decay_bits for neuron in spiking), default=0),
        fraction_low=min(layer.fraction_bits for layer in network.layers),
        fraction_high=max(layer.fraction_bits for layer in network.layers),
        side=max(sides),
        columns=max(widths),
        padding=max(0, *(-piece.columns.init for piece in every)),
        window=max(len(piece.columns.taps) for piece in every),
        reach=max(*reach, *widths),
        column_steps=sum({1 << piece.columns.step for piece in every}),
        tiles=max(
            *tiles.values(),
            *(-(-tensor.shape[0] // lanes) for tensor in tensors.values()),
        ),
        layer_paths=max(len(found) for found in pieces.values()),
        positions=max(2, leaky) if leaky else 0,
        identities=int(any(piece.identity for piece in every)),
        resets=int(any(not n.to_zero and not np.array_equal(n.theta, n.reset) for n in spiking)),
        zero_resets=int(any(neuron.to_zero for neuron in spiking)),
        floors=int(any(neuron.floor is not None for neuron in spiking)),
    )
    return config, None if all(endless for _, endless in membranes) else horizon


def _with_records(config: StreamConfig, pieces: dict[str, list[Piece]]) -> StreamConfig:
    """The same core with room for the records of these layers; the size of records depends on the
    core.
    """
    words = sum(
        records.words_of(records.layer_fields(config))
        + records.words_of(records.path_fields(config)) * len(found)
        for found in pieces.values()
    )
    return replace(config, record_words=max(config.record_words, words))


def _tile_rows(piece: Piece) -> int:
    """Weight rows of one tile."""
    if piece.identity:
        return 1
    return piece.weight.shape[1] * piece.weight.shape[2] * piece.weight.shape[3]


def _image(
    network: Network,
    pieces: dict[str, list[Piece]],
    tensors: dict[str, Tensor],
    config: StreamConfig,
) -> tuple[dict[StreamRegion, list[int]], int]:
    c = config
    words: list[int] = []
    taps: list[int] = []
    weights: list[int] = []
    params: list[int] = []
    membrane = stamp = 0
    for layer in network.layers:
        found = pieces[layer.name]
        layer_words, first = -(-layer.shape[0] // c.units), len(weights)
        tile_rows = sum(_tile_rows(piece) for piece in found)
        tiles = -(-layer.shape[0] // c.lanes)
        values = _layer_values(layer, tensors, c, len(found))
        values |= {
            "last": int(layer is network.layers[-1]),
            "membrane": membrane,
            "membrane_pixel": layer_words,
            "membrane_row": layer_words * layer.shape[2],
            "stamp": stamp if _leaks(layer) else 0,
            "param": len(params),
            "tile_rows": tile_rows,
            "input_last": network.input.tensor_shape[1] - 1,
        }
        words += records.encode(records.layer_fields(c), values)
        row = first
        for piece in found:
            path = _path_values(piece, tensors, c) | {"tap": len(taps)}
            words += records.encode(records.path_fields(c), path)
            taps += _taps(piece, row)
            row += _tile_rows(piece)
        for tile in range(tiles):
            for piece in found:
                weights += _weight_rows(piece, tile, c)
        params += _params(layer, c)
        membrane += layer_words * layer.shape[1] * layer.shape[2]
        stamp += layer.shape[1] * layer.shape[2] if _leaks(layer) else 0
    rows = [
        tensor.base + y * tensor.shape[2] * tensor.pixel
        for tensor in tensors.values()
        for y in range(tensor.shape[1])
    ]
    readout = network.layers[-1]
    own = -(-readout.shape[0] // c.units) * readout.shape[1] * readout.shape[2]
    image = {
        StreamRegion.RECORDS: words,
        StreamRegion.TAPS: taps,
        StreamRegion.ROWS: rows,
        StreamRegion.WEIGHTS: weights,
        StreamRegion.PARAMS: params,
    }
    return image, membrane - own


def _layer_values(
    layer: Layer, tensors: dict[str, Tensor], c: StreamConfig, paths: int
) -> dict[str, int]:
    """The fields that depend only on the layer."""
    channels, height, width = layer.shape
    tiles = -(-channels // c.lanes)
    groups = -(-(channels - (tiles - 1) * c.lanes) // c.units)
    neuron, tensor = layer.neuron, tensors.get(layer.name)
    planes = 1 if tensor is None else tensor.planes
    alone = height * width == 1
    values = {
        "readout": int(neuron is None),
        "always": int(alone or bool(layer.bias.any())),
        "leaks": int(_leaks(layer)),
        "to_zero": int(neuron is not None and neuron.to_zero),
        "paths_last": paths - 1,
        "tiles_last": tiles - 1,
        "rows_last": height - 1,
        "columns_last": width - 1,
        "groups_last": groups - 1,
        "beats_last": max(c.groups if tiles > 1 else groups, groups, planes) - 1,
        "planes_last": planes - 1,
        "capacity": 0 if neuron is None else neuron.capacity,
        "fraction": layer.fraction_bits - c.fraction_low,
        "decay": 0,
        "level": 0,
        "level_pixel": 0,
        "level_row": 0,
        "map": 0,
    }
    if neuron is not None and values["leaks"]:
        values["decay"] = neuron.decay << (c.decay_bits - neuron.decay_bits)
    if tensor is not None:
        count = tensor.pixel
        values |= {
            "level": tensor.base,
            "level_pixel": count,
            "level_row": count * width,
            "map": tensor.map,
        }
    return values


def _path_values(piece: Piece, tensors: dict[str, Tensor], c: StreamConfig) -> dict[str, int]:
    tensor = tensors[piece.source]
    rows, columns = piece.rows, piece.columns
    words = -(-tensor.shape[0] // c.lanes)
    return {
        "map": tensor.map,
        "rows_last": len(rows.taps) - 1,
        "window_last": len(columns.taps) - 1,
        "row_step": rows.step,
        "column_step": columns.step,
        "row_init": rows.init,
        "column_init": columns.init,
        "left": max(0, -columns.init),
        "right": max(0, len(columns.taps) - 1 + columns.init),
        "row_low": rows.low,
        "row_high": rows.high,
        "pixel": tensor.pixel,
        "planes_last": tensor.planes - 1,
        "words_last": words - 1,
        "exponent": piece.exponent,
        "identity": int(piece.identity),
        "mask": sum(1 << x for x in range(columns.low, columns.high + 1)),
    }


def _taps(piece: Piece, row: int) -> list[int]:
    """Entries of the tap table: a valid bit below the weight row."""
    if piece.identity:
        return [0 if tap is None else row << 1 | 1 for tap in piece.taps]
    _, channels, _, width = piece.weight.shape
    return [
        0 if tap is None else (row + (tap[0] * width + tap[1]) * channels) << 1 | 1
        for tap in piece.taps
    ]


def _weight_rows(piece: Piece, tile: int, c: StreamConfig) -> list[int]:
    """Weight rows of one tile: tap by tap, one row per channel of the source."""
    own = piece.weight[tile * c.lanes : (tile + 1) * c.lanes]
    rows = own[None] if piece.identity else own.transpose(2, 3, 1, 0).reshape(-1, len(own))
    return [_packed(row.tolist(), c.weight_bits) for row in rows]


def _params(layer: Layer, c: StreamConfig) -> list[int]:
    """Words of L channels: bias, theta, and reset and floor where the core has them."""
    channels, neuron, bits = layer.shape[0], layer.neuron, c.membrane_bits
    zeros, never = np.zeros(channels, np.int64), (1 << (bits - 1)) - 1
    vectors = [layer.bias, zeros + never if neuron is None else neuron.theta]
    if c.resets:
        vectors.append(zeros if neuron is None else neuron.reset)
    if c.floors:
        floor = None if neuron is None else neuron.floor
        vectors.append(zeros - never - 1 if floor is None else floor)
    missing = np.zeros((-channels % c.units, len(vectors)), np.int64)
    missing[:, 1] = never  # channels that do not exist never spike
    table = np.concatenate((np.stack(vectors, axis=1), missing))
    return [
        _packed(table[i : i + c.units].ravel().tolist(), bits)
        for i in range(0, len(table), c.units)
    ]


def _packed(values: list[int], bits: int) -> int:
    return sum((value & ((1 << bits) - 1)) << (bits * i) for i, value in enumerate(values))
