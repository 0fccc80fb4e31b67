"""The programs of docs/examples run, on data that comes with the project."""

import json
import wave

from examples import example

from lbq_hw import datasets, load


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


def test_a_speaker_is_held_out(tmp_path, capsys):
    folder = tmp_path / "recordings"
    folder.mkdir()
    for digit, speaker in ((0, "ann"), (1, "ann"), (1, "bob_b")):
        with wave.open(str(folder / f"{digit}_{speaker}_0.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(400))
    out = tmp_path / "bob.npz"
    arguments = ["--data", str(tmp_path), "--out", str(out)]
    assert example("speakers").main([*arguments, "--speaker", "bob_b"]) == 0
    assert capsys.readouterr().out == f"{out}: 2 recordings of others, 1 of bob_b\n"
    for split, labels in (("train", [0, 1]), ("test", [1])):
        found = datasets.load("npz", out, split=split, timesteps=64)
        assert found.labels.tolist() == labels
        assert found.images.shape[1:] == (64, 1, 8, 16)
    assert example("speakers").main([*arguments, "--speaker", "bob"]) == 2
    assert "one of ann, bob_b, not 'bob'" in capsys.readouterr().err
