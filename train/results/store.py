"""What a folder of results holds, and rows for it from the folders that training leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from train import config as configurations
from train.checkpoint import index
from train.config import INCIDENTAL, Config
from train.schema import flat

METHODS = {
    "binary": "Binary LIF",
    "ternary-fixed": "Ternary, fixed step",
    "ternary-learned": "Ternary, learned step",
    "v1": "V1: fixed step, box",
    "v2": "V2: fixed step, ReLSG-ET",
    "v3": "V3: learned step, box",
    "lbq": "LBQ: learned step, ReLSG-ET",
    "quantized-ann": "Quantized ANN, N + 1 levels",
    "ann": "ANN, ReLU",
}
RANGES = ("gamma_min", "gamma_max", "lambda_min", "lambda_max")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished training run: its settings and the accuracy of its last epoch in float32.

    Members: `name` of the configuration and `changes` to it, each ``key=value``; `method`, a key of
    `METHODS`; `weight_bits`, 0 for float weights; `fine_tuned`, whether it began with the weights
    of another run; `ema`, the decay of averaged weights, which are then the ones evaluated, or 0;
    `seconds` of training; `ranges`, the least and greatest gamma and lambda of its layers, where it
    has them; `evaluations`, other accuracies of the last weights, by name.
    """

    name: str
    changes: Sequence[str]
    method: str
    timesteps: int
    capacity: int
    weight_bits: int
    fine_tuned: bool
    epochs: int
    batch: int
    lr: float
    ema: float
    seed: int
    accuracy: float
    seconds: float
    ranges: Mapping[str, float] = field(default_factory=dict)
    evaluations: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: Path) -> Run:
        wanted = {f.name for f in fields(cls)}
        if values.keys() != wanted:
            names = ", ".join(sorted(wanted ^ values.keys()))
            raise ValueError(f"{source} must have the keys of a run; it differs in {names}")
        if values["method"] not in METHODS:
            known = ", ".join(METHODS)
            raise ValueError(f"{source}: method must be one of {known}, not {values['method']!r}")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Results:
    """A folder of results, read; runs are keyed by the names of their files."""

    folder: Path
    paper: Mapping[str, Any]
    runs: Mapping[str, Run]
    ablation: Mapping[str, Run]
    measured: Sequence[Mapping[str, Any]]
    bench: Mapping[str, Any] | None
    notes: Mapping[str, str]

    def nets(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """Measured networks with these values; most weight bits first, then by capacity."""
        found = [
            net for net in self.measured if all(net[key] == value for key, value in wanted.items())
        ]
        return sorted(found, key=lambda net: (-net["weight_bits"], net["capacity"]))


def load(folder: Path) -> Results:
    """Read a folder; only paper.json must be there."""
    bench, notes = folder / "bench-gpu.json", folder / "notes.json"
    return Results(
        folder=folder,
        paper=_read(folder / "paper.json"),
        runs=_runs(folder / "runs"),
        ablation=_runs(folder / "ablation"),
        measured=[_read(file) for file in sorted(folder.glob("measured/*.json"))],
        bench=_read(bench) if bench.is_file() else None,
        notes=_read(notes) if notes.is_file() else {},
    )


def collect(folder: Path, *, config: str | None = None, overrides: Sequence[str] = ()) -> Run:
    """The row of a run folder, from ``last.json``, ``metrics.jsonl`` and, where there is one,
    ``final.json`` of accuracies by name. A folder without ``last.json`` needs the configuration.
    """
    if config is None:
        chosen = Config.from_dict(index(folder, "last")["config"])
    else:
        chosen = configurations.load(config, overrides)
    metrics = folder / "metrics.jsonl"
    if not metrics.is_file():
        raise ValueError(f"{folder} holds no finished run: {metrics} is missing")
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    epochs = lines[-1]["epoch"] if lines else 0
    if epochs != chosen.train.epochs or lines[-1]["test_accuracy"] is None:
        raise ValueError(f"{folder} must have ended all {chosen.train.epochs} epochs, not {epochs}")
    final = folder / "final.json"
    evaluations = _read(final) if final.is_file() else {}
    neuron, train = chosen.neuron, chosen.train
    return Run(
        name=chosen.name,
        changes=_changes(chosen),
        method=_method(chosen),
        timesteps=neuron.timesteps,
        capacity=neuron.capacity,
        weight_bits=train.weight_bits,
        fine_tuned=bool(train.init),
        epochs=epochs,
        batch=train.batch,
        lr=train.lr,
        ema=train.ema,
        seed=train.seed,
        accuracy=lines[-1]["test_accuracy"],
        seconds=round(lines[-1]["total_seconds"], 1),
        ranges={key: lines[-1][key] for key in RANGES if key in lines[-1]},
        evaluations={name: value for name, value in evaluations.items() if name != "epoch"},
    )


def save(run: Run, path: Path) -> None:
    """Write one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")


def _changes(config: Config) -> list[str]:
    """What was set beside a shipped configuration; the run it began with is not named."""
    if config.name not in configurations.shipped():
        return []
    shipped, own = flat(configurations.load(config.name).to_dict()), flat(config.to_dict())
    hidden = {*INCIDENTAL, "train.eval_every", "train.init"}
    return [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in own.items()
        if value != shipped[key] and key not in hidden
    ]


def _method(config: Config) -> str:
    """The key of `METHODS`: what the neuron emits, and how its step and its slope are chosen."""
    neuron = config.neuron
    learned = bool(neuron.learn_gamma)
    match neuron.kind:
        case "lbq" | "burst":
            variants = {(False, "box"): "v1", (False, "relsg"): "v2", (True, "box"): "v3"}
            return variants.get((learned, str(neuron.surrogate)), "lbq")
        case "ternary":
            return "ternary-learned" if learned else "ternary-fixed"
        case kind:
            return {"relu": "ann", "quant-relu": "quantized-ann"}.get(kind, kind)


def _runs(folder: Path) -> dict[str, Run]:
    return {path.stem: Run.from_dict(_read(path), path) for path in sorted(folder.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except ValueError as error:
        raise ValueError(f"{path} must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold one JSON object, not {type(value).__name__}")
    return value
