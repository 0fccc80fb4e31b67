from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path as FilePath

import numpy as np
import pytest

from lbq_hw import file, isa, zoo
from lbq_hw.compiler import CompileError, compile_network, listing, needs, smallest_for
from lbq_hw.compiler.__main__ import main
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.layout import core_pitch, place, shapes
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.weights import conv_rows, limbs
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Window
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_images, random_network

SIZES = (
    "acc_bits", "membrane_bits", "planes", "decay_bits", "fraction_bits", "timesteps", "side",
    "window", "row_words", "plane_words", "weight_rows", "channels", "logits", "layers", "paths",
    "segments", "runs", "layer_paths",
)  # fmt: skip


def neuron(channels: int, *, theta: int = 40, reset: int = 40) -> Neuron:
    return Neuron(
        capacity=5,
        theta=np.full(channels, theta),
        reset=np.full(channels, reset),
        decay=2,
        decay_bits=2,
    )


def small_network() -> Network:
    """3x3 convolution of 2 channels into 6, then 4 classes."""
    random = np.random.default_rng(0)
    first = Layer(
        name="first",
        shape=(6, 5, 5),
        paths=(Path(source=INPUT, weight=random.integers(-7, 8, (6, 2, 3, 3)), padding=(1, 1)),),
        bias=np.zeros(6, np.int64),
        fraction_bits=1,
        neuron=neuron(6),
    )
    last = Layer(
        name="logits",
        shape=(4, 1, 1),
        paths=(Path(source="first", weight=random.integers(-7, 8, (4, 6, 5, 5))),),
        bias=np.zeros(4, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="small",
        input=Input(shape=(2, 5, 5), static=True, bits=4),
        timesteps=2,
        weight_bits=4,
        layers=(first, last),
    )


@pytest.mark.parametrize("lanes", [4, 8, 16, 64])
@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8, 9, 16, 33, 100])
def test_no_chunk_of_a_tile_straddles_a_word(lanes: int, channels: int) -> None:
    config = CoreConfig(lanes=lanes, word=64)
    pitch = core_pitch(channels, config)
    chunk = min(lanes, pitch)
    assert pitch >= channels
    assert chunk % config.granule == 0
    assert chunk & (chunk - 1) == 0
    tiles = -(-channels // lanes)
    assert tiles * chunk == pitch
    places = [x * pitch + tile * lanes for x in range(70) for tile in range(tiles)]
    assert all(bit % 64 + chunk <= 64 for bit in places)


def test_a_tensor_lies_in_memory_as_the_formula_says() -> None:
    tensor = Tensor(name="x", shape=(3, 2, 5), planes=4, frames=2, pitch=4, word=8, born=0, dies=1)
    levels = np.random.default_rng(1).integers(0, 16, (2, 3, 2, 5), dtype=np.uint8)
    bits = tensor.pack(levels)
    assert bits.shape == (tensor.words, 8) == (48, 8)
    for (t, c, y, x), level in np.ndenumerate(levels):
        for k in range(4):
            word = ((t * 4 + k) * 2 + y) * tensor.row_words + (x * 4 + c) // 8
            assert bits[word, (x * 4 + c) % 8] == (level >> k & 1)
    assert bits.sum() == np.bitwise_count(levels).sum()
    assert np.array_equal(tensor.unpack(bits), levels)


def test_bits_outside_a_tensor_do_not_show_in_its_levels() -> None:
    tensor = Tensor(name="x", shape=(3, 2, 5), planes=4, frames=1, pitch=4, word=8, born=0, dies=1)
    levels = np.random.default_rng(1).integers(0, 16, (1, 3, 2, 5), dtype=np.uint8)
    bits = tensor.pack(levels)
    outside = ~tensor.pack(np.full_like(levels, 15))
    assert np.array_equal(tensor.unpack(bits | outside), levels)


def test_levels_of_the_wrong_shape_are_refused() -> None:
    tensor = Tensor(name="x", shape=(3, 2, 5), planes=4, frames=1, pitch=4, word=8, born=0, dies=1)
    message = r"^levels of 'x' must be of shape \(1, 3, 2, 5\), not \(1, 3, 5, 2\)$"
    with pytest.raises(ValueError, match=message):
        tensor.pack(np.zeros((1, 3, 5, 2), np.uint8))


@pytest.mark.parametrize("seed", range(20))
def test_tensors_that_live_together_do_not_overlap(seed: int) -> None:
    network = random_network(seed)
    config = CoreConfig(lanes=8, summary=8, units=2)
    placed = list(place(shapes(network, config), config.summary).values())
    for i, one in enumerate(placed):
        assert one.base % config.summary == 0
        for other in placed[:i]:
            together = one.born <= other.dies and other.born <= one.dies
            assert not together or one.end <= other.base or other.end <= one.base


def test_memory_is_used_again_when_its_tensor_is_dead() -> None:
    def tensor(name: str, born: int) -> Tensor:
        return Tensor(
            name=name, shape=(8, 4, 4), planes=1, frames=1, pitch=8, word=8, born=born,
            dies=born + 1,
        )  # fmt: skip

    placed = place({name: tensor(name, born) for born, name in enumerate("abcd")}, 4)
    assert {name: t.base for name, t in placed.items()} == {"a": 0, "b": 16, "c": 0, "d": 16}


def test_the_weight_row_of_every_tap() -> None:
    weight = np.random.default_rng(2).integers(-100, 100, (10, 3, 2, 3))
    rows = conv_rows(weight, lanes=8, pitch=4, row_rows=16)
    assert rows.shape == (2 * 2 * 16, 8)
    wanted = np.zeros_like(rows)
    for (out, channel, ky, kx), value in np.ndenumerate(weight):
        wanted[out // 8 * 32 + ky * 16 + kx * 4 + channel, out % 8] = value
    assert np.array_equal(rows, wanted)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_limbs_add_up_and_have_the_sign_of_their_weight(bits: int) -> None:
    weight = np.random.default_rng(bits).integers(-3000, 3000, 11)
    total = np.zeros(16, np.int64)
    for exponent, rows in limbs(weight, lanes=8, weight_bits=bits):
        assert rows.shape == (2, 8)
        assert np.abs(rows).max() < 1 << (bits - 1)
        assert np.all(rows.reshape(-1)[:11] * np.sign(weight) >= 0)
        total += rows.reshape(-1) << exponent
    assert np.array_equal(total[:11], weight)
    assert not total[11:].any()


def test_an_identity_of_zeros_has_one_limb() -> None:
    ((exponent, rows),) = limbs(np.zeros(3, np.int64), lanes=4, weight_bits=8)
    assert exponent == 0
    assert not rows.any()


def test_the_records_of_a_small_network() -> None:
    network = small_network()
    program = compile_network(network, smallest_for(network, lanes=4, word=32))
    first, last = program.table("layers")
    assert (first["static"], first["tiles_last"], first["time_last"]) == (1, 1, 1)
    assert (first["decay"], program.config.decay_bits) == (1, 1)  # 2/4 in lowest terms
    assert (last["last"], last["readout"], last["static"]) == (1, 1, 0)
    assert [s["exponent"] for s in program.table("segments")] == [3, 2, 1, 0, 2, 1, 0]
    gathered, linear = program.table("paths")  # 18 taps of a window in 32 bits: one word
    assert gathered["tile_rows"] == 32
    assert (gathered["row_init"], gathered["row_step"], gathered["row_high"]) == (0, 5, 20)
    assert (gathered["column_init"], gathered["column_step"]) == (0, 32)
    assert gathered["column_high"] == 5 * 32 - 1
    assert (linear["row_init"], linear["row_step"]) == (0, 0)
    runs = program.table("runs")
    assert runs[0]["length_last"] == 31
    assert [run["weight"] for run in runs[1:]] == [0, 40, 80, 120, 160]


def test_the_records_of_a_window_that_no_word_holds() -> None:
    network = small_network()
    program = compile_network(network, smallest_for(network, lanes=4, word=16))
    window = program.table("paths")[0]  # a row of 5 pixels of 2 channels is a word
    assert window["tile_rows"] == 18
    assert (window["row_init"], window["row_step"], window["row_high"]) == (-1, 1, 4)
    assert (window["column_init"], window["column_step"], window["column_high"]) == (-2, 2, 9)
    runs = program.table("runs")[window["run_first"] : window["run_last"] + 1]
    assert [(run["row"], run["length_last"], run["weight"]) for run in runs] == [
        (0, 5, 0),
        (1, 5, 6),
        (2, 5, 12),
    ]


@pytest.mark.parametrize("seed", range(10))
def test_every_record_is_legal(seed: int) -> None:
    network = random_network(seed)
    program = compile_network(network, random_core(network, seed))
    for name, record in isa.TABLES.items():
        for values in program.table(name):
            assert record.violations(program.config, values) == []
    for layer in program.table("layers"):
        paths = layer["path_last"] - layer["path_first"]
        own = program.table("segments")[layer["segment_first"] : layer["segment_last"] + 1]
        assert all(segment["path"] <= paths for segment in own)
        exponents = [segment["exponent"] for segment in own]
        assert exponents == sorted(exponents, reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_smallest_core_has_nothing_to_spare(seed: int) -> None:
    network = random_network(seed)
    config = smallest_for(network, lanes=8)
    compile_network(network, config)
    units = {"plane_words": config.summary, "channels": 8, "logits": 8}
    for field in SIZES:
        less = getattr(config, field) - units.get(field, 1)
        try:
            smaller = config.with_(**{field: less})
        except ValueError:  # already the least there is
            continue
        with pytest.raises(CompileError) as caught:
            compile_network(network, smaller)
        assert caught.value.would_do == config


def test_a_network_that_does_not_fit_is_refused_with_every_reason() -> None:
    network = small_network()
    config = smallest_for(network, lanes=8).with_(
        weight_rows=200, acc_bits=8, timesteps=1, segments=4
    )
    with pytest.raises(CompileError) as caught:
        compile_network(network, config)
    assert str(caught.value) == (
        "network 'small' does not fit the core:\n"
        "  network: the time loop needs 2 timesteps, the core has 1 (1 short); "
        "timesteps = 2 would do\n"
        "  layer 'first': the accumulator needs 11 bits, the core has 8 (3 short); "
        "acc_bits = 11 would do\n"
        "  layer 'logits': the accumulator needs 12 bits, the core has 8 (4 short); "
        "acc_bits = 12 would do\n"
        "  layer 'logits': the weight memory needs 232 rows, the core has 200 (32 short); "
        "weight_rows = 232 would do\n"
        "  layer 'logits': the segment table needs 7 entries, the core has 4 (3 short); "
        "segments = 7 would do\n"
        "a core with timesteps = 2, acc_bits = 12, weight_rows = 232, segments = 7 would do"
    )
    assert caught.value.would_do is not None
    assert compile_network(network, caught.value.would_do).usage["weight_rows"] == 232


def test_a_network_that_no_core_runs_is_refused() -> None:
    network = small_network()
    big = np.full(6, 1 << 26)
    second = Layer(
        name="second",
        shape=(6, 5, 5),
        paths=(Path(source="first", weight=big, exponent=15),),
        bias=np.zeros(6, np.int64),
        fraction_bits=0,
        neuron=neuron(6),
    )
    network = replace(network, layers=(network.layers[0], second, network.layers[1]))
    with pytest.raises(CompileError) as caught:
        smallest_for(network, lanes=8)
    assert caught.value.would_do is None
    assert caught.value.violations == (
        "layer 'second': the accumulator needs 45 bits, the core has 32 (13 short); "
        "no core has more than 32",
        "layer 'second': the highest exponent needs 41 doublings, the core has 31 (10 short); "
        "no core has more than 31",
    )


def test_sums_beyond_62_bits_are_refused() -> None:
    network = small_network()
    huge = replace(network.layers[0], bias=np.full(6, 1 << 53))
    network = replace(network, timesteps=1024, layers=(huge, network.layers[1]))
    with pytest.raises(CompileError) as caught:
        compile_network(network, CoreConfig())
    assert caught.value.violations[0] == "layer 'first': its sums may pass 62 bits"


def test_a_fixed_size_that_is_too_small_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        smallest_for(small_network(), lanes=8, weight_rows=100)
    assert caught.value.violations == (
        "layer 'logits': the weight memory needs 232 rows, the core has 100 (132 short); "
        "weight_rows = 232 would do",
    )
    assert caught.value.would_do == smallest_for(small_network(), lanes=8)


def test_a_fixed_size_is_kept() -> None:
    config = smallest_for(small_network(), lanes=8, weight_rows=500, fifo_depth=4)
    assert (config.weight_rows, config.fifo_depth) == (500, 4)


def test_a_threshold_beyond_every_membrane_is_cut_to_the_largest_number() -> None:
    network = small_network()
    first = replace(network.layers[0], neuron=neuron(6, theta=1 << 40, reset=1 << 40))
    network = replace(network, layers=(first, network.layers[1]))
    config = smallest_for(network, lanes=8)
    program = compile_network(network, config)
    params = program.contents.params()
    assert params[0]["theta"] == (1 << (config.membrane_bits - 1)) - 1
    assert params[7] == {"bias": 0, "theta": 1, "reset": 0, "floor": 0}


def test_a_floor_below_every_membrane_is_cut_to_the_least_number_and_others_have_none() -> None:
    network = small_network()
    first = network.layers[0]
    assert first.neuron is not None
    floor = np.array([-(1 << 40), -1, 0, -2, -3, -4])
    clamped = replace(first, neuron=replace(first.neuron, floor=floor))
    network = replace(network, layers=(clamped, *network.layers[1:]))
    assert smallest_for(small_network(), lanes=8).floors == 0
    config = smallest_for(network, lanes=8)
    assert config.floors == 1
    params = compile_network(network, config).contents.params()
    least = -(1 << (config.membrane_bits - 1))
    tiles = [[param["floor"] for param in params[i : i + 8]] for i in (0, 8)]
    assert tiles == [[least, -1, 0, -2, -3, -4, least, least], [least] * 8]  # then the readout
    with pytest.raises(CompileError) as caught:
        compile_network(network, config.with_(floors=0))
    assert caught.value.violations == (
        "layer 'first': a floor of its membranes needs 1 floor memory, the core has 0 (1 short); "
        "floors = 1 would do",
    )


def test_an_image_is_loaded_in_slices_of_its_words() -> None:
    network = small_network()
    program = compile_network(network, smallest_for(network, lanes=8, word=64))
    raw = random_images(network, 1)[0]
    bits, slices = program.input_bits(raw), program.load_image(raw)
    assert slices.shape == (len(bits), 2)
    assert slices.dtype == np.uint32
    for word, parts in zip(bits, slices, strict=True):
        value = int(parts[0]) | int(parts[1]) << 32
        assert [value >> i & 1 for i in range(64)] == word.astype(int).tolist()


def test_an_image_with_too_few_frames_is_refused() -> None:
    network = random_network(1, static=False, timesteps=3)
    program = compile_network(network, smallest_for(network, lanes=8))
    raw = random_images(network, 1)[0]
    with pytest.raises(ValueError, match=r"^raw input must have 3 frames, not 2$"):
        program.load_image(raw[:2])


@pytest.mark.parametrize("bits", [2, 3, 5, 8])
def test_weight_slices_hold_the_weights(bits: int) -> None:
    network = random_network(3, weight_bits=bits)
    program = compile_network(network, smallest_for(network, lanes=16))
    lanes = regions.weight_slice_lanes(program.config)
    slices = program.contents.slices()[regions.Region.WEIGHTS]
    drafted = draft(network, program.config)
    weights = np.concatenate([lowered.weights for lowered in drafted.layers])
    assert slices.shape == (len(weights), 16 // lanes)
    assert np.array_equal(program.contents.weights(), weights)
    for (row, lane), weight in np.ndenumerate(weights):
        code = int(slices[row, lane // lanes]) >> (lane % lanes * bits) & ((1 << bits) - 1)
        assert code == weight % (1 << bits)


LARGE = "cifar10-resnet20"
TOO_FEW = [(name, 4) for name in (LARGE, f"{LARGE}-4bit", f"{LARGE}-4bit-sparse")]


@pytest.mark.parametrize(
    ("name", "lanes"),
    [(name, n) for name in zoo.names() for n in (4, 16, 64) if (name, n) not in TOO_FEW],
)
def test_every_network_of_the_zoo_compiles(name: str, lanes: int) -> None:
    network = file.load(zoo.find(name))
    config = smallest_for(network, lanes=lanes)
    program = compile_network(network, config)
    for field, used in program.usage.items():
        assert needs.rounded(config, field, used) == getattr(config, field)


def test_a_network_that_no_core_of_so_few_lanes_can_hold_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        smallest_for(file.load(zoo.find(LARGE)), lanes=4)
    assert caught.value.violations == (
        "the weight memory needs at least 4320224 rows; no core has more than 2097152",
    )


def test_runs_that_no_core_holds_are_refused_before_they_are_made() -> None:
    network = small_network()
    source = replace(network.input, shape=(2, 300, 300))
    pool = Window(kernel=(300, 300), stride=(1, 1))
    path = Path(source=INPUT, weight=np.ones((6, 2, 1, 1), np.int64), pool=pool)
    first = replace(network.layers[0], paths=(path,), shape=(6, 1, 1), pool=None)
    last = replace(
        network.layers[1], paths=(Path(source="first", weight=np.ones((4, 6, 1, 1), np.int64)),)
    )
    with pytest.raises(CompileError) as caught:
        smallest_for(replace(network, input=source, layers=(first, last)), lanes=8)
    assert caught.value.violations == (
        "the run table needs at least 90001 entries; no core has more than 65536",
    )


def test_pool_taps_share_a_path_unless_padding_would_count() -> None:
    network = small_network()

    def paths(padding: int, window: Window) -> int:
        weight = np.ones((6, 2, 1, 1), np.int64)
        path = Path(source=INPUT, weight=weight, padding=(padding, padding), pool=window)
        shape = path.output_shape(network.input.shape)
        first = replace(network.layers[0], paths=(path,), shape=shape)
        last = replace(
            network.layers[1],
            paths=(Path(source="first", weight=np.ones((4, 6, *shape[1:]), np.int64)),),
        )
        changed = replace(network, layers=(first, last))
        return len(compile_network(changed, smallest_for(changed, lanes=8)).table("paths"))

    overlapping = Window(kernel=(3, 2), stride=(1, 2))
    assert paths(0, overlapping) == 2
    assert paths(1, Window(kernel=(1, 1), stride=(1, 1))) == 2
    assert paths(1, overlapping) == 1 + 3 * 2  # the last column is dropped by the pool


def test_the_listing_shows_every_layer_tensor_and_memory() -> None:
    network = small_network()
    program = compile_network(network, smallest_for(network, lanes=4))
    text = listing.text(program)
    assert "program 'small', T = 2, for core " in text
    assert "layer 0 'first': 6x5x5, N = 5, static current" in text
    assert "  path 0: field of view at row 0 +5 of 0..20, bit 0 +32 of 0..159" in text
    assert "    run at row +0 bit +0: 32 bits, weight +0" in text
    assert "layer 1 'logits': 4x1x1, readout" in text
    assert all(f"\n  {name} " in text for name in program.tensors)


def test_the_listing_says_how_the_input_is_gathered() -> None:
    network = small_network()
    gathered = listing.text(compile_network(network, smallest_for(network, lanes=4)))
    assert (
        "  the host gathers the input: a pixel holds a 3x3 field of view (stride 1x1, padding 1x1) "
        "of 2x5x5, in 32 channels\n"
    ) in gathered
    program = compile_network(network, smallest_for(network, lanes=4, word=16))
    text = listing.text(program)
    assert "gathers" not in text
    assert "  path 0: field of view at row -1 +1 of 0..4, bit -2 +2 of 0..9" in text
    assert "    run at row +2 bit +0: 6 bits, weight +12" in text


def test_json_says_how_the_input_is_gathered() -> None:
    network = small_network()
    gathered = listing.summary(compile_network(network, smallest_for(network, lanes=4)))
    window = {"kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "channels": 32}
    assert gathered["patches"] == window
    plain = compile_network(network, smallest_for(network, lanes=4, word=16))
    assert listing.summary(plain)["patches"] is None


def test_the_command_prints_a_listing_or_json(
    tmp_path: FilePath, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net.lbq"
    file.save(small_network(), model)
    assert main(["--model", str(model), "--lanes", "8"]) == 0
    assert "layer 1 'logits'" in capsys.readouterr().out
    assert main(["--model", str(model), "--lanes", "8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["usage"]["weight_rows"] == 232
    assert facts["config"]["lanes"] == 8
    assert [layer["name"] for layer in facts["layers"]] == ["first", "logits"]


def test_the_command_says_why_it_failed(
    tmp_path: FilePath, capsys: pytest.CaptureFixture[str]
) -> None:
    model, core = tmp_path / "net.lbq", tmp_path / "core.json"
    file.save(small_network(), model)
    core.write_text('{"lanes": 8, "weight_rows": 100}', encoding="utf-8")
    assert main(["--model", str(model), "--core", str(core)]) == 2
    error = capsys.readouterr().err
    assert "the weight memory needs 232 rows, the core has 100 (132 short)" in error
    assert main(["--model", str(model), "--lanes", "9"]) == 2
    assert capsys.readouterr().err == "error: lanes must be a power of two, not 9\n"


def test_a_field_of_view_much_wider_than_its_source_is_reckoned_with() -> None:
    network = small_network()
    weight = np.ones((4, 16, 5, 5), np.int64)
    path = Path(source=INPUT, weight=weight, padding=(2, 2))
    readout = replace(network.layers[-1], paths=(path,))
    source = Input(shape=(16, 1, 1), static=True, bits=1)
    network = replace(network, input=source, layers=(readout,))
    config = smallest_for(network, lanes=16, word=16)
    assert compile_network(network, config).table("runs")[0]["length_last"] == 5 * 16 - 1
    assert config.row_words == 2
