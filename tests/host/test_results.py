"""What a host says of the images that it ran: which they are, and how many are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbq_hw import datasets, golden, package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.datasets.fitting import Samples, draw
from lbq_hw.host import __main__ as host
from lbq_hw.host.results import Measured


def measured(_args: Any, packed: package.Package, samples: Samples) -> Measured:
    """As a board would answer that is right."""
    count = len(samples.images)
    return Measured(
        logits=golden.run(packed.network, samples.images).logits,
        cycles=np.full(count, 1000),
        waits=[None] * count,
        seconds=1.0,
        uploaded=False,
        upload_seconds=0.0,
        tape=None,
        captures=None,
        repeats=0,
        baud=3_000_000,
    )


def test_images_are_drawn_and_the_accuracy_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host, "_measure", measured)
    folder = package.write(
        tmp_path / "package", board="sim", config=CoreConfig(lanes=8), model=zoo.find("digits"),
        clock_hz=12_000_000, baud=3_000_000, baked=False, bitstream=None,
    ).folder  # fmt: skip
    test = datasets.load("digits", split="test")
    order = np.argsort(test.labels, kind="stable")
    np.savez(tmp_path / "sorted.npz", images=test.images[order], labels=test.labels[order])
    words = ["--package", str(folder), "--dataset", "npz", "--data", str(tmp_path / "sorted.npz")]
    assert host.main([*words, "--images", "40", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["split"], facts["drawn"]) == ("whole", {"of": 359, "seed": 0})
    assert len(set(test.labels[order][draw(359, 40)])) == 10
    assert host.main([*words, "--images", "40"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{facts['accuracy']:.2f} % of 40 of 359 images of undivided data (seed 0)" in shown
    assert (facts["images_per_second"], facts["images_per_second_core"]) == (40, 12_000)
    assert "throughput │ 40.0 images/s over the link, at 3,000,000 baud" in shown
    assert "core │ 12,000 images/s without the link" in shown
    assert host.main(["--package", str(folder)]) == 0
    assert "99.44 % of 359 test images" in " ".join(capsys.readouterr().out.split())
