"""The steps of a board that has its bitstream, on a model of the link and of a core's addresses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from first_light import LINK, Core, Fake, pack
from host.memory_model import FAILED, NUMBER, CoreMemory
from numpy.typing import NDArray
from tapes import drawn

from lbq_hw import file, zoo
from lbq_hw.bring_up import answers
from lbq_hw.bring_up.walk import Finding, Visit
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.host import Device, SerialTransport
from lbq_hw.package import Package

SLOWER = "build the package again with a lower --freq"
GIVEN_UP = (
    "the core does not answer (6 attempts): check that the board is powered and has its "
    "bitstream, and that port and baud are right"
)
LOOK = (
    "load the bitstream of this package again; if that does not help, see docs/bring-up.md: the "
    "light, the USB bridge, and what to do when nothing answers"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return pack(tmp_path_factory.mktemp("answers"), board="sim")


def said(finding: Finding) -> tuple[str, str, str]:
    return finding.state, finding.text, finding.mend


def visited(folder: Path, packed: Package, core: Core | None, **more: Any) -> Visit:
    fake = Fake(folder, ports=[LINK])
    if core is not None:
        fake.open = core.open
    return fake.visit(packed.board, packed, **more)


def test_the_core_of_the_package_answers(tmp_path: Path, packed: Package) -> None:
    visit = visited(tmp_path, packed, Core(packed))
    digest = packed.config.digest
    text = f"ttyUSB1: a core with config {digest[:8]} at 115,200 baud, its network is uploaded"
    found = answers.link(visit)
    assert said(found) == ("ok", text, "")
    assert found.facts == {"port": "ttyUSB1", "config": digest, "repeated_frames": 0}
    assert visit.port == "ttyUSB1"


def test_the_port_behind_which_the_core_answers_is_taken(tmp_path: Path, packed: Package) -> None:
    core, asked = Core(packed), []

    def opened(name: str, **options: Any) -> SerialTransport:
        asked.append(name)
        if name == "b":
            return core.open(name, **options)
        return Fake(tmp_path).open(name, **options)

    fake = Fake(tmp_path, ports=[replace(LINK, name=name) for name in "abc"], open=opened)
    visit = fake.visit("sim", packed)
    assert answers.link(visit).state == "ok"
    assert visit.port == "b"
    assert asked == ["a", "b", "c", "b"]


def test_nothing_answers(tmp_path: Path, packed: Package) -> None:
    visit = visited(tmp_path, packed, None)
    assert said(answers.link(visit)) == ("failed", GIVEN_UP, LOOK)


def test_another_core_answers(tmp_path: Path, packed: Package) -> None:
    core = Core(packed)
    core.model.memory[1] = 0x12345678
    found = answers.link(visited(tmp_path, packed, core))
    text = (
        f"the core must be LBQ1 with config {packed.config.digest[:8]}, not 4c425131 with "
        "12345678: load the bitstream of this program"
    )
    assert said(found) == ("failed", text, LOOK)


def on_tape(folder: Path) -> tuple[Package, Core, CoreMemory]:
    network, config = drawn(3)
    file.save(network, folder / "net.lbq")
    tape = compile_network(network, config).tape
    packed = pack(folder, board="sim", config=config, model=folder / "net.lbq", tape=tape, images=0)
    core = Core(packed)
    core.model.memory = cells = CoreMemory(config)
    return packed, core, cells


def test_the_memory_keeps_what_is_written(tmp_path: Path) -> None:
    packed, core, cells = on_tape(tmp_path)
    visit = visited(tmp_path, packed, core)
    found = answers.memory(visit)
    assert (found.state, found.facts["differing_words"]) == ("ok", 0)
    assert found.text.startswith("no word differs, captures 1 and 2 passed, 1 in use, ")
    assert found.facts["captures"] == {"passed": [1, 2], "used": 1}
    cells.stuck = {5: 1, 6: 1}
    assert said(answers.memory(visit)) == (
        "failed", "4 words differ from what was written, captures 1 and 2 passed, 1 in use", SLOWER,
    )  # fmt: skip


def test_a_memory_that_no_calibration_finds(tmp_path: Path) -> None:
    class Dead(CoreMemory):
        """It has failed before and after a new calibration."""

        def get(self, address: int, default: int = 0) -> int:  # type: ignore[override]
            return FAILED if address == NUMBER["memory"] else super().get(address, default)

    packed, core, _ = on_tape(tmp_path)
    core.model.memory = Dead(packed.config)
    found = answers.memory(visited(tmp_path, packed, core))
    assert found.state == "failed"
    assert found.text.startswith("the external memory does not work: its calibration found ")
    assert found.mend == f"power the board off and on; if that does not help, {SLOWER}"


def test_a_core_without_external_memory(tmp_path: Path, packed: Package) -> None:
    found = answers.memory(visited(tmp_path, packed, None))
    assert said(found) == ("skipped", "the core has no external memory", "")


def test_the_self_test(tmp_path: Path, packed: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    test = packed.selftest
    assert test is not None
    wrong = 0

    def run(_: Device, raw: NDArray[np.uint8]) -> NDArray[np.int64]:
        (index,) = [at for at, image in enumerate(test.images) if (image == raw).all()]
        return test.logits[index] + (wrong if index == 1 else 0)

    monkeypatch.setattr(Device, "run", run)
    core = Core(packed)
    core.model.memory[7] = 4800  # cycles
    visit = visited(tmp_path, packed, core)
    found = answers.selftest(visit)
    assert said(found) == ("ok", "2 inputs, all logits equal, 4,800 cycles (100 us)", "")
    facts = {"inputs": 2, "differing": [], "cycles": 4800, "repeated_frames": 0}
    assert found.facts == facts
    # What the bitstream did not bring was uploaded first.
    assert any(address >> 28 == 1 for address, _ in core.model.written)
    wrong = 1
    found = answers.selftest(visit)
    text = "1 of 2 inputs give wrong logits"
    assert said(found) == ("failed", text, f"{SLOWER}, and send the report of this command")
    assert found.facts["differing"] == [1]


def test_a_self_test_that_the_core_does_not_end(tmp_path: Path, packed: Package) -> None:
    core = Core(packed)
    visit = visited(tmp_path, packed, core)
    core.model.memory |= {3: 4, 4: 3, 5: 7}  # status, error, error_at
    found = answers.selftest(visit)
    assert found.state == "failed"
    assert found.text.startswith("the core stopped with error ")
    assert found.mend == f"load the bitstream again; if that does not help, {SLOWER}"


def test_a_package_without_a_self_test(tmp_path: Path) -> None:
    packed = pack(tmp_path, board="sim", images=0)
    found = answers.selftest(visited(tmp_path, packed, None))
    assert said(found) == ("skipped", "the package has no self-test: build it again", "")


def test_the_rate_is_measured_and_faster_ones_are_tried(tmp_path: Path, packed: Package) -> None:
    core = Core(packed)
    found = answers.rate(visited(tmp_path, packed, core))
    assert found.state == "ok"
    assert found.facts["rates"] == {"1000000": True, "3000000": True}
    speed = found.facts["bytes_per_second"]
    assert speed > 0
    assert found.text.startswith("115,200 baud, ")
    assert found.text.endswith(
        "B/s, no frame repeated; --baud 1000000 works too; --baud 3000000 works too"
    )
    assert core.rate == core.baudrate == 115_200


def test_a_rate_that_does_not_work_is_left_again(tmp_path: Path, packed: Package) -> None:
    class Slow(Core):
        """Its bridge loses everything at 3,000,000 baud."""

        def write(self, data: bytes) -> int:
            return len(data) if self.baudrate == 3_000_000 else super().write(data)

    core = Slow(packed)
    found = answers.rate(visited(tmp_path, packed, core))
    assert found.state == "ok"
    assert found.facts["rates"] == {"1000000": True, "3000000": False}
    assert found.text.endswith("; --baud 1000000 works too; --baud 3000000 does not work")
    assert core.rate == core.baudrate == 115_200


def test_a_core_that_does_not_come_back_from_another_rate(tmp_path: Path, packed: Package) -> None:
    class Lost(Core):
        """A core that knows no break."""

        def write(self, data: bytes) -> int:
            if self.rate == 1_000_000:
                return len(data)
            return super().write(data)

    found = answers.rate(visited(tmp_path, packed, Lost(packed)))
    assert said(found) == ("failed", GIVEN_UP, "load the bitstream again")


def test_a_line_with_noise(tmp_path: Path, packed: Package) -> None:
    class Noisy(Core):
        """Every 40th piece that is sent is lost."""

        pieces = 0

        def write(self, data: bytes) -> int:
            self.pieces += 1
            return len(data) if self.pieces % 40 == 39 else super().write(data)

    found = answers.rate(visited(tmp_path, packed, Noisy(packed)))
    repeated = found.facts["repeated_frames"]
    assert repeated > 0
    mend = "take another cable and no hub, and see docs/bring-up.md, the USB bridge"
    text = f"at 115,200 baud, {repeated} frames were repeated"
    assert said(found) == ("failed", text, mend)


def test_words_that_come_back_otherwise(tmp_path: Path, packed: Package) -> None:
    class Stuck(dict[int, int]):
        def update(self, pairs: Any) -> None:
            super().update((address, word | 1) for address, word in pairs)

    core = Core(packed)
    core.model.memory = Stuck(core.model.memory)
    found = answers.rate(visited(tmp_path, packed, core))
    text = "at 115,200 baud, words that were written came back changed"
    assert (found.state, found.text) == ("failed", text)


def test_a_core_with_narrow_words_keeps_no_more_of_each(tmp_path: Path) -> None:
    class Narrow(dict[int, int]):
        def update(self, pairs: Any) -> None:
            super().update((address, word & 0xFFFF) for address, word in pairs)

    config = smallest_for(file.load(zoo.find("digits")), lanes=4, word=16)
    packed = pack(tmp_path, board="sim", config=config, images=0)
    core = Core(packed)
    core.model.memory = Narrow(core.model.memory)
    found = answers.rate(visited(tmp_path, packed, core))
    assert (found.state, found.facts["equal"]) == ("ok", True)


def test_a_core_at_a_slow_clock_is_asked_for_rates_that_it_can_have(
    tmp_path: Path, packed: Package
) -> None:
    slow = replace(packed, clock_hz=11_000_000)
    assert answers._others(visited(tmp_path, slow, None)) == [1_000_000]
    fast = replace(packed, baud=1_000_000)
    assert answers._others(visited(tmp_path, fast, None)) == [3_000_000]
