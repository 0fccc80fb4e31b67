"""The benchmark trains as the loop does, and reports what it measured or why it did not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console
from torch.autograd import DeviceType

from lbq_hw import datasets
from lbq_hw.train import checkpoint, loop
from lbq_hw.train.data import DeviceLoader
from lbq_hw.train.data.augment import Pipeline
from lbq_hw.train.kernels import normed_jit, recurrence_jit
from lbq_hw.train.settings import config
from tools.bench_gpu import command, neuron, profile, steps, training
from tools.bench_gpu.clock import QUICK, Effort

CPU = torch.device("cpu")
TINY = """
base = "cifar10-resnet20-t2-fast"
[model]
widths = [2, 2, 4]
[train]
batch = 4
compile = "off"
"""

on_cuda = pytest.mark.skipif(
    not torch.cuda.is_available() or recurrence_jit.triton is None, reason="needs CUDA and Triton"
)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Effort:
    """A small network in place of ResNet-20, a clock that counts calls, few images."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    monkeypatch.setattr(steps, "CONFIG", str(path))

    def time_calls(call: Callable[[], Any], effort: Effort) -> list[float]:
        losses = [call() for _ in range(effort.calls)]
        assert all(torch.isfinite(loss) for loss in losses)
        return [2.0, 1.0, 5.0]

    monkeypatch.setattr(steps, "time_calls", time_calls)
    return Effort(timesteps=(1, 2), images=8, calls=3)


def report(**changes: float) -> dict[str, Any]:
    """Figures that all meet their targets, save those that are given."""
    ratios = {"ANN (ReLU)": 1.0, "LBQ, T = 2": changes.get("ratio", 1.5)}
    shares = {name: changes.get(name, 0.8) for name in ("forward", "backward")}
    return {
        "device": "a GPU",
        "batch": 256,
        "steps": [
            *(
                {
                    "name": name,
                    "ms": 10 * ratio,
                    "rounds_ms": [10 * ratio, 10 * ratio],
                    "ratio": ratio,
                    "target": None if ratio == 1 else 1.9,
                }
                for name, ratio in ratios.items()
            ),
            {
                "name": "SpikingJelly I-LIF, T = 2",
                "ms": None,
                "rounds_ms": [],
                "ratio": None,
                "target": None,
                "note": "not installed",
            },
        ],
        "neurons": [
            {
                "timesteps": 2,
                "bytes": 134_000_000,
                "copy": {"ms": 0.065, "gb_per_s": 4123.0},
                **{k: {"ms": 0.08, "gb_per_s": 3300.0, "of_copy": v} for k, v in shares.items()},
            }
        ],
    }


def test_a_step_is_one_of_the_training_loop(tmp_path: Path) -> None:
    """After an epoch of it the network is, bit for bit, the one that train.loop leaves."""
    changes = ["train.epochs=1", "train.batch=240", "train.device=cpu", "model.channels=[4, 4]"]
    changes += ["train.schedule=constant", "train.warmup_epochs=0", "augment.shift=0.1"]
    chosen = config.load("digits", changes)
    loop.train(chosen, tmp_path)
    want = checkpoint.load(tmp_path, "last")["model"]

    dataset = datasets.load("digits", split="train")
    spec = chosen.data.spec(dataset.shape, static=True)
    torch.manual_seed(chosen.train.seed)
    network = checkpoint.build(chosen, spec, dataset.classes)
    seed = chosen.train.seed * 1_000_003 + 1
    torch.manual_seed(seed)
    loader = DeviceLoader(
        dataset,
        spec,
        batch=240,
        augment=Pipeline(chosen.augment, spec, classes=dataset.classes),
        shuffle=True,
        drop_last=True,
        generator=torch.Generator().manual_seed(seed),
    )
    step = training.Training(chosen, network, iter(loader), CPU)
    for _ in range(len(loader)):
        step()
    got = network.state_dict()
    assert got.keys() == want.keys()
    assert all(torch.equal(got[name], want[name]) for name in want)


def test_batches_are_augmented_and_never_end(tiny: Effort) -> None:
    chosen = config.load(steps.CONFIG)
    spec = chosen.data.spec((3, 32, 32), static=True)
    batches = training.random_batches(chosen, spec, 10, tiny.images, CPU)
    for _ in range(5):
        images, labels = next(batches)
        assert images.shape == (4, 3, 32, 32)
        assert (images == 0).flatten(1).any(1).all()  # cut out
        assert labels.shape == (4,)


def test_every_network_is_timed_against_the_ann(
    tiny: Effort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.importlib.util, "find_spec", lambda _: None)
    ann, one, one_alone, two, two_alone, jelly = steps.measure_steps(tiny, CPU)
    assert (ann["name"], ann["target"]) == ("ANN (ReLU)", None)
    assert (one["name"], one["target"]) == ("LBQ, T = 1", 1.1)
    assert (two["name"], two["target"]) == ("LBQ, T = 2", 1.9)
    assert (one_alone["name"], one_alone["target"]) == ("LBQ, T = 1, neuron alone", None)
    assert (two_alone["name"], two_alone["target"]) == ("LBQ, T = 2, neuron alone", None)
    for row in (ann, one, one_alone, two, two_alone):
        assert (row["ms"], row["ratio"], row["rounds_ms"]) == (2.0, 1.0, [2.0, 1.0, 5.0])
    assert (jelly["ms"], jelly["ratio"], jelly["note"]) == (None, None, "not installed")


def jelly(monkeypatch: pytest.MonkeyPatch, multi_step: Callable[..., Any]) -> None:
    """A package in place of SpikingJelly, with that neuron."""
    functional, surrogate = (
        ModuleType(f"spikingjelly.activation_based.{name}") for name in ("functional", "surrogate")
    )
    vars(functional)["ilif_multi_step"] = multi_step
    vars(surrogate)["MultiLevelSpikeCount"] = lambda count: SimpleNamespace(count=count)
    for module in (functional, surrogate):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    real = steps.importlib.util.find_spec

    def find(name: str, *others: Any) -> Any:
        return object() if name == "spikingjelly" else real(name, *others)

    monkeypatch.setattr(steps.importlib.util, "find_spec", find)


def test_spikingjelly_is_timed_where_it_is_installed(
    tiny: Effort, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()

    def multi_step(steps, rest, tau, threshold, surrogate):
        assert rest.dtype == torch.float32
        assert not rest.any()
        seen.add((len(steps), tau, threshold, surrogate.count))
        return (steps.relu(), rest, None)

    jelly(monkeypatch, multi_step)
    row = steps.measure_steps(replace(tiny, timesteps=()), CPU)[-1]
    assert (row["name"], row["ms"]) == ("SpikingJelly I-LIF, T = 2", 2.0)
    assert seen == {(2, 2.0, 1.0, 5)}


def test_a_spikingjelly_that_fails_leaves_its_reason(
    tiny: Effort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multi_step(*_: Any) -> None:
        raise RuntimeError("no kernel\nand more")

    jelly(monkeypatch, multi_step)
    row = steps.measure_steps(replace(tiny, timesteps=()), CPU)[-1]
    assert (row["ms"], row["note"]) == (None, "does not run: no kernel")


def test_bandwidth_counts_what_must_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neuron, "WIDEST", (2, 4, 4))
    monkeypatch.setattr(neuron, "time_calls", lambda *_: [0.001])
    monkeypatch.setattr(neuron, "captured", lambda call, _: call)
    passes = [("forward", 2, lambda: None), ("backward", 3, lambda: None)]
    monkeypatch.setattr(neuron, "neuron_passes", lambda *_: passes)
    row = neuron.measure_neuron(2, Effort(captured=4), CPU)
    size = 2 * 256 * 2 * 4 * 4 * 2
    assert (row["shape"], row["bytes"]) == ((512, 2, 4, 4), size)
    assert row["copy"]["gb_per_s"] == pytest.approx(2 * size / 1e3)
    assert row["forward"]["gb_per_s"] == pytest.approx(4 * 2 * size / 1e3)
    assert row["backward"]["of_copy"] == pytest.approx(4 * 1.5)


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sees a GPU with Triton, and a wide console."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(recurrence_jit, "triton", SimpleNamespace())
    monkeypatch.setattr(command, "Console", lambda: Console(width=120))


@pytest.mark.usefixtures("pretended_gpu")
def test_the_report_is_shown_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(command, "measure", lambda effort, _: asked.append(effort) or report())
    path = tmp_path / "bench.json"
    assert command.main(["--json", str(path), "--quick"]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == report()
    assert asked == [QUICK]
    shown = capsys.readouterr().out
    for text in (
        "LBQ, T = 2",
        "15.00 (15.00 to 15.00)",
        "1.50 ANN",
        "<= 1.9",
        "not installed",
        "4123 GB/s",
        "80 % of copy",
        ">= 70 %",
    ):
        assert text in shown


@pytest.mark.usefixtures("pretended_gpu")
def test_what_is_over_its_target_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = report(ratio=2.0, backward=0.6)
    monkeypatch.setattr(command, "measure", lambda *_: slow)
    assert command.main([]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "over target: the step of LBQ, T = 2, neuron backward at T = 2"


KERNELS = {
    "moments_kernel": "neurons (own kernels)",
    "forward_kernel": "neurons (own kernels)",
    "backward_kernel_0d1d2d": "neurons (own kernels)",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedSgd>": "optimizer",
    "triton_for_fused_add_mul_1": "optimizer",
    "triton_poi_fused__to_copy_convolution_backward_3": "norms and pointwise (Inductor)",
    "triton_red_fused__native_batch_norm_legit_functional_7": "norms and pointwise (Inductor)",
    "sm90_xmma_wgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc": "convolutions, to weights",
    "cutlass_tensorop_bf16_s16816dgrad_optimized_bf16_128x64": "convolutions, to inputs",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc": "convolutions, forward",
    "void cudnn::cnn::conv2d_grouped_direct_kernel<false>": "convolutions, forward",
    "nvjet_tst_64x8_64x16_1x2_h_bz_TNT": "matrix products",
    "void at::native::batch_norm_backward_kernel<float>": "other",
    "Memcpy DtoD (Device -> Device)": "other",
}


@pytest.mark.parametrize(("kernel", "kind"), KERNELS.items(), ids=str)
def test_a_kernels_name_tells_its_kind(kernel: str, kind: str) -> None:
    assert profile.kind_of(kernel) == kind


def test_our_own_kernels_are_the_neurons() -> None:
    modules = (normed_jit, recurrence_jit)
    names = {name for module in modules for name in vars(module) if name.endswith("_kernel")}
    assert names >= {"moments_kernel", "forward_kernel", "backward_kernel"}
    assert names >= {"long_forward_kernel", "long_backward_kernel"}
    assert len(names) == 5
    assert {profile.kind_of(name) for name in names} == {"neurons (own kernels)"}


def event(name: str, us: float, device: DeviceType, *, annotation: bool = False) -> Any:
    """What the profiler has seen, as far as it is looked at."""
    return SimpleNamespace(
        name=name, device_time=us, device_type=device, is_user_annotation=annotation
    )


def test_kernels_are_summed_by_name_and_counted_once() -> None:
    events = [
        event("forward_kernel", 200, DeviceType.CUDA),
        event("triton_poi_0", 100, DeviceType.CUDA),
        event("triton_poi_0", 500, DeviceType.CUDA),
        event("aten::add", 600, DeviceType.CPU),
        event("Optimizer.step#SGD.step", 900, DeviceType.CUDA, annotation=True),
    ]
    assert profile.by_kernel(events, calls=2) == [
        {"kernel": "triton_poi_0", "calls": 1, "ms": 0.3},
        {"kernel": "forward_kernel", "calls": 0.5, "ms": 0.1},
    ]


def kernels(**ms: float) -> list[dict[str, Any]]:
    return [{"kernel": name, "calls": 1, "ms": time} for name, time in ms.items()]


def test_kernels_are_grouped_in_the_order_of_kinds() -> None:
    found = kernels(Memset=0.125, a_dgrad=1, triton_poi_0=2, b_dgrad=0.5, forward_kernel=4)
    assert [*profile.by_kind(found).items()] == [
        ("neurons (own kernels)", 4),
        ("norms and pointwise (Inductor)", 2),
        ("convolutions, to inputs", 1.5),
        ("other", 0.125),
    ]
    assert profile.by_kind([]) == {}


def profile_report() -> dict[str, Any]:
    """A profile of the ANN, with no neurons, and of LBQ at two T."""
    found = {
        ("ANN (ReLU)", 1, 4.0): kernels(fprop=1, triton_poi_0=2),
        ("LBQ, T = 2", 2, 6.0): kernels(fprop=2, triton_poi_0=1, forward_kernel=2),
        ("LBQ, T = 4", 4, 10.0): kernels(fprop=4, triton_poi_0=1, forward_kernel=4),
    }
    rows = [
        {"name": name, "timesteps": timesteps, "ms": ms, "kernels": row,
         "kinds": profile.by_kind(row)}
        for (name, timesteps, ms), row in found.items()
    ]  # fmt: skip
    return {"device": "a GPU", "batch": 256, "profile": rows}


def test_kinds_stand_by_network_beside_their_ratio_to_the_ann() -> None:
    headings, lines = profile.table(profile_report()["profile"])
    assert headings == [
        "",
        "ANN (ReLU), ms",
        "LBQ, T = 2, ms",
        "of ANN",
        "LBQ, T = 4, ms",
        "of ANN",
    ]
    assert lines == [
        ["neurons (own kernels)", "0.00", "2.00", "-", "4.00", "-"],
        ["norms and pointwise (Inductor)", "2.00", "1.00", "0.50", "1.00", "0.50"],
        ["convolutions, forward", "1.00", "2.00", "2.00", "4.00", "4.00"],
        ["all kernels", "3.00", "5.00", "1.67", "9.00", "3.00"],
        ["step", "4.00", "6.00", "1.50", "10.00", "2.50"],
    ]


def test_the_networks_that_are_timed_are_profiled(
    tiny: Effort, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def kernels_of(call: training.Training, calls: int) -> list[dict[str, Any]]:
        seen.append((call.config.neuron.kind, call.config.train.fuse, calls))
        return kernels(forward_kernel=3)

    monkeypatch.setattr(profile, "time_calls", steps.time_calls)
    monkeypatch.setattr(profile, "kernels_of", kernels_of)
    rows = profile.measure_profile(replace(tiny, timesteps=(1, 2, 4)), CPU)
    assert [(row["name"], row["timesteps"]) for row in rows] == [
        ("ANN (ReLU)", 1),
        ("LBQ, T = 2", 2),
        ("LBQ, T = 4", 4),
    ]
    assert seen == [("relu", False, 3), ("lbq", True, 3), ("lbq", True, 3)]
    for row in rows:
        assert (row["ms"], row["kinds"]) == (2.0, {"neurons (own kernels)": 3})
        assert row["kernels"] == kernels(forward_kernel=3)
    assert [row["timesteps"] for row in profile.measure_profile(tiny, CPU)] == [1, 2]


@pytest.mark.usefixtures("pretended_gpu")
def test_the_profile_is_shown_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(
        command, "profiled", lambda effort, _: asked.append(effort) or profile_report()
    )
    path = tmp_path / "profile.json"
    assert command.main(["--profile", "--json", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == profile_report()
    assert asked == [Effort()]
    shown = capsys.readouterr().out
    assert "A step's kernels: ResNet-20, batch 256, a GPU" in shown
    lines = [line.strip("│").split("│") for line in shown.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert cells == profile.table(profile_report()["profile"])[1]


@pytest.mark.parametrize("options", [[], ["--profile"]], ids=str)
@pytest.mark.parametrize(
    ("cuda", "sentence"),
    [
        (False, "error: the benchmark needs a CUDA GPU, and torch sees none\n"),
        (True, "error: the benchmark needs Triton\n"),
    ],
)
def test_without_the_device_or_triton_it_says_so(
    options: list[str],
    cuda: bool,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(recurrence_jit, "triton", None)
    assert command.main(options) == 2
    assert capsys.readouterr() == ("", sentence)


@on_cuda
def test_the_neuron_is_timed_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neuron, "WIDEST", (8, 4, 4))
    row = neuron.measure_neuron(2, QUICK, torch.device("cuda"))
    for name in ("copy", "forward", "backward"):
        assert row[name]["ms"] > 0
    assert row["backward"]["of_copy"] > 0


@on_cuda
def test_kernels_are_found_on_the_device() -> None:
    tensor = torch.ones(1 << 20, device="cuda")
    rows = profile.kernels_of(lambda: tensor.add_(1), 3)
    assert sum(row["calls"] for row in rows) == 1
    assert rows[0]["ms"] > 0
