"""Packages and tapes that were changed at random: refused in a line, or what their JSON says."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streams import counting_network
from tapes import drawn

from lbq_hw import file, interpreter, package, zoo
from lbq_hw.chips import CHIPS
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.most import most_cycles
from lbq_hw.host import __main__ as host
from lbq_hw.isa import tape
from lbq_hw.isa.tape import TapeItem
from lbq_hw.package import Package, PackageError
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sizing.door import opening_of
from lbq_hw.streaming import package as streams
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.package import StreamPackage
from tests.forged import (
    assert_a_line,
    assert_both,
    bounded,
    change,
    counts,
    read_or_refused,
)

TAPED = 13
"""The seed of the network with external memory: 51 passes, in which most lanes have a channel."""
LONGEST = 20
"""Times the cycles of the honest tape that a forged one is run for."""


def write(folder: Path, **facts: Any) -> None:
    line = {"board": "sim", "clock_hz": 12_000_000, "baud": 3_000_000}
    package.write(folder, **line, baked=False, rates=(3_000_000, 115_200), **facts)


@pytest.fixture(scope="module")
def taped() -> Program:
    return compile_network(*drawn(TAPED))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, taped: Program) -> dict[str, Path]:
    """A package of each sort: on chip with a bitstream and a door, with a tape, streaming."""
    home = tmp_path_factory.mktemp("honest")
    (home / "top.bin").write_bytes(b"bits")
    digits, config = file.load(zoo.find("digits")), CoreConfig(lanes=8)
    write(
        home / "chip",
        config=config,
        model=zoo.find("digits"),
        bitstream=home / "top.bin",
        images=random_images(digits, 2),
        opening=opening_of(compile_network(digits, config), queue=True),
    )
    network, config = drawn(TAPED)
    file.save(network, home / "net.lbq")
    chip = next(chip for chip in CHIPS if chip.data_bits == config.external)
    own = replace(chip, name="own")
    images = random_images(network, 2)
    facts = {"config": config, "model": home / "net.lbq", "bitstream": None, "images": images}
    write(home / "tape", **facts, tape=taped.tape, chip=chip)
    write(home / "own", **facts, tape=taped.tape, chip=own)
    file.save(counting_network(), home / "count.lbq")
    stream = compile_stream(counting_network(), lanes=4, units=2, horizon=8)
    given = {"board": "sim", "clock_hz": 12_000_000, "baud": 1_000_000, "horizon": 8}
    streams.write(home / "stream", **given, config=stream.config, model=home / "count.lbq")
    return {name: home / name for name in ("chip", "tape", "own", "stream")}


def change_file(draw: random.Random, path: Path) -> None:
    """Alter a file, take it away, or put something else in its place."""
    data, kind = path.read_bytes(), draw.choice(("cut", "flip", "flip", "flip", "other", "none"))
    if kind == "cut":
        path.write_bytes(data[: draw.randrange(len(data))])
    elif kind == "flip":
        altered = bytearray(data)
        altered[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(altered))
    elif kind == "other":
        others = sorted(one for one in path.parent.iterdir() if one.is_file())
        path.write_bytes(draw.choice(others).read_bytes())
    else:
        path.unlink()
        make: Callable[[Path], object] = draw.choice(
            (os.mkfifo, os.mkdir, lambda link: os.symlink("/dev/zero", link), lambda _: None)
        )
        make(path)


def sign(folder: Path, facts: Any) -> None:
    """Make the digests right again, where there are any."""
    with contextlib.suppress(TypeError, AttributeError, KeyError):
        for name in facts["sha256"]:
            if (folder / name).is_file() and name != package.MANIFEST:
                data = (folder / name).read_bytes()
                facts["sha256"][name] = hashlib.sha256(data).hexdigest()


def forge(draw: random.Random, folder: Path, manifest: str) -> None:
    """Change what a package says, or what it has; most digests are right then."""
    facts = json.loads((folder / manifest).read_text("utf-8"))
    kind = draw.random()
    if kind < 0.3:
        change_file(draw, draw.choice(sorted(folder.iterdir())))
    if kind > 0.2:
        for _ in range(draw.choice((1, 1, 2))):
            change(draw, facts)
    if draw.random() < 0.8:
        sign(folder, facts)
    if (folder / manifest).is_file() and kind > 0.2:
        text = json.dumps(facts)
        if draw.random() < 0.05:
            text = text.replace('"baud"', '"clock_hz"', 1)
        (folder / manifest).write_text(text, "utf-8")


def assert_facts(found: Package | StreamPackage) -> None:
    """What was read is what the files say."""
    streaming = isinstance(found, StreamPackage)
    path = found.folder / (streams.MANIFEST if streaming else package.MANIFEST)
    facts = json.loads(path.read_text("utf-8"))
    for name in ("board", "clock_hz", "baud"):
        assert getattr(found, name) == facts[name]
    model = found.folder / (streams.MODEL if streaming else facts["model"])
    assert file.digest(found.network) == file.digest(file.load(model))
    if isinstance(found, StreamPackage):
        assert asdict(found.config) == facts["config"]
        return
    for name, digest in facts["sha256"].items():
        assert hashlib.sha256((found.folder / name).read_bytes()).hexdigest() == digest
    config = CoreConfig().to_dict() | facts["config"]
    assert {name: value for name, value in config.items() if value} == {
        name: value for name, value in found.config.to_dict().items() if value
    }
    assert (found.baked, list(found.rates)) == (facts["baked"], facts.get("rates", []))
    name = facts["bitstream"]
    assert found.bitstream == (None if name is None else found.folder / name)
    name = facts.get("tape")
    assert found.tape == (b"" if name is None else (found.folder / name).read_bytes())
    assert bool(found.tape) == bool(found.config.external)
    if found.memory is not None:
        assert asdict(found.memory) == {"own": None} | facts["memory"]
        chip = found.memory.described()
        assert (chip.name, chip.size_bytes) == (found.memory.chip, found.memory.bytes)
        assert (chip.data_bits, len(found.tape)) == (
            found.config.external,
            found.memory.tape_bytes,
        )
    opening = None if found.opening is None else json.loads(json.dumps(asdict(found.opening)))
    assert opening == (facts.get("opening") and {"queue": 0} | facts["opening"])
    assert (found.selftest is None) == (facts.get("selftest") is None)


def program_of(found: Package | StreamPackage) -> Program | None:
    """The program of a package whose network fits its core."""
    with contextlib.suppress(ValueError):  # what does not fit is told by the compiler, as ever
        return found.program if isinstance(found, Package) else None
    return None


@counts(40)
def test_a_forged_package_is_refused_in_a_line_or_is_what_it_says(
    count: int, honest: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: Counter[str] = Counter()
    folder = tmp_path / "package"
    for seed in range(count):
        draw = random.Random(seed)
        kind = draw.choice(sorted(honest))
        shutil.copytree(honest[kind], folder)
        streaming = kind == "stream"
        forge(draw, folder, streams.MANIFEST if streaming else package.MANIFEST)
        read: Callable[[], Package | StreamPackage] = (
            (lambda: streams.read(folder)) if streaming else (lambda: package.read(folder))
        )
        found = read_or_refused(read, PackageError, folder, ends)
        if found is not None:
            assert_facts(found)
            with bounded():
                program_of(found)
        else:
            words = ["--port", "/nowhere", "--package", str(folder)]
            with bounded():
                assert host.main(words + (["--stream", "data"] if streaming else [])) == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert_a_line(err.removesuffix("\n"), folder)
        shutil.rmtree(folder)
    assert_both(ends, count)


def forged_tape(draw: random.Random, program: Program) -> bytes:
    """A tape with other words, in most of which all CRCs are right again."""
    config, data = program.config, bytearray(program.tape)
    kind = draw.choice(("word", "word", "word", "item", "item", "head", "raw", "size"))
    if kind == "raw":
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(data)
    if kind == "size":
        more = draw.choice((b"\1", b"\0", bytes(4), bytes(1024), draw.randbytes(8)))
        return bytes(data[: draw.randrange(len(data))] if draw.random() < 0.5 else data + more)
    items = list(tape.decode(config, program.tape))
    place = draw.randrange(len(items))
    if kind == "word":
        writes = [number for number, item in enumerate(items) if item.payload]
        place = draw.choice(writes)
        payload = list(items[place].payload)
        payload[draw.randrange(len(payload))] ^= 1 << draw.randrange(32)
        items[place] = replace(items[place], payload=tuple(payload))
    elif kind == "item":
        change_items(draw, items, place)
    if kind != "head":
        return tape.encode(config, items)
    words = list(tape.head(config, len(data) // 4).payload)
    words[draw.randrange(3)] = draw.choice((0, 1, 1 << 31, (1 << 32) - 1, words[2] + 1))
    first = TapeItem(address=tape.HEAD, payload=tuple(words))
    return tape.joined(config, [first, *items, TapeItem(address=tape.END)])


def change_items(draw: random.Random, items: list[TapeItem], place: int) -> None:
    """Take an item away, again or elsewhere; or another address, wait or length."""
    item, other = items[place], draw.randrange(len(items))
    kind = draw.choice(("gone", "again", "swap", "address", "after", "payload"))
    if kind == "gone":
        del items[place]
    elif kind == "again":
        items.insert(other, item)
    elif kind == "swap":
        items[place], items[other] = items[other], item
    elif kind == "address":
        address = draw.choice((item.address + 1, item.address ^ 1 << draw.randrange(32), tape.PASS))
        items[place] = replace(item, address=address & (1 << 32) - 1)
    elif kind == "after":
        items[place] = replace(item, after=draw.choice((0, 1, item.after + 1, 65_535)))
    else:
        items[place] = replace(item, payload=draw.choice(((), (1,), item.payload[:-1])))


def outcome(program: Program, found: Package, most: int) -> str:
    """How the self-test ends on a tape: it tells of all but `same`."""
    test, forged = found.selftest, replace(program, tape=found.tape)
    assert test is not None
    if sum(most_cycles(found.program)) > LONGEST * most:
        return "longer"
    try:
        logits = [interpreter.run(forged, image).logits for image in test.images]
    except (ValueError, OverflowError, IndexError):
        return "stopped"
    return "same" if np.array_equal(logits, test.logits) else "other logits"


@counts(30)
def test_a_forged_tape_is_refused_in_a_line_or_can_be_run(
    count: int, honest: dict[str, Path], taped: Program, tmp_path: Path
) -> None:
    ends: Counter[str] = Counter()
    folder = tmp_path / "package"
    shutil.copytree(honest["tape"], folder)
    facts = json.loads((folder / package.MANIFEST).read_text("utf-8"))
    most = sum(most_cycles(taped))
    for seed in range(count):
        data = forged_tape(random.Random(seed), taped)
        (folder / package.TAPE).write_bytes(data)
        facts["memory"]["tape_bytes"] = len(data)
        sign(folder, facts)
        (folder / package.MANIFEST).write_text(json.dumps(facts), "utf-8")
        found = read_or_refused(lambda: package.read(folder), PackageError, folder, ends)
        if found is None:
            continue
        again = tape.encode(found.config, tape.decode(found.config, data), page_bytes=4)
        assert data[: len(again)] == again
        assert not any(data[len(again) :])
        with bounded():
            ends[outcome(taped, found, most)] += 1
    assert_both(ends, count)
