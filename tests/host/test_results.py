"""What a host says of images without labels: the names of their classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import datasets, file, package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.host.results import Measured, report, show
from tests.digit_pictures import WORDS, write


def test_classes_of_pictures_are_shown_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = replace(file.load(zoo.find("digits")), class_names=WORDS)
    file.save(network, tmp_path / "net.lbq")
    packed = package.write(
        tmp_path / "package",
        board="sim",
        config=CoreConfig(lanes=8),
        model=tmp_path / "net.lbq",
        clock_hz=12_000_000,
        baud=3_000_000,
        baked=False,
        bitstream=None,
    )
    paths = [sorted((write(tmp_path / "a") / name).iterdir())[0] for name in ("7",)]
    samples = load_samples(packed.network, pictures=[str(path) for path in paths])
    wanted = datasets.load("digits", split="test").images[int(paths[0].stem)]
    np.testing.assert_array_equal(samples.images[0], wanted)
    measured = Measured(
        logits=np.eye(10, dtype=np.int64)[[7]],
        cycles=np.array([1000]),
        waits=[None],
        seconds=1.0,
        uploaded=False,
        upload_seconds=0.0,
        tape=None,
        repeats=0,
    )
    facts = report(packed, samples, measured, wanted=None)
    assert (facts["classes"], facts["class_names"]) == ([7], list(WORDS))
    show(facts)
    assert "│ classes    │ seven " in capsys.readouterr().out
