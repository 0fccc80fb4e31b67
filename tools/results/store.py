"""Reads a folder of results, and makes rows for it from run folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from lbq_hw import decode
from lbq_hw.decode import DecodeError
from lbq_hw.train.checkpoint import index
from lbq_hw.train.settings import config as configurations
from lbq_hw.train.settings.config import INCIDENTAL, Config, ModelConfig
from lbq_hw.train.settings.schema import flat

METHODS = {
    "binary": "Binary LIF",
    "ternary-fixed": "Ternary, fixed step",
    "ternary-learned": "Ternary, learned step",
    "mlf": "MLF: N membranes, reset to zero",
    "i-lif": "I-LIF: fixed step, full reset",
    "lm-ht": "LM-HT: learned mixing of timesteps, full reset",
    "v1": "V1: fixed step, box",
    "v2": "V2: fixed step, ReLSG-ET",
    "v3": "V3: learned step, box",
    "lbq": "LBQ: learned step, ReLSG-ET",
    "quantized-ann": "Quantized ANN, N + 1 levels",
    "ann": "ANN, ReLU",
}
PAPERS = "cifar10"  # dataset of the paper's tables, except the accuracy table, which has several
CURVES = "curves.json"  # losses of runs by epoch
VALIDATION = "validation"  # folder of runs that were tested on held-out images
RANGES = ("gamma_min", "gamma_max", "lambda_min", "lambda_max")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished training run: its settings and the accuracy of its last epoch in float32.

    Members: `name` of the configuration and `changes` to it, each ``key=value``; `dataset`, by the
    name that `lbq_hw.datasets` has for it; `method`, a key of `METHODS`; `weight_bits`, 0 for float
    weights; `init`, the run or the network of the zoo whose weights it began with, or "";
    `refine_epochs` and `sam_epochs`,
    the last ones, on mildly augmented images and with sharpness-aware steps; `ema`, the decay of
    averaged weights, which are then the ones evaluated, or 0, and `last_weights`, what the others
    gave; `seconds` of training; `ranges`, the least and greatest gamma and lambda of its layers,
    where it has them; `network`, what differs from the model's own shape, as ``widths=[64, 128]``,
    or ""; `activity`, the weight of events in the loss; `layer_bits`, the weight bits of layers
    that have others than `weight_bits`, by pattern of their names.
    """

    name: str
    changes: tuple[str, ...]
    dataset: str
    method: str
    timesteps: int
    capacity: int
    weight_bits: int
    init: str
    epochs: int
    refine_epochs: int
    sam_epochs: int
    batch: int
    lr: float
    ema: float
    seed: int
    accuracy: float
    seconds: float
    last_weights: float | None = None
    ranges: Mapping[str, float] = field(default_factory=dict)
    network: str = ""
    activity: float = 0.0
    layer_bits: Mapping[str, int] = field(default_factory=dict)

    @property
    def neuron_changes(self) -> tuple[str, ...]:
        """Changes from the configuration's neuron, such as ``gamma0=0.25``."""
        section = "neuron."
        return tuple(c.removeprefix(section) for c in self.changes if c.startswith(section))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: Path) -> Run:
        try:
            run: Run = decode.reader(cls)(values, "run")
            decode.require(
                run.method in METHODS, "run.method", f"one of {', '.join(METHODS)}", run.method
            )
        except DecodeError as error:
            raise ValueError(f"{source}: {error}") from None
        return run


@dataclass(frozen=True, kw_only=True)
class Results:
    """The contents of a folder of results; runs and measured networks have file names as keys.

    `ablations` are neurons compared at one budget each, by folder: ``ablation`` and
    ``ablation-NAME``. `validation` are runs that were made to choose a recipe: their accuracies are
    on images held out of the training split. `levels` has the use of levels in runs of an ablation,
    by run; `curves`, the losses of runs by epoch; `chosen`, the images on which the recipe of a run
    was chosen, if it was not fixed before; `conversion`, an ANN that was converted. The networks
    NAME and NAME-Kbit come from the run NAME; K is the width of their weights.
    """

    folder: Path
    paper: Mapping[str, Any]
    runs: Mapping[str, Run]
    ablations: Mapping[str, Mapping[str, Run]]
    validation: Mapping[str, Run]
    measured: Mapping[str, Mapping[str, Any]]
    bench: Mapping[str, Any] | None
    profile: Mapping[str, Any] | None
    notes: Mapping[str, str]
    levels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    conversion: Mapping[str, Any] | None = None

    def nets(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """Measured networks with these values, one per dataset, T, N and width. Of several, it is
        the network that was trained longest, whatever its accuracy. The paper's dataset comes
        first; then the order is by weight bits, most first, and by capacity. Networks that were
        trained with ``train.activity`` have a table of their own and are left out here, and so are
        networks with weights of several widths.
        """
        paid = {name for name, run in self.runs.items() if run.activity or run.layer_bits}
        found = [
            name
            for name, net in self.measured.items()
            if self.run_of(name) not in paid
            and all(net[key] == value for key, value in wanted.items())
        ]
        most: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for name in sorted(found, key=self._effort):
            net = self.measured[name]
            size = -net["weight_bits"], net["capacity"], net["timesteps"]
            most[net["dataset"] != PAPERS, net["dataset"], *size] = net
        return [most[key] for key in sorted(most)]

    def _effort(self, name: str) -> tuple[int, int]:
        """Sort key that rises with the passes over the training images of a measured network; of
        equal ones, the run of the first seed comes last.
        """
        run = self.runs.get(self.run_of(name) or "")
        return (run.epochs + run.sam_epochs, -run.seed) if run else (0, 0)

    def nets_of(self, run: str) -> list[Mapping[str, Any]]:
        """The measured networks of a run, most weight bits first."""
        found = [net for name, net in self.measured.items() if self.run_of(name) == run]
        return sorted(found, key=lambda net: -net["weight_bits"])

    def run_of(self, name: str) -> str | None:
        """The run of a measured network, if there is one."""
        bits = self.measured[name]["weight_bits"]
        return next((n for n in (name, name.removesuffix(f"-{bits}bit")) if n in self.runs), None)


def load(folder: Path) -> Results:
    """Read a folder; only paper.json must exist.

    ValueError if a measured network does not come from the run in its name.
    """
    bench, profile = folder / "bench-gpu.json", folder / "profile-gpu.json"
    notes, conversion = folder / "notes.json", folder / "conversion.json"
    curves, chosen = folder / CURVES, folder / "chosen.json"
    results = Results(
        folder=folder,
        paper=_read(folder / "paper.json"),
        runs=_runs(folder / "runs"),
        ablations={path.name: _runs(path) for path in sorted(folder.glob("ablation*/"))},
        validation=_runs(folder / VALIDATION),
        measured={path.stem: _read(path) for path in sorted(folder.glob("measured/*.json"))},
        bench=_read(bench) if bench.is_file() else None,
        profile=_read(profile) if profile.is_file() else None,
        notes=_read(notes) if notes.is_file() else {},
        levels={path.stem: _read(path) for path in sorted(folder.glob("levels/*.json"))},
        curves=_read(curves) if curves.is_file() else {},
        chosen=_read(chosen) if chosen.is_file() else {},
        conversion=_read(conversion) if conversion.is_file() else None,
    )
    for name in results.chosen.keys() - results.runs.keys():
        raise ValueError(f"chosen.json must have names of runs, not {name!r}")
    for name, net in results.measured.items():
        run = results.run_of(name)
        if run and net["float_accuracy"] != results.runs[run].accuracy:
            raise ValueError(
                f"measured/{name}.json must be of the run {run}, which has "
                f"{results.runs[run].accuracy} % in float, not {net['float_accuracy']}"
            )
    return results


def collect(
    folder: Path,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
    split: Literal["test", "validation"] = "test",
) -> Run:
    """The row of a run folder, from ``last.json`` and ``metrics.jsonl``. A folder without
    ``last.json`` needs the configuration. ValueError if it was tested on another split.
    """
    if config is None:
        chosen = Config.from_dict(index(folder, "last")["config"])
    else:
        chosen = configurations.load(config, overrides)
    if chosen.data.split != split:
        raise ValueError(
            f"{folder} must be tested on the {split} images, not on the {chosen.data.split} images"
        )
    metrics = folder / "metrics.jsonl"
    if not metrics.is_file():
        raise ValueError(f"{folder} holds no finished run: {metrics} is missing")
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    epochs = lines[-1]["epoch"] if lines else 0
    if epochs != chosen.train.epochs or lines[-1][f"{split}_accuracy"] is None:
        raise ValueError(f"{folder} must have ended all {chosen.train.epochs} epochs, not {epochs}")
    neuron, train = chosen.neuron, chosen.train
    return Run(
        name=chosen.name,
        changes=tuple(_changes(chosen)),
        dataset=chosen.data.name,
        method=_method(chosen),
        timesteps=neuron.timesteps,
        capacity=neuron.capacity,
        weight_bits=train.weight_bits,
        init=Path(train.init).name,
        epochs=epochs,
        refine_epochs=train.refine_epochs,
        sam_epochs=train.sam_epochs,
        batch=train.batch,
        lr=train.lr,
        ema=train.ema,
        seed=train.seed,
        accuracy=lines[-1][f"{split}_accuracy"],
        seconds=round(lines[-1]["total_seconds"], 1),
        last_weights=lines[-1].get("last_weights_accuracy"),
        ranges={key: lines[-1][key] for key in RANGES if key in lines[-1]},
        network=_network(chosen),
        activity=train.activity,
        layer_bits=train.layer_bits,
    )


def add_curves(path: Path, folders: Sequence[Path]) -> None:
    """Put the losses of run folders, one per epoch, into the file of all curves."""
    curves = _read(path) if path.is_file() else {}
    for folder in folders:
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        name = folder.absolute().name
        curves[name] = [round(json.loads(line)["loss"], 3) for line in lines]
    each = (f" {json.dumps(name)}: {json.dumps(curves[name])}" for name in sorted(curves))
    path.write_text("{\n" + ",\n".join(each) + "\n}\n", encoding="utf-8")


def save(run: Run, path: Path) -> None:
    """Write one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")


def _network(config: Config) -> str:
    """The changed shape of a model that is not the paper's ResNet-20, or ""."""
    model, papers = config.model, ModelConfig(name="resnet20")
    if model == papers:
        return ""
    own = {"resnet20": "ResNet-20", "resnet": "ResNet"}.get(model.name, model.name)
    widths = "/".join(map(str, model.widths or model.channels or ()))
    blocks = f"{'+'.join(map(str, model.blocks))} blocks" if model.blocks else ""
    return " ".join(part for part in (own, widths, blocks) if part)


def _changes(config: Config) -> list[str]:
    """Changes to a shipped configuration, without the run from which it started."""
    if config.name not in configurations.shipped():
        return []
    hidden = {*INCIDENTAL, "train.eval_every", "train.init"}
    shipped, own = configurations.load(config.name).to_dict(), config.to_dict()
    bits = own["train"].pop("layer_bits")
    before = flat(shipped)
    changes = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in flat(own).items()
        if value != before[key] and key not in hidden
    ]
    if bits != shipped["train"]["layer_bits"]:
        table = ", ".join(f"{json.dumps(layers)} = {count}" for layers, count in bits.items())
        changes.append(f"train.layer_bits={{ {table} }}")
    return changes


def _method(config: Config) -> str:
    """The key of `METHODS` for the neuron's output, its step and its surrogate."""
    neuron = config.neuron
    learned = bool(neuron.learn_gamma)
    match neuron.kind:
        case "lbq" | "burst":
            box = neuron.surrogate == "box" or not neuron.learn_lambda
            return {(False, True): "v1", (False, False): "v2", (True, True): "v3"}.get(
                (learned, box), "lbq"
            )
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
