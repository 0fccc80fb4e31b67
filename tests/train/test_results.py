"""The results page: that the committed one is what its JSON gives, and each section by itself."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from networks import random_images

from lbq_hw import file, zoo
from train import config, measure
from train.results import layers, page, store
from train.results.__main__ import figure_note, main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "results"


def test_the_page_is_what_its_json_gives():
    assert page.page(store.load(DOCS)) == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def test_the_figure_is_of_the_network_that_the_page_describes():
    net = layers.described(store.load(DOCS))
    figure = DOCS / layers.FIGURE
    assert figure.is_file() == (net is not None)
    if net is not None:
        assert figure_note(net) in figure.read_text(encoding="utf-8")


def test_the_files_of_the_page_are_small():
    assert sum(path.stat().st_size for path in DOCS.rglob("*") if path.is_file()) < 200_000


RUN = store.Run(
    name="cifar10-resnet20-t2-fast",
    changes=["train.ema=0.999"],
    method="lbq",
    timesteps=2,
    capacity=5,
    weight_bits=0,
    fine_tuned=False,
    epochs=300,
    batch=256,
    lr=0.1,
    ema=0.999,
    seed=0,
    accuracy=97.3,
    seconds=1000.0,
    ranges={"gamma_min": 0.02, "gamma_max": 0.2, "lambda_min": 0.003, "lambda_max": 0.99},
    evaluations={"model_fp32": 97.42},
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
    facts = measure.report("digits.lbq", network, "digits", found)
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
    text = folder.with_suffix(".md").read_text(encoding="utf-8")
    assert text.count("\n## ") == text.count("\nLeft out: ") == len(page.SECTIONS)
    assert not rows_of(text)
    assert not (folder / layers.FIGURE).exists()


def test_a_run_and_its_integer_network_share_a_row(folder, measured):
    store.save(RUN, folder / "runs" / "t2.json")
    store.save(
        replace(RUN, timesteps=1, fine_tuned=True, epochs=50, accuracy=97.1, evaluations={}),
        folder / "runs" / "t1.json",
    )
    write(folder / "measured" / "t2.json", measured)
    write(folder / "measured" / "other.json", measured | {"float_accuracy": 90.0, "accuracy": 1.0})
    text = page.SECTIONS["accuracy"].make(store.load(folder))
    assert rows_of(text)[2:] == [
        ["LBQ(5), T = 2", "8 bit", "300 epochs", "0", "97.30", "97.25", "-0.05", "97.45"],
        ["LBQ(5), T = 1", "float", "50 epochs, fine-tuned", "0", "97.10", "", "", "97.28"],
    ]
    text = unwrapped(text)
    assert "on 4 test images, in torch; on the first 3 all logits were equal to golden's" in text
    assert "All of it is from 2 runs." in text
    assert "the last weights themselves give 97.42 % (LBQ(5), T = 2, 300 epochs) in float" in text


def test_a_network_trained_at_few_bits_is_matched_at_these(folder, measured):
    store.save(replace(RUN, weight_bits=4), folder / "runs" / "t2-4bit.json")
    write(folder / "measured" / "8.json", measured)
    write(folder / "measured" / "4.json", measured | {"weight_bits": 4, "accuracy": 97.0})
    rows = rows_of(page.SECTIONS["accuracy"].make(store.load(folder)))[2:]
    words = ["LBQ(5), T = 2", "4 bit, trained so", "300 epochs", "0"]
    assert rows == [[*words, "97.30", "97.00", "-0.30", "97.45"]]


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


def test_the_papers_savings_follow_from_its_counts():
    for row in store.load(DOCS).paper["lbq"].values():
        assert abs(100 - 100 * row["acs"] / row["acs_unary"] - row["saved"]) < 0.01


def test_layers_are_described_and_drawn(folder, measured):
    write(folder / "measured" / "t2.json", measured)
    assert main([str(folder)]) == 0
    text = folder.with_suffix(".md").read_text(encoding="utf-8")
    figure = (folder / layers.FIGURE).read_text(encoding="utf-8")
    assert "(results/layers.svg)" in text
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
    store.save(replace(RUN, accuracy=97.0), folder / "runs" / "other.json")
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


def test_an_ablation_in_the_papers_order_is_confirmed(folder):
    text = ablation(folder, v1=95.0, v2=95.5, v3=96.0, lbq=96.25, quantized_ann=97.0)
    assert rows_of(text)[2:] == [
        ["V1: fixed step, box", "2", "1", "0.020 to 0.200", "95.00", "96.44"],
        ["V2: fixed step, ReLSG-ET", "2", "1", "0.020 to 0.200", "95.50", "96.74"],
        ["V3: learned step, box", "2", "1", "0.020 to 0.200", "96.00", "97.30"],
        ["LBQ: learned step, ReLSG-ET", "2", "1", "0.020 to 0.200", "96.25", "97.45"],
        ["Quantized ANN, N + 1 levels", "2", "1", "", "97.00", ""],
    ]
    assert text.startswith("60 epochs each, batch 256, lr 0.1, seed 0; the last epoch, in fp32.")
    assert text.endswith("\nThe paper's order holds in all 6 pairs of rows that it has.\n")


def test_an_ablation_in_another_order_names_the_pairs(folder):
    text = ablation(folder, v1=95.0, v2=94.5, v3=96.5, lbq=96.5)
    assert unwrapped(text).endswith(
        "Of the 6 pairs of rows that the paper has, 4 are in its order. Turned round: V1 against "
        "V2 (+0.50 here, -0.30 there) and V3 against LBQ (+0.00 here, -0.15 there). "
    )


def test_several_seeds_are_averaged(folder):
    store.save(replace(RUN, accuracy=96.0), folder / "ablation" / "a.json")
    store.save(replace(RUN, accuracy=97.0, seed=1), folder / "ablation" / "b.json")
    text = page.SECTIONS["ablation"].make(store.load(folder))
    row = ["LBQ: learned step, ReLSG-ET", "2", "2", "0.020 to 0.200", "96.50", "97.45"]
    assert rows_of(text)[2] == row
    assert "seeds 0 and 1;" in text


def test_an_ablation_of_unequal_budgets_is_refused(folder, capsys):
    store.save(RUN, folder / "ablation" / "a.json")
    store.save(replace(RUN, epochs=60), folder / "ablation" / "b.json")
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err == (
        f"train.results: the runs of {folder / 'ablation'} must share epochs, batch, lr, ema and "
        "fine_tuned, not [(60, 256, 0.1, 0.999, False), (300, 256, 0.1, 0.999, False)]\n"
    )


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


def test_commands_repeat_what_the_runs_changed(folder):
    store.save(replace(RUN, fine_tuned=True), folder / "runs" / "t2.json")
    text = page.SECTIONS["commands"].make(store.load(folder))
    assert (
        "    python -m train --config cifar10-resnet20-t2-fast --set train.ema=0.999 "
        "--set train.init=RUN --data DIR --out runs/t2\n" in text
    )


def test_a_note_stands_under_its_section(folder):
    write(folder / "notes.json", {"ablation": "Why so."})
    assert "\nWhy so.\n\n## Training steps\n" in page.page(store.load(folder))
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
         "gamma_min": 0.5 / n, "loss": 1.0}
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
    ],
)
def test_a_run_of_each_ablation_becomes_its_row(tmp_path, name, method):
    finished(tmp_path, f"cifar10-resnet20-{name}", ["train.epochs=3", "train.seed=4"])
    run = store.collect(tmp_path)
    assert (run.method, run.epochs, run.seed, run.accuracy) == (method, 3, 4, 90.5)
    assert (run.seconds, run.ranges) == (6.1, {"gamma_min": 0.5 / 3})
    assert run.changes == ["train.epochs=3", "train.seed=4"]


def test_the_command_writes_a_row_that_is_read_back(folder, tmp_path, capsys):
    run = tmp_path / "mine"
    finished(run, "cifar10-resnet20-t2", ["train.epochs=2", "train.init=/some/where"])
    write(run / "final.json", {"epoch": 2, "model_fp32": 91.0})
    assert main([str(folder / "runs"), "--collect", str(run)]) == 0
    path = folder / "runs" / "mine.json"
    said = f"{path}: 90.50 % after 2 epochs of cifar10-resnet20-t2\n"
    assert capsys.readouterr().out == said
    row = store.load(folder).runs["mine"]
    assert row == store.collect(run)
    assert row.fine_tuned
    assert row.evaluations == {"model_fp32": 91.0}
    assert "where" not in path.read_text(encoding="utf-8")


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


def test_a_row_with_other_keys_is_refused(tmp_path):
    values = asdict(RUN)
    del values["seed"]
    with pytest.raises(ValueError, match=r"row\.json must have the keys of a run; .* in seed, x$"):
        store.Run.from_dict(values | {"x": 1}, tmp_path / "row.json")
    with pytest.raises(ValueError, match=r"row\.json: method must be one of .*, not 'if'$"):
        store.Run.from_dict(asdict(RUN) | {"method": "if"}, tmp_path / "row.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "must be JSON: "), ("[]", "must hold one JSON object, not list")],
)
def test_a_broken_file_is_named(folder, capsys, text, message):
    (folder / "bench-gpu.json").write_text(text)
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err.startswith(
        f"train.results: {folder / 'bench-gpu.json'} {message}"
    )


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
