"""The results page: that the committed one is what its JSON gives, and each section by itself."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import file, zoo
from lbq_hw.datasets.fitting import Samples
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.train import measure
from lbq_hw.train.settings import config
from tools.results import ablation as ablations
from tools.results import curves, events, layers, levels, page, runs, store, summary, surrogates
from tools.results.command import figure_note, main
from tools.results.runs import recipes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "results"


def test_the_page_is_what_its_json_gives():
    results = store.load(DOCS)
    assert page.page(results) == (DOCS / summary.DETAILS).read_text(encoding="utf-8")
    first = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert summary.page(results) == first
    assert page.commands(results) == (DOCS / page.COMMANDS).read_text(encoding="utf-8")
    assert len(first.splitlines()) < 200


def test_the_figures_of_the_first_page_are_of_its_json():
    results = store.load(DOCS)
    for name, data in (
        (summary.FIGURE, summary.additions(results)),
        (levels.FIGURE, levels.facts(results)),
        (curves.FIGURE, curves.facts(results)),
        (surrogates.FIGURE, surrogates.facts()),
    ):
        assert figure_note(data) in (DOCS / name).read_text(encoding="utf-8")


def test_the_figure_is_of_the_network_that_the_page_describes():
    net = layers.described(store.load(DOCS))
    figure = DOCS / layers.FIGURE
    assert figure.is_file() == (net is not None)
    if net is not None:
        assert figure_note(net) in figure.read_text(encoding="utf-8")


def test_the_dots_are_the_runs_of_the_page():
    drawn = ablations.facts(store.load(DOCS))
    assert sum(len(same) for row in drawn for same in row["accuracy"].values()) == len(
        list((DOCS / "ablation-60").glob("*.json"))
    )
    assert figure_note(drawn) in (DOCS / ablations.FIGURE).read_text(encoding="utf-8")


def test_the_files_of_the_page_are_small():
    assert sum(path.stat().st_size for path in DOCS.rglob("*") if path.is_file()) < 1_500_000


RUN = store.Run(
    name="cifar10-resnet20-t2-fast",
    changes=["train.ema=0.999"],
    dataset="cifar10",
    method="lbq",
    timesteps=2,
    capacity=5,
    weight_bits=0,
    init="",
    epochs=300,
    refine_epochs=0,
    sam_epochs=0,
    batch=256,
    lr=0.1,
    ema=0.999,
    seed=0,
    accuracy=97.3,
    seconds=1000.0,
    last_weights=97.42,
    ranges={"gamma_min": 0.02, "gamma_max": 0.2, "lambda_min": 0.003, "lambda_max": 0.99},
)
BENCH = {
    "device": "Some GPU",
    "torch": "2.0",
    "batch": 256,
    "target_fraction": 0.7,
    "steps": [
        {"name": "ANN (ReLU)", "ms": 10.0, "rounds_ms": [9.5, 11], "ratio": 1.0, "target": None},
        {"name": "LBQ, T = 2", "ms": 17.5, "rounds_ms": [17, 18], "ratio": 1.75, "target": 1.9},
        {"name": "Other", "ms": None, "rounds_ms": [], "ratio": None, "target": None,
         "note": "not installed"},
    ],
    "neurons": [
        {"timesteps": 2, "copy": {"ms": 0.1, "gb_per_s": 4000.0},
         "forward": {"ms": 0.11, "gb_per_s": 3600.0, "of_copy": 0.9},
         "backward": {"ms": 0.2, "gb_per_s": 3200.0, "of_copy": 0.8}},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder of results with nothing but the paper's."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "paper.json").write_bytes((DOCS / "paper.json").read_bytes())
    return folder


@pytest.fixture(scope="module")
def measured():
    """A small network of the paper's T and N, and its facts."""
    network = file.load(zoo.find("digits"))
    raw = random_images(network, 4)
    found = measure.measure(network, raw, np.zeros(4, np.int64))
    samples = Samples(name="cifar10", images=raw, labels=np.zeros(4, np.int64), split="test")
    facts = measure.report("digits.lbq", network, samples, found)
    facts["golden"] = measure.compare_with_golden(network, raw[:3], found)
    return facts | {"float_accuracy": 97.3, "accuracy": 97.25}


def write(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def rows_of(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def unwrapped(text):
    return re.sub(r"\s+", " ", text)


def test_without_files_every_section_says_that_it_is_left_out(folder):
    assert main([str(folder)]) == 0
    text = (folder / summary.DETAILS).read_text(encoding="utf-8")
    assert text.count("\n## ") == text.count("\nLeft out: ") == len(page.SECTIONS)
    assert not rows_of(text)
    assert not (folder / layers.FIGURE).exists()


def test_a_run_and_its_integer_networks_share_rows(folder, measured):
    store.save(RUN, folder / "runs" / "t2.json")
    tuned = replace(RUN, init="t2", epochs=50, last_weights=None)
    store.save(replace(tuned, timesteps=1, accuracy=97.1), folder / "runs" / "t1.json")
    few = replace(tuned, weight_bits=4, refine_epochs=5, sam_epochs=7)
    store.save(few, folder / "runs" / "t2-4bit.json")
    other = replace(RUN, seed=1, last_weights=None)  # as good as the first, but not it
    store.save(other, folder / "runs" / "seed1.json")
    write(folder / "measured" / "t2-8bit.json", measured)
    write(folder / "measured" / "t2-6bit.json", measured | {"weight_bits": 6, "accuracy": 97.2})
    write(folder / "measured" / "t2-4bit.json", measured | {"weight_bits": 4, "accuracy": 97.0})
    write(folder / "measured" / "other.json", measured | {"accuracy": 1.0})
    text = page.SECTIONS["accuracy"].make(store.load(folder))
    full, short = "300 epochs, batch 256", "50 epochs, from t2"
    late = f"{short}, last 5 mild, last 7 sharpness-aware"
    few_bits = "4 bit, trained so"
    two = "cifar10", "LBQ(5), T = 2"
    assert rows_of(text)[2:] == [
        [*two, "t2", "8 bit", full, "0", "97.30", "97.25", "-0.05", "97.45"],
        [*two, "t2", "6 bit", full, "0", "97.30", "97.20", "-0.10", "97.45"],
        [*two, "seed1", "float", full, "1", "97.30", "", "", "97.45"],
        [*two, "t2-4bit", few_bits, late, "0", "97.30", "97.00", "-0.30", "97.45"],
        ["cifar10", "LBQ(5), T = 1", "t1", "float", short, "0", "97.10", "", "", "97.28"],
    ]
    text = unwrapped(text)
    assert "on 4 test images, in torch; on the first 3 all logits were equal to golden's" in text
    assert "All of it is from 4 runs." in text
    assert 'Epochs on "mild" images are the last ones' in text
    assert '"Sharpness-aware" epochs are the last ones too' in text
    assert "the last weights themselves give 97.42 % (t2) in float" in text


def test_runs_of_another_dataset_follow_and_have_the_papers_accuracy_of_that_dataset(folder):
    other = replace(RUN, dataset="cifar100", accuracy=83.1, last_weights=None)
    rows = {
        "a": other,
        "b": replace(other, timesteps=1),
        "c": replace(other, capacity=2),
        "d": replace(other, method="v1"),
        "e": replace(other, dataset="mnist"),
        "f": replace(RUN, timesteps=1),
    }
    for name, row in rows.items():
        store.save(row, folder / "runs" / f"{name}.json")
    text = page.SECTIONS["accuracy"].make(store.load(folder))
    assert [(row[0], row[2], row[-1]) for row in rows_of(text)[2:]] == [
        ("cifar10", "f", "97.28"),
        ("cifar100", "c", ""),
        ("cifar100", "a", "82.82"),
        ("cifar100", "b", "82.38"),
        ("cifar100", "d", ""),
        ("mnist", "e", ""),
    ]


def test_a_network_of_another_run_than_its_name_says_is_refused(folder, measured, capsys):
    store.save(RUN, folder / "runs" / "t2.json")
    write(folder / "measured" / "t2-8bit.json", measured | {"float_accuracy": 97.0})
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err == (
        "error: measured/t2-8bit.json must be of the run t2, which has 97.3 % in float, not 97.0\n"
    )


def test_of_several_runs_the_longest_is_priced_whatever_its_accuracy(folder, measured):
    for name, epochs, sharp, accuracy in (
        ("a", 300, 0, 97.6),
        ("b", 290, 20, 97.3),
        ("c", 9, 0, 98),
    ):
        run = replace(RUN, epochs=epochs, sam_epochs=sharp, accuracy=accuracy)
        write(folder / "runs" / f"{name}.json", asdict(run))
        net = measured | {"float_accuracy": accuracy, "accuracy": accuracy - 0.05}
        write(folder / "measured" / f"{name}.json", net)
    results = store.load(folder)
    rows = rows_of(page.SECTIONS["costs"].make(results))
    assert [row[2] for row in rows if row[0] == "LBQ(5), 8-bit weights"][:2] == ["97.25"] * 2
    costs = [row for row in rows_of(summary.page(results)) if row[0] == "LBQ(5)"]
    assert [(row[1], row[2], row[-1]) for row in costs] == [
        ("9 epochs", "1", "97.95"),
        ("290 epochs, 20 SAM", "1", "97.25"),
        ("300 epochs", "1", "97.55"),
    ]


def test_the_images_that_a_recipe_was_chosen_on_are_named(folder):
    write(folder / "runs" / "a.json", asdict(RUN))
    write(folder / "chosen.json", {"a": "validation"})
    text = summary.page(store.load(folder))
    assert "97.30 % in float after 300 epochs (1 seed, chosen on validation images)" in unwrapped(
        text
    )
    (row,) = (row for row in rows_of(text) if row[0] == "cifar10")
    assert row[:6] == ["cifar10", "2", "300 epochs", "random", "validation", "0"]
    write(folder / "chosen.json", {"b": "test"})
    with pytest.raises(ValueError, match=r"^chosen\.json must have names of runs, not 'b'$"):
        store.load(folder)


@pytest.mark.parametrize(
    ("learned", "said"),
    [
        ((94.0, 94.4), "gains nothing over a good fixed one (+0.20 points"),
        ((95.0, 95.2), "gains over a good fixed one (+1.10 points"),
    ],
)
def test_a_gain_within_the_spread_of_seeds_is_none(folder, learned, said):
    for method, accuracies in (("v2", (93.9, 94.1)), ("t2", learned)):
        for seed, accuracy in enumerate(accuracies):
            name = f"cifar10-resnet20-{method}"
            run = replace(RUN, name=name, method={"t2": "lbq"}.get(method, method), changes=())
            store.save(
                replace(run, accuracy=accuracy, seed=seed),
                folder / "ablation" / f"{method}-{seed}.json",
            )
    text = unwrapped(summary.page(store.load(folder)))
    assert f"**Learned step**: it {said} from a first step of 1; the paper +0.71)" in text


def test_curves_are_collected_and_averaged_over_the_seeds_of_a_row(folder, tmp_path):
    for seed in (0, 1):
        name = f"t2-{seed}"
        finished(tmp_path / name, "cifar10-resnet20-t2", ["train.epochs=3", f"train.seed={seed}"])
        lines = [json.dumps({"epoch": n, "loss": 1.0 / (n + seed)}) for n in (1, 2, 3)]
        curve = tmp_path / "logs" / name
        curve.mkdir(parents=True)
        (curve / "metrics.jsonl").write_text("\n".join(lines))
        assert main([str(folder / "ablation"), "--collect", str(tmp_path / name)]) == 0
        assert main([str(folder / "curves.json"), "--collect", str(curve)]) == 0
    results = store.load(folder)
    assert results.curves == {"t2-0": [1.0, 0.5, 0.333], "t2-1": [0.5, 0.333, 0.25]}
    large, ablation = curves.facts(results)
    assert len(large["lines"]["LBQ, cifar10-resnet20"]) == 300
    assert ablation == {
        "panel": "half width, first step 1",
        "lines": {"LBQ: learned step, ReLSG-ET": [0.75, 0.4165, 0.2915]},
    }


def test_the_surrogates_are_those_of_the_neurons():
    found = surrogates.facts()
    places = found.pop("u")
    at = dict(zip(places, zip(*found.values(), strict=True), strict=True))
    assert at[0.5] == (0.0, 1.0, 0.303, 0.061)
    assert at[3.0] == (1.0, 1.0, 1.0, 1.0)
    assert at[6.0] == (0.0, 0.0, 0.184, 0.037)


def test_networks_that_paid_for_events_stand_beside_what_they_began_with(folder, measured):
    write(folder / "runs" / "whole.json", asdict(RUN))
    write(folder / "measured" / "whole.json", measured | {"model": "net"})
    sparse = replace(RUN, activity=0.25, init="net", accuracy=97.0)
    write(folder / "runs" / "sparse.json", asdict(sparse))
    cheap = measured | {"model": "sparse", "accuracy": 96.9, "float_accuracy": 97.0}
    write(folder / "measured" / "sparse.json", cheap)
    acs = f"{measured['energy']['paper']['lbq']['acs'] / 1e6:,.1f}"
    assert rows_of(events.section(store.load(folder)))[2:] == [
        ["LBQ(5), T = 2", "whole", "8 bit", "0", "97.30", "97.25", acs],
        ["LBQ(5), T = 2", "sparse", "8 bit", "0.25", "97.00", "96.90", acs],
    ]
    assert "from net, activity 0.25" in page.page(store.load(folder))
    # However good it is, it is not the network whose costs are shown beside the paper's.
    write(folder / "runs" / "sparse.json", asdict(replace(sparse, accuracy=98.0)))
    write(folder / "measured" / "sparse.json", cheap | {"float_accuracy": 98.0})
    rows = rows_of(page.SECTIONS["costs"].make(store.load(folder)))
    assert [row[2] for row in rows if row[0] == "LBQ(5), 8-bit weights"][:2] == ["97.25"] * 2


def test_a_network_of_another_shape_is_named_and_not_beside_the_papers(folder, tmp_path):
    changes = ("model.widths=[8, 8, 8]", "train.activity=0.5")
    finished(tmp_path / "narrow", "cifar10-resnet20-t2-fast", changes)
    row = store.collect(tmp_path / "narrow")
    assert (row.network, row.activity) == ("ResNet-20 8/8/8", 0.5)
    write(folder / "runs" / "narrow.json", asdict(row))
    (found,) = rows_of(runs.accuracy(store.load(folder)))[2:]
    assert found[1] == "LBQ(5), ResNet-20 8/8/8, T = 2"
    assert found[-1] == ""


def test_commands_start_from_a_network_of_the_zoo_by_its_name(folder):
    write(folder / "runs" / "a.json", asdict(replace(RUN, init="cifar10-resnet20")))
    write(folder / "runs" / "b.json", asdict(replace(RUN, init="a")))
    text = page.commands(store.load(folder))
    assert "--set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/a" in text
    assert "--set train.init=runs/a --data $DATA/cifar10 --out runs/b" in text


def test_costs_are_those_of_the_counts(folder, measured):
    write(folder / "measured" / "t2.json", measured)
    text = page.SECTIONS["costs"].make(store.load(folder))
    ours = [row for row in rows_of(text) if row[0] == "LBQ(5), 8-bit weights"]
    padded, exact = (measured["energy"]["paper"][key] for key in ("lbq_with_padding", "lbq"))
    for row, priced in zip(ours[:2], (padded, exact), strict=True):
        assert row[2:5] == ["97.25", f"{priced['fp_macs'] / 1e6:.2f}", f"{priced['acs'] / 1e6:.2f}"]
        assert row[7] == f"{priced['ann_ratio']:.2f}"
    for row, priced in zip(ours[2:4], (padded, exact), strict=True):
        assert row[4] == f"{100 - 100 * priced['acs'] / priced['acs_unary']:.2f} %"
    prices = measured["energy"]["integer"]
    dense = next(row for row in rows_of(text) if row[0] == "ANN, int8, dense")
    assert dense[4] == f"{prices['ann_int8']['mj'] / prices['lbq']['mj']:.2f}"
    theirs = [row[0] for row in rows_of(text) if row[1] == "paper"]
    capacities = [f"LBQ({n})" for n in (2, 5, 10, 20)]
    assert theirs == ["ANN", *capacities, *capacities]


def test_a_network_of_another_dataset_has_rows_of_its_own(folder, measured):
    other = measured | {"dataset": "cifar100", "float_accuracy": 83.0, "accuracy": 83.1}
    write(folder / "measured" / "a.json", other)
    write(folder / "measured" / "b.json", measured)
    results = store.load(folder)
    text = page.SECTIONS["costs"].make(results)
    own, named = "LBQ(5), 8-bit weights", "LBQ(5), 8-bit weights, cifar100"
    priced = [(row[0], row[2]) for row in rows_of(text) if row[0].startswith(own)]
    assert priced[:4] == [(own, "97.25"), (own, "97.25"), (named, "83.10"), (named, "83.10")]
    assert [name for name, _ in priced[4:]] == [own, own, named, named, own, named]
    assert "All rows are of cifar10 unless they name another dataset." in unwrapped(text)
    assert layers.described(results) == measured


def test_an_ann_of_another_dataset_is_not_beside_the_papers(folder, measured):
    write(folder / "measured" / "t2.json", measured)
    ann = replace(RUN, method="ann", accuracy=97.4)
    store.save(ann, folder / "runs" / "ann.json")
    store.save(replace(ann, dataset="cifar100", accuracy=80.0), folder / "runs" / "ann100.json")
    text = page.SECTIONS["costs"].make(store.load(folder))
    assert [row[2] for row in rows_of(text) if row[:2] == ["ANN", "ours"]] == ["97.40"]
    assert "another dataset" not in text


def test_levels_of_another_dataset_stand_beside_the_papers(folder, measured):
    levels = measured["levels"] | {"gamma_cv": 1.25}
    other = measured | {"dataset": "cifar100", "levels": levels}
    write(folder / "measured" / "a.json", other)
    assert page.SECTIONS["layers"].make(store.load(folder)) is None
    write(folder / "measured" / "b.json", measured)
    fewer = other | {"weight_bits": 4, "levels": levels | {"gamma_cv": 9.0}}
    write(folder / "measured" / "c.json", fewer)
    rows = rows_of(page.SECTIONS["layers"].make(store.load(folder)))
    assert rows[0] == ["", "ours", "paper", "ours, cifar100"]
    own = f"{measured['levels']['gamma_cv']:.2f}"
    assert ["coefficient of variation of gamma", own, "0.74", "1.25"] in rows


def test_the_papers_savings_follow_from_its_counts():
    for row in store.load(DOCS).paper["lbq"].values():
        assert abs(100 - 100 * row["acs"] / row["acs_unary"] - row["saved"]) < 0.01


def test_layers_are_described_and_drawn(folder, measured):
    write(folder / "measured" / "t2.json", measured)
    assert main([str(folder)]) == 0
    text = (folder / summary.DETAILS).read_text(encoding="utf-8")
    figure = (folder / layers.FIGURE).read_text(encoding="utf-8")
    assert "(layers.svg)" in text
    assert figure_note(measured) in figure
    rows = {row[0]: row for row in rows_of(text)}
    assert rows["coefficient of variation of gamma"][1:] == [
        f"{measured['levels']['gamma_cv']:.2f}",
        "0.74",
    ]
    for layer in measured["layers"][:-1]:
        assert rows[layer["name"]][1] == f"{layer['gamma']:.4f}"
        assert rows[layer["name"]][-2] == f"{layer['popcount']:.3f}"
    assert "lambda" not in rows["layer"]
    assert "Lambda" not in text
    assert "logits" not in rows


def test_without_lambda_by_layer_the_run_tells_its_range(folder, measured):
    write(folder / "measured" / "t2.json", measured)
    store.save(RUN, folder / "runs" / "other.json")
    assert "Lambda" not in page.SECTIONS["layers"].make(store.load(folder))
    store.save(RUN, folder / "runs" / "t2.json")
    text = unwrapped(page.SECTIONS["layers"].make(store.load(folder)))
    assert "Lambda, the tail of the surrogate, ended between 0.003 and 0.990." in text


def test_lambda_is_shown_where_it_was_measured(folder, measured):
    known = [layer | {"lambda": 0.25} for layer in measured["layers"]]
    write(folder / "measured" / "t2.json", measured | {"layers": known})
    rows = {row[0]: row for row in rows_of(page.SECTIONS["layers"].make(store.load(folder)))}
    assert rows["layer"][2] == "lambda"
    assert rows["residual.neuron"][2] == "0.250"


def ablation(folder, **accuracies):
    for method, accuracy in accuracies.items():
        method = method.replace("_", "-")
        row = replace(RUN, method=method, epochs=60, accuracy=accuracy)
        row = replace(row, ranges={}) if method == "quantized-ann" else row
        store.save(row, folder / "ablation" / f"{method}.json")
    return page.SECTIONS["ablation"].make(store.load(folder))


def test_an_ablation_has_a_row_per_neuron_and_the_papers_four_variants(folder):
    text = ablation(folder, v1=95.0, v2=95.5, v3=96.0, lbq=96.25, quantized_ann=97.0)
    rows = rows_of(text)
    gamma = "0.020 to 0.200"
    size = ["2", "5", "0.5", "1"]
    assert rows[2:7] == [
        ["V1: fixed step, box on [1, N]", *size, gamma, "1", "95.00", "", "", "96.44"],
        ["V2: fixed step, ReLSG-ET", *size, gamma, "1", "95.50", "", "", "96.74"],
        ["V3: learned step, box on [1, N]", *size, gamma, "1", "96.00", "", "", "97.30"],
        ["LBQ: learned step, ReLSG-ET", *size, gamma, "1", "96.25", "", "", "97.45"],
        ["Quantized ANN, N + 1 levels", *size, "", "1", "97.00", "", "", ""],
    ]
    theirs = ["96.44", "96.74", "97.30", "97.45", "+0.86", "+0.71", "+0.30", "+0.15", ""]
    ours = ["95.00", "95.50", "96.00", "96.25", "+1.00", "+0.75", "+0.50", "+0.25", "6 of 6"]
    assert rows[9:] == [["paper", "", *theirs], ["box on [1, N]", "1", *ours]]
    assert unwrapped(text).startswith(
        "From a first step of 1, LBQ's learned step ends at 96.25 %, V2's fixed step at 95.50 %: "
        "+0.75 (1 and 1 seeds). "
    )
    assert "\n60 epochs each, batch 256, lr 0.1, seed 0; the last epoch, in fp32." in text


def test_pairs_that_are_turned_round_or_equal_are_not_in_order(folder):
    text = ablation(folder, v1=95.0, v2=94.5, v3=96.5, lbq=96.5)
    row = ["95.00", "94.50", "96.50", "96.50", "+1.50", "+2.00", "-0.50", "+0.00", "4 of 6"]
    assert rows_of(text)[-1][2:] == row


def test_each_reading_of_the_box_is_compared_with_the_rows_that_have_none(folder):
    tails = ["neuron.surrogate=relsg", "neuron.learn_lambda=false"]
    rows = {
        "v1": replace(RUN, method="v1", accuracy=90.0),
        "wide": replace(RUN, method="v1", accuracy=91.0, changes=["neuron.low=0.0"]),
        "tails": replace(RUN, method="v1", accuracy=92.0, changes=tails),
        "v2": replace(RUN, method="v2", accuracy=93.0),
        "scaled": replace(
            RUN,
            method="v3",
            accuracy=94.0,
            changes=["neuron.low=0.0", "neuron.scale_step=true", "neuron.gamma0=0.25"],
        ),
        "one": replace(RUN, timesteps=1, accuracy=96.0),
        "lm-ht": replace(RUN, method="lm-ht", capacity=2, accuracy=92.5),
    }
    for name, row in rows.items():
        changes = [c for c in row.changes if c.startswith("neuron.")]
        store.save(replace(row, changes=changes), folder / "ablation" / f"{name}.json")
    found = rows_of(page.SECTIONS["ablation"].make(store.load(folder)))
    assert [(row[0], row[1], row[4], row[7]) for row in found[2:9]] == [
        ("LM-HT: learned mixing of timesteps, full reset", "2", "1", "92.50"),
        ("V1: fixed step, box on [1, N]", "2", "1", "90.00"),
        ("V1: fixed step, box on [0, N]", "2", "1", "91.00"),
        ("V1: fixed step, box with fixed tails", "2", "1", "92.00"),
        ("V2: fixed step, ReLSG-ET", "2", "1", "93.00"),
        ("V3: learned step, box on [0, N], scaled step gradient", "2", "0.25", "94.00"),
        ("LBQ: learned step, ReLSG-ET, T = 1", "1", "1", "96.00"),
    ]
    assert [(row[0], row[1], row[2], row[8], row[10]) for row in found[12:]] == [
        ("box on [1, N]", "1", "90.00", "+3.00", "2 of 3"),
        ("box on [0, N]", "1", "91.00", "+2.00", "2 of 3"),
        ("box with fixed tails", "1", "92.00", "+1.00", "2 of 3"),
    ]


def test_several_seeds_are_one_row_with_their_range(folder):
    store.save(replace(RUN, accuracy=96.0), folder / "ablation" / "a.json")
    store.save(replace(RUN, accuracy=97.0, seed=1), folder / "ablation" / "b.json")
    results = store.load(folder)
    text = page.SECTIONS["ablation"].make(results)
    assert rows_of(text)[2][6:] == ["2", "96.50", "96.00", "97.00", "97.45"]
    assert "seeds 0 and 1;" in text
    label = "LBQ: learned step, ReLSG-ET"
    assert ablations.facts(results) == [{"row": label, "accuracy": {"1": [96.0, 97.0]}}]


def test_every_run_of_the_figure_is_drawn(folder, capsys):
    store.save(replace(RUN, accuracy=96.0), folder / "ablation" / "a.json")
    store.save(replace(RUN, accuracy=80.0, method="v1"), folder / "ablation" / "b.json")
    assert main([str(folder)]) == 0
    assert f"wrote {folder / ablations.FIGURE}\n" in capsys.readouterr().out
    drawn = (folder / ablations.FIGURE).read_text(encoding="utf-8")
    assert figure_note(ablations.facts(store.load(folder))) in drawn
    for text in ("V1: fixed step, box on [1, N]", "LBQ: learned step, ReLSG-ET", "first step 1"):
        assert f">{text}</text>" in drawn
    assert "(ablation.svg)" in page.page(store.load(folder))
    assert "(results/ablation.svg)" in summary.page(store.load(folder))


def test_another_budget_is_another_table(folder):
    """Of a narrower network too: its rows have the paper's beside them, and the text names it."""
    store.save(RUN, folder / "ablation" / "t2.json")
    other = replace(RUN, epochs=60, network="ResNet-20 64/128/256")
    store.save(other, folder / "ablation-60" / "t2.json")
    store.save(replace(other, method="lm-ht", capacity=2), folder / "ablation-60" / "lmht.json")
    text = page.SECTIONS["ablation"].make(store.load(folder))
    assert text.count("| gamma, by layer |") == text.count("| Box-ET read as |") == 2
    assert text.count("The paper's four variants") == 1
    assert text.index(f"{RUN.epochs} epochs each") < text.index("64/128/256, 60 epochs each")
    named = {row[0]: row[-1] for row in rows_of(text)}
    assert named["LM-HT: learned mixing of timesteps, full reset"] == "96.40"
    assert named["LBQ: learned step, ReLSG-ET"] == "97.45"
    shown = page.commands(store.load(folder))
    assert "--out runs/ablation-60/lmht\n" in shown
    assert "--out runs/ablation/t2\n" not in shown


def test_commands_quote_what_a_shell_would_split(folder):
    wide = replace(RUN, changes=["model.widths=[64, 128, 256]"])
    store.save(wide, folder / "runs" / "wide.json")
    shown = page.commands(store.load(folder))
    assert " --set 'model.widths=[64, 128, 256]' --data " in shown


def test_other_neurons_of_a_method_are_rows_of_their_own(folder):
    finer = ["train.ema=0.999", "neuron.gamma0=0.25"]
    rows = {
        "v1": replace(RUN, method="v1", accuracy=90.0),
        "lbq2": replace(RUN, capacity=2, accuracy=95.0),
        "v1-finer": replace(RUN, method="v1", accuracy=94.0, changes=finer),
        "slow": replace(RUN, accuracy=93.0, changes=[*finer, "neuron.beta=0.9"]),
    }
    for name, row in rows.items():
        store.save(row, folder / "ablation" / f"{name}.json")
    text = page.SECTIONS["ablation"].make(store.load(folder))
    assert [(row[0], *row[3:5], row[7], row[-1]) for row in rows_of(text)[2:6]] == [
        ("V1: fixed step, box on [1, N]", "0.5", "0.25", "94.00", "96.44"),
        ("V1: fixed step, box on [1, N]", "0.5", "1", "90.00", "96.44"),
        ("LBQ: learned step, ReLSG-ET, N = 2", "0.5", "1", "95.00", "96.73"),
        ("LBQ: learned step, ReLSG-ET, beta=0.9", "0.9", "0.25", "93.00", "97.45"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 60},
        {"refine_epochs": 20},
        {"sam_epochs": 9},
        {"dataset": "cifar100"},
        {"init": "t2"},
        {"changes": ["train.lr=0.2"]},
    ],
    ids=str,
)
def test_an_ablation_of_unequal_budgets_is_refused(folder, capsys, change):
    store.save(RUN, folder / "ablation" / "a.json")
    store.save(replace(RUN, seed=1), folder / "ablation" / "b.json")
    assert main([str(folder)]) == 0
    store.save(replace(RUN, **change), folder / "ablation" / "c.json")
    assert main([str(folder)]) == 2
    start = f"error: the runs of {folder / 'ablation'} must share all but neuron and seed"
    assert capsys.readouterr().err.startswith(start)


def test_steps_and_kernels_are_shown_as_they_were_timed(folder):
    write(folder / "bench-gpu.json", BENCH)
    text = page.SECTIONS["steps"].make(store.load(folder))
    rows = rows_of(text)
    assert rows[2:5] == [
        ["ANN (ReLU)", "10.00", "9.50 to 11.00", "1.00", ""],
        ["LBQ, T = 2", "17.50", "17.00 to 18.00", "1.75", "1.9"],
        ["Other", "not installed", "", "", ""],
    ]
    assert rows[7:] == [
        ["copy, T = 2", "0.100", "4,000", ""],
        ["forward, T = 2", "0.110", "3,600", "90 %"],
        ["backward, T = 2", "0.200", "3,200", "80 %"],
    ]
    assert "on one Some GPU with torch 2.0" in unwrapped(text)


def test_a_profile_follows_the_steps_with_its_own_machine(folder):
    write(folder / "bench-gpu.json", BENCH)
    rows = [
        {"name": "ANN (ReLU)", "ms": 10.0, "kinds": {"optimizer": 1.0, "other": 8.5}},
        {"name": "LBQ, T = 2", "ms": 18.0, "kinds": {"neurons (own kernels)": 9.0, "other": 8.5}},
    ]
    profile = {"device": "Another GPU", "torch": "2.1", "batch": 64, "profile": rows}
    write(folder / "profile-gpu.json", profile)
    results = store.load(folder)
    text = page.SECTIONS["steps"].make(results)
    assert rows_of(text)[10:] == [
        ["", "ANN (ReLU), ms", "LBQ, T = 2, ms", "of ANN"],
        ["---", "--:", "--:", "--:"],
        ["neurons (own kernels)", "0.00", "9.00", "-"],
        ["optimizer", "1.00", "0.00", "0.00"],
        ["other", "8.50", "8.50", "1.00"],
        ["all kernels", "9.50", "17.50", "1.84"],
        ["step", "10.00", "18.00", "1.80"],
    ]
    assert "at batch 64 on one Another GPU with torch 2.1" in unwrapped(text)
    commands = page.commands(store.load(folder))
    assert "make bench-gpu ARGS='--profile --json docs/results/profile-gpu.json'" in commands


def test_commands_repeat_what_the_runs_changed(folder):
    store.save(replace(RUN, init="t2"), folder / "runs" / "t1.json")
    store.save(RUN, folder / "runs" / "t2.json")
    store.save(replace(RUN, epochs=30), folder / "ablation" / "t2.json")
    finer = replace(RUN, epochs=30, changes=[*RUN.changes, "neuron.gamma0=0.25"])
    store.save(finer, folder / "ablation" / "t2-finer.json")
    lines = page.commands(store.load(folder)).splitlines()
    start = "python -m train --config cifar10-resnet20-t2-fast --set train.ema=0.999"
    assert [line for line in lines if line.startswith(start)] == [
        f"{start} --data $DATA/cifar10 --out runs/t2",
        f"{start} --set train.init=runs/t2 --data $DATA/cifar10 --out runs/t1",
        f"{start} --set neuron.gamma0=0.25 --data $DATA/cifar10 --out runs/ablation/t2-finer",
    ]
    assert "make ablation DATA=$DATA ARGS='--set train.epochs=30'" in lines
    assert lines[:3] == [
        "#!/bin/sh",
        "# Made by python -m tools.results; $DATA/NAME holds the dataset NAME.",
        "set -e",
    ]


def test_commands_name_the_folder_of_each_dataset(folder):
    store.save(RUN, folder / "runs" / "t2.json")
    other = replace(RUN, name="cifar100-resnet20-t2-sam", changes=[], dataset="cifar100")
    store.save(other, folder / "runs" / "c100.json")
    text = page.commands(store.load(folder))
    assert (
        "python -m train --config cifar100-resnet20-t2-sam --data $DATA/cifar100 "
        "--out runs/c100\n" in text
    )


def test_a_note_stands_under_its_section(folder):
    write(folder / "notes.json", {"recipes": "Why so.", "ablation": "In short."})
    text = page.page(store.load(folder))
    assert "\nWhy so.\n\n## Training steps\n" in text
    assert "\n## Ablation\n\nIn short.\n" in text
    write(folder / "notes.json", {"other": "Why so."})
    with pytest.raises(ValueError, match=r"^notes\.json must have keys of accuracy, .*'other'"):
        page.page(store.load(folder))


def finished(folder, name, changes=(), *, done=None):
    """What a run of that configuration leaves, without its weights."""
    chosen = config.load(name, changes)
    index = {"format": 1, "epoch": chosen.train.epochs, "parts": [], "config": chosen.to_dict()}
    write(folder / "last.json", index)
    epochs = chosen.train.epochs if done is None else done
    lines = [
        {"epoch": n, "test_accuracy": None if n < epochs else 90.5, "total_seconds": 2.04 * n,
         "gamma_min": 0.5 / n, "loss": 1.0, "last_weights_accuracy": 91.0}
        for n in range(1, epochs + 1)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("binary", "binary"),
        ("ternary-fixed", "ternary-fixed"),
        ("ternary-learned", "ternary-learned"),
        ("v1", "v1"),
        ("v2", "v2"),
        ("v3", "v3"),
        ("t2-fast", "lbq"),
        ("quant-ann", "quantized-ann"),
        ("ann", "ann"),
        ("ilif", "i-lif"),
        ("mlf", "mlf"),
        ("lmht", "lm-ht"),
    ],
)
def test_a_run_of_each_ablation_becomes_its_row(tmp_path, name, method):
    finished(tmp_path, f"cifar10-resnet20-{name}", ["train.epochs=3", "train.seed=4"])
    run = store.collect(tmp_path)
    assert (run.method, run.epochs, run.seed, run.accuracy) == (method, 3, 4, 90.5)
    assert (run.seconds, run.ranges) == (6.1, {"gamma_min": 0.5 / 3})
    assert run.changes == ("train.epochs=3", "train.seed=4")
    assert run.dataset == "cifar10"


@pytest.mark.parametrize(
    ("name", "changes", "method"),
    [
        ("v1", ["neuron.low=0.0"], "v1"),
        ("v1", ["neuron.surrogate=relsg", "neuron.learn_lambda=false"], "v1"),
        ("v3", ["neuron.surrogate=relsg", "neuron.learn_lambda=false"], "v3"),
        ("v3", ["neuron.scale_step=true", "neuron.low=0.0"], "v3"),
        ("t1", ["neuron.scale_step=true"], "lbq"),
    ],
)
def test_each_reading_of_the_box_is_a_row_of_its_variant(tmp_path, name, changes, method):
    finished(tmp_path, f"cifar10-resnet20-{name}", changes)
    run = store.collect(tmp_path)
    assert run.method == method
    assert {f"neuron.{change}" for change in run.neuron_changes} == set(changes)


def test_the_command_writes_a_row_that_is_read_back(folder, tmp_path, capsys):
    run = tmp_path / "mine"
    finished(run, "cifar10-resnet20-t2", ["train.epochs=2", "train.init=/some/where"])
    assert main([str(folder / "runs"), "--collect", str(run)]) == 0
    path = folder / "runs" / "mine.json"
    said = f"{path}: 90.50 % after 2 epochs of cifar10-resnet20-t2\n"
    assert capsys.readouterr().out == said
    row = store.load(folder).runs["mine"]
    assert row == store.collect(run)
    assert (row.init, row.last_weights) == ("where", 91.0)
    assert "some" not in path.read_text(encoding="utf-8")


def test_a_run_without_its_index_takes_a_configuration(folder, tmp_path, capsys):
    run = tmp_path / "mine"
    finished(run, "cifar10-resnet20-t1", ["train.epochs=2"])
    (run / "last.json").unlink()
    options = ["--config", "cifar10-resnet20-t1", "--set", "train.epochs=2"]
    assert main([str(folder / "runs"), "--collect", str(run), *options]) == 0
    assert store.load(folder).runs["mine"].timesteps == 1
    assert main([str(folder / "runs"), "--collect", str(run)]) == 2
    assert capsys.readouterr().err.endswith(f"{run / 'last.json'} is missing\n")


def test_a_run_that_has_not_ended_is_refused(tmp_path):
    finished(tmp_path, "cifar10-resnet20-t2", done=299)
    with pytest.raises(ValueError, match=r"must have ended all 300 epochs, not 299$"):
        store.collect(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(ValueError, match=r"holds no finished run: .*metrics\.jsonl is missing$"):
        store.collect(tmp_path)


def test_a_run_tested_on_validation_images_is_refused(tmp_path):
    finished(tmp_path, "cifar10-resnet20-t2", ["train.epochs=2", "data.validation=5000"])
    message = f"{tmp_path} must be tested on the test images, not on the validation images"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        store.collect(tmp_path)


def test_runs_on_validation_images_have_a_folder_and_a_section_of_their_own(tmp_path, capsys):
    for name, accuracy in (("one", 70.5), ("two", 71.25)):
        run = tmp_path / name
        run.mkdir()
        line = {"epoch": 2, "validation_accuracy": accuracy, "total_seconds": 3.0}
        (run / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    options = ["--config", "cifar100-resnet20-t2", "--set", "train.epochs=2"]
    options += ["--set", "data.validation=5000", "--set", "augment.fill=gray"]
    runs = [str(tmp_path / name) for name in ("one", "two")]
    folder = tmp_path / "results" / "validation"
    assert main([str(folder), "--collect", *runs, *options]) == 0
    assert main([str(tmp_path / "runs"), "--collect", *runs, *options]) == 2
    assert capsys.readouterr().err == (
        f"error: {runs[0]} must be tested on the test images, not on the validation images\n"
    )
    (folder.parent / "paper.json").write_text("{}", encoding="utf-8")
    made = recipes(store.load(folder.parent))
    assert made is not None
    assert made.splitlines()[-2:] == [
        "| cifar100-resnet20-t2 | one | augment.fill=gray | 2 | 0 | 70.50 |",
        "| cifar100-resnet20-t2 | two | augment.fill=gray | 2 | 0 | 71.25 |",
    ]


def test_a_row_with_other_keys_is_refused(tmp_path):
    values = asdict(RUN)
    del values["seed"]
    with pytest.raises(ValueError, match=r"row\.json: run lacks the key 'seed'$"):
        store.Run.from_dict(values, tmp_path / "row.json")
    with pytest.raises(ValueError, match=r"row\.json: run has the unknown key 'x'$"):
        store.Run.from_dict(asdict(RUN) | {"x": 1}, tmp_path / "row.json")
    with pytest.raises(ValueError, match=r"row\.json: run\.method must be one of .*, not 'if'$"):
        store.Run.from_dict(asdict(RUN) | {"method": "if"}, tmp_path / "row.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "must be JSON: "), ("[]", "must hold one JSON object, not list")],
)
def test_a_broken_file_is_named(folder, capsys, text, message):
    (folder / "bench-gpu.json").write_text(text)
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {folder / 'bench-gpu.json'} {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "digits"], "--config and --set go with --collect"),
        (["--collect", "x", "--set", "a=1"], "--set goes with --config"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["folder", *options])
    assert message in capsys.readouterr().err


def test_the_first_page_says_what_was_converted_and_what_neurons_cost(folder):
    store.save(RUN, folder / "ablation" / "a.json")
    ann = replace(RUN, name="cifar10-resnet20-ann", method="ann", accuracy=95.4)
    store.save(ann, folder / "ablation" / "ann.json")
    layer = {"name": "stem.neuron", "active_ratio": 0.25}
    counted = {"acs_unary": 3e6, "acs_bit_sparse": 2e6, "summary": {"active_ratio": 0.25}}
    write(folder / "levels" / "a.json", counted | {"layers": [layer]})
    row = {"timesteps": 1, "capacity": 5, "weight_bits": 4}
    row |= {"converted": 80.0, "tuned": 91.0, "integer": 90.5}
    ann = {"network": "ReLU ResNet", "dataset": "cifar10", "epochs": 30, "tune_epochs": 15}
    write(folder / "conversion.json", ann | {"batch": 256, "seed": 0, "ann": 92.0, "rows": [row]})
    rows = rows_of(summary.page(store.load(folder)))
    assert ["1", "92.00", "80.00", "91.00", "90.50"] in rows
    assert ["LBQ: learned step, ReLSG-ET", "1", "97.30", "0.250", "3.00", "2.00"] in rows
    assert ["ANN, ReLU", "", "95.40", "", "", ""] in rows
    drawn = levels.facts(store.load(folder))
    assert drawn == [
        {"row": "LBQ: learned step, ReLSG-ET", "layers": ["stem.neuron"], "active": [0.25]}
    ]
