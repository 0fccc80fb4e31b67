"""Packages that carry a self-test: inputs and the logits they must give."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from lbq_hw import datasets, file, golden, package, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.host.__main__ import main
from lbq_hw.package import Package, PackageError

IMAGES = datasets.load("digits", split="test").images[:3]


def packed(folder: Path, *, tested: bool = True) -> Package:
    return package.write(
        folder,
        board="sim",
        config=CoreConfig(lanes=8),
        model=zoo.find("digits"),
        clock_hz=12_000_000,
        baud=3_000_000,
        baked=False,
        bitstream=None,
        images=IMAGES if tested else None,
    )


def replace(folder: Path, data: bytes) -> Path:
    """Another file in the place of the self-test, with its digest."""
    path = folder / package.SELFTEST
    path.write_bytes(data)
    manifest = folder / package.MANIFEST
    facts = json.loads(manifest.read_text("utf-8"))
    facts["sha256"][path.name] = hashlib.sha256(data).hexdigest()
    manifest.write_text(json.dumps(facts), "utf-8")
    return path


def test_a_package_carries_inputs_with_the_logits_of_golden(tmp_path: Path) -> None:
    packed(tmp_path / "a")
    found = package.read(tmp_path / "a").selftest
    assert found is not None
    assert np.array_equal(found.images, IMAGES)
    assert np.array_equal(found.logits, golden.run(file.load(zoo.find("digits")), IMAGES).logits)


def test_a_package_from_before_there_were_self_tests_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed(tmp_path / "a", tested=False)
    manifest = tmp_path / "a" / package.MANIFEST
    facts = json.loads(manifest.read_text("utf-8"))
    del facts["selftest"]
    manifest.write_text(json.dumps(facts), "utf-8")
    assert package.read(tmp_path / "a").selftest is None
    assert main(["--package", str(tmp_path / "a"), "--selftest"]) == 2
    text = f"error: {tmp_path / 'a'} has no self-test: build it again\n"
    assert capsys.readouterr().err == text


LOGITS = np.zeros((3, 10), np.int64)


@pytest.mark.parametrize(
    "data",
    [
        b"nothing",
        safetensors.numpy.save({}),
        safetensors.numpy.save({"images": IMAGES}),
        safetensors.numpy.save({"images": IMAGES[:0], "logits": LOGITS[:0]}),
        safetensors.numpy.save({"images": IMAGES[:2], "logits": LOGITS}),
        safetensors.numpy.save({"images": IMAGES[:, :, 1:].copy(), "logits": LOGITS}),
        safetensors.numpy.save({"images": IMAGES, "logits": LOGITS[:, 1:].copy()}),
        safetensors.numpy.save({"images": IMAGES, "logits": LOGITS.astype(np.int32)}),
        safetensors.numpy.save({"images": IMAGES, "logits": LOGITS, "more": LOGITS}),
    ],
    ids=len,
)
def test_what_is_no_self_test_of_the_network_is_refused(tmp_path: Path, data: bytes) -> None:
    packed(tmp_path / "a")
    path = replace(tmp_path / "a", data)
    with pytest.raises(PackageError) as error:
        package.read(tmp_path / "a")
    assert str(error.value) == f"{path} is no self-test of this network: build it again"


def test_a_self_test_beside_other_inputs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed(tmp_path / "a")
    for other in (["--images", "2"], ["--dataset", "digits"], ["--raw", "x.npy"]):
        assert main(["--package", str(tmp_path / "a"), "--selftest", *other]) == 2
        assert capsys.readouterr().err == (
            "error: --selftest has its own inputs: leave out --images and all other inputs\n"
        )
