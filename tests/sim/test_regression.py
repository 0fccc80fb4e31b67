# amaranth: UnusedElaboratable=no
"""The benches under cocotb pass, each sees a wrong value, and what does not run is told."""

from __future__ import annotations

import gc
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import UnusedElaboratable

from lbq_hw import file, zoo
from lbq_hw import golden as reference
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core import variants
from lbq_hw.core.variants import host_port
from lbq_hw.core.walk.walker import Walker
from lbq_hw.cycles import predict
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.sim import golden, regression, runner
from lbq_hw.sim.benches import BENCHES
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.benches.scoreboard import differences, spoiled
from lbq_hw.sim.command import main
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.models.programs import SMALL
from lbq_hw.sim.own_network import run_network
from lbq_hw.sim.regression import SIMULATORS, run_bench, runs_on, shapes
from lbq_hw.sim.runner import compile_design, missing, simulate
from lbq_hw.sim.verilog import SimulatorError, convert

needs_icarus = pytest.mark.skipif(
    missing("icarus") is not None, reason=missing("icarus") or "icarus runs"
)
# A Verilator that cannot run them is no reason to skip: Icarus has run them all.
SIMULATORS_HERE = [
    pytest.param("icarus", marks=needs_icarus),
    *(simulator for simulator in SIMULATORS[1:] if missing(simulator) is None),
]


# These take longer than the others under Icarus; a small network has its own test below.
LARGE = ("accelerator", "link", "memory")


@pytest.mark.parametrize(
    "bench",
    [pytest.param(b, marks=pytest.mark.slow) if b in LARGE else b for b in BENCHES],
)
@pytest.mark.parametrize("simulator", SIMULATORS_HERE)
def test_a_bench_passes(simulator: str, bench: str) -> None:
    if not runs_on(bench, simulator):
        pytest.skip(f"{bench} does not run on {simulator}")
    run = run_bench(bench, simulator=simulator).run
    assert run.failures == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bench", "shape"), [(bench, shape) for bench in BENCHES for shape in shapes(bench)]
)
@pytest.mark.parametrize("simulator", SIMULATORS_HERE)
def test_a_bench_of_every_shape_passes_with_more_traffic(
    simulator: str, bench: str, shape: int
) -> None:
    if not runs_on(bench, simulator):
        pytest.skip(f"{bench} does not run on {simulator}")
    for seed in range(10, 13):
        run = run_bench(bench, simulator=simulator, shape=shape, seed=seed, length=2).run
        assert run.failures == {}, f"seed {seed}"


PROFILES = {
    "compact": SMALL.with_(profile=Profile.COMPACT),
    "standard": SMALL,
    "spread": SMALL.with_(profile=Profile.SPREAD),
    "external": SMALL.with_external(),
    "pairs": SMALL.with_external(lanes=16, pairs=1, channels=48, logits=32),
}


def blocks_of(config: CoreConfig) -> dict[str, type]:
    """The blocks of a core by their benches."""
    walker: Any = Walker(config)
    of_walk = {"layer": walker.o_layer_info.shape(), "step": walker.o_step.payload.shape()}
    return {
        "host_port": host_port(config),
        "walker": type(walker._layers),
        "planes": type(variants.plane_memory(config)),
        "scanner": type(variants.scanner(config)),
        "lanes": type(variants.lane_array(config)),
        "neurons": type(variants.neuron_array(config, **of_walk)),
        "writer": type(variants.writer(config, **of_walk)),
    }


def driven(bench: str) -> list[type]:
    """The blocks that a bench drives, by shape."""
    built: list[Any] = [regression.block(bench, shape) for shape in shapes(bench)]
    inner = {"scanner": "scanner", "walker": "_layers"}.get(bench)
    return [type(getattr(each, inner) if inner else each) for each in built]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_block_of_a_profile_has_a_shape(profile: str) -> None:
    """The variant that the profile's core has is among the blocks of its bench."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        wanted = blocks_of(PROFILES[profile])
        kinds = {bench: driven(bench) for bench in wanted}
        gc.collect()  # of blocks that were never elaborated
    for bench, kind in wanted.items():
        assert any(kind in (each, *each.__bases__) for each in kinds[bench]), bench


def assert_sees_a_wrong_value(bench: str) -> None:
    run = run_bench(bench, spoil=True).run
    assert set(run.failures) == set(run.tests)
    assert all("differs:" in text for text in run.failures.values())


@needs_icarus
def test_a_wrong_value_is_seen_by_the_checker() -> None:
    assert_sees_a_wrong_value("lanes")


@needs_icarus
@pytest.mark.slow
@pytest.mark.parametrize("bench", BENCHES)
def test_a_wrong_value_is_seen_by_every_test_of_a_bench(bench: str) -> None:
    assert_sees_a_wrong_value(bench)


@needs_icarus
def test_a_network_of_the_users_own_runs_layer_by_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = random_network(3, layers=1, timesteps=1)
    file.save(network, tmp_path / "net.lbq")
    np.save(tmp_path / "images.npy", random_images(network, 2))
    arguments = ["--model", str(tmp_path / "net.lbq"), "--raw", str(tmp_path / "images.npy")]
    arguments += ["--images", "2", "--lanes", "4", "--simulator", "icarus", "--json"]
    assert regression.main(arguments) == 0
    (bench,) = json.loads(capsys.readouterr().out)["benches"]
    assert (bench["bench"], bench["error"]) == ("network", None)
    assert [test["name"] for test in bench["tests"]] == ["a_network_layer_by_layer"]

    spoilt = run_network(network, random_images(network, 1), lanes=4, spoil=True).run
    assert re.match(r"tensors: message \d+ differs:", spoilt.failures["a_network_layer_by_layer"])


def test_testbenches_and_a_model_are_not_given_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        regression.main(["lanes", "--model", "digits"])
    assert capsys.readouterr().err.endswith("error: give testbenches or a model, not both\n")


@needs_icarus
def test_a_bench_that_cannot_be_imported_is_an_error() -> None:
    design = compile_design(convert(regression.block("lanes", 0), name="lanes"), top="lanes")
    with pytest.raises(
        SimulatorError, match=r"^icarus ran no test of lbq_hw\.sim\.benches\.nothing:\n"
    ):
        simulate(design, "lbq_hw.sim.benches.nothing", variables=Settings().to_env())


@needs_icarus
def test_verilog_that_does_not_compile_is_an_error() -> None:
    with pytest.raises(SimulatorError, match=r"^icarus does not build top:\n.*syntax error"):
        compile_design("module top(; endmodule", top="top")


@needs_icarus
def test_waves_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    waves = tmp_path / "writer.fst"
    assert run_bench("writer", waves=waves).run.failures == {}
    assert waves.stat().st_size > 1000


@pytest.mark.parametrize(
    ("simulator", "reason"),
    [
        ("icarus", "iverilog is missing: sudo apt install iverilog"),
        ("verilator", "verilator is missing: sudo apt install verilator"),
    ],
)
def test_a_simulator_that_is_not_installed(
    simulator: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.shutil, "which", lambda _: None)
    assert missing.__wrapped__(simulator) == reason


def test_all_that_differs_in_a_message_is_told() -> None:
    expected = {"a": [1, 2], "b": {"c": 3}, "d": (4, 5)}
    found = {"a": [1, 7], "b": {"c": 8}, "d": (4, 5)}
    assert list(differences(expected, found)) == [
        "a[1]: expected 2, found 7",
        "b.c: expected 3, found 8",
    ]
    assert list(differences([1], [1, 2])) == ["value: expected [1], found [1, 2]"]


@pytest.mark.parametrize("message", [3, {"a": 1, "b": []}, {"a": [1, 2]}, (1, 2), [[]]])
def test_a_spoiled_message_differs(message: object) -> None:
    assert list(differences(message, spoiled(message)))


@needs_icarus
def test_a_network_runs_in_icarus_in_the_cycles_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = random_network(3, layers=1, timesteps=1)
    image = random_images(network, 1)
    file.save(network, tmp_path / "net.lbq")
    np.save(tmp_path / "images.npy", image)
    arguments = ["--model", str(tmp_path / "net.lbq"), "--raw", str(tmp_path / "images.npy")]
    arguments += ["--lanes", "4", "--simulator", "icarus", "--limit", "120", "--json"]
    assert main([*arguments, "--waves", str(tmp_path / "waves.fst")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["bit_exact"], report["images"], report["lanes"]) == (True, 1, 4)

    program = compile_network(network, smallest_for(network, lanes=4))
    traces = reference.run(network, image, keep="levels").traces
    levels = {name: t.output[:, 0] for name, t in traces.items() if t.output is not None}
    predicted = predict(program, image[0], levels)
    names = ("name", "cycles", "events", "null_events")
    assert [[layer[name] for name in names] for layer in report["layers"]] == [
        [getattr(layer, name) for name in names] for layer in predicted
    ]
    assert report["cycles"] == sum(layer.cycles for layer in predicted)
    assert (tmp_path / "waves.fst").stat().st_size > 1000


@pytest.mark.parametrize("name", golden.IMAGES)
def test_the_stored_tensors_are_what_the_golden_model_computes(name: str) -> None:
    stored = golden.load(name)
    made = golden.make(file.load(zoo.find(name)), stored.images)
    assert len(stored.images) == golden.IMAGES[name]
    assert np.array_equal(stored.logits, made.logits)
    assert list(stored.levels) == list(made.levels)
    for layer, levels in made.levels.items():
        assert np.array_equal(stored.levels[layer], levels), layer


def test_the_stored_images_are_those_that_every_command_draws() -> None:
    drawn = load_samples(file.load(zoo.find("digits")), limit=golden.IMAGES["digits"])
    assert np.array_equal(golden.load("digits").images, drawn.images)


def test_the_stored_tensors_are_small() -> None:
    assert sum(path.stat().st_size for path in golden.FOLDER.glob("*.npz")) < 100_000
