"""The programs of docs/examples run, on data that comes with the project."""

import json

from examples import example

from lbq_hw import load


def test_an_ann_is_trained_converted_tuned_and_exported(tmp_path, capsys):
    small = ["--dataset", "digits", "--width", "4", "--blocks", "1", "--batch", "240"]
    epochs = ["--epochs", "1", "--tune-epochs", "1", "--timesteps", "1"]
    assert example("convert").main([*small, *epochs, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "convert.json").read_text(encoding="utf-8"))
    (row,) = found["rows"]
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"T = 1: ANN {found['ann']:.2f} %, converted {row['converted']:.2f} %, fine-tuned with "
        f"4-bit weights {row['tuned']:.2f} %, integer network {row['integer']:.2f} %"
    )
    assert load(tmp_path / "t1.lbq").weight_bits == 4
