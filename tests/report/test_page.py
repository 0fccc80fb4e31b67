"""The page without a browser: well-formed, self-contained, and complete or honest about gaps."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lbq_hw import report
from lbq_hw.report import Facts
from lbq_hw.report.__main__ import main
from lbq_hw.report.facts import Board, Fit, Link, Model, Simulation, Step
from lbq_hw.report.page import render
from lbq_hw.report.summary import summary

PLOTS = {
    "summary", "resources", "fmax", "critical-path", "cycles", "operations", "energy-paper",
    "energy-integer", "gamma", "levels", "levels-layers.0.neuron", "levels-layers.1.neuron",
    "levels-residual.neuron", "memories", "memory-map", "weight-map", "proof-accumulator",
    "proof-membrane", "steps", "confusion", "mistakes", "samples",
}  # fmt: skip
SIMULATOR = Board(name="sim", title="the simulator", fabric="", clock_hz=10**8, available={})


def tree(page: str) -> ET.Element:
    """The page parsed as XML, which a single unclosed or misnested element would fail."""
    doctype, _, rest = page.partition("\n")
    assert doctype == "<!DOCTYPE html>"
    return ET.fromstring(rest)


def plots(page: str) -> set[str]:
    return {name for node in tree(page).iter() if (name := node.get("data-plot"))}


def text(page: str) -> str:
    body = tree(page).find("body")
    assert body is not None
    return " ".join(" ".join(body.itertext()).split())


def test_every_plot_is_there(facts: Facts) -> None:
    assert plots(render(facts)) == PLOTS


def test_the_page_asks_for_nothing_from_elsewhere(facts: Facts) -> None:
    page = render(facts)
    plain = re.sub(r'"data:image/png;base64,[A-Za-z0-9+/=]+"', '""', page)
    assert not re.findall(r"https?:|//[a-z]|@import|url\(", plain)
    for node in tree(page).iter():
        assert node.tag not in ("script", "iframe", "object", "embed", "base")
        for name, value in node.attrib.items():
            if name in ("href", "src", "action", "data", "srcset"):
                picture = node.tag == "img" and value.startswith("data:image/png;base64,")
                assert picture or value.startswith("#") or value == "data:,"


def test_every_link_leads_to_a_section(facts: Facts) -> None:
    root = tree(render(facts))
    sections = {node.get("id") for node in root.iter("section")}
    assert {link.get("href", "")[1:] for link in root.iter("a")} == sections
    assert len(sections) == 10


def test_the_page_is_made_from_the_json_files_alone(
    facts: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = report.write(tmp_path, facts)
    first = page.read_text(encoding="utf-8")
    page.unlink()
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert page.read_text(encoding="utf-8") == first == render(facts)


def test_a_folder_without_a_report_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    message = f"error: {tmp_path} must be a folder with a report's JSON files\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("part", [field.name for field in fields(Facts)])
def test_a_missing_part_leaves_a_page_without_it(facts: Facts, part: str) -> None:
    assert plots(render(replace(facts, **{part: None}))) <= PLOTS


def test_steps_beside_each_other_are_not_added_up(facts: Facts) -> None:
    assert facts.build is not None
    steps = (Step(name="simulate", seconds=100.0, beside=True), Step(name="synth", seconds=90.0))
    made = replace(facts.build, steps=steps, elapsed=101.0)
    shown = " ".join(text(render(replace(facts, build=made))).split())
    assert "took 1 min 41 s, seed 2; simulate ran beside the others" in shown
    assert "3 min 10 s" not in shown


def test_one_image_is_not_images(facts: Facts) -> None:
    assert facts.neurons is not None
    assert facts.operations is not None
    assert facts.simulation is not None
    assert facts.cycles is not None
    one = replace(
        facts,
        simulation=replace(facts.simulation, images=1),
        cycles=replace(facts.cycles, images=1),
        neurons=replace(facts.neurons, images=1),
        operations=replace(facts.operations, images=1),
    )
    assert not re.search(r"\b1 images", text(render(one)))


def test_of_nothing_there_is_a_page_too() -> None:
    assert plots(render(Facts())) == {"summary"}


def test_a_simulated_build_says_that_there_is_no_fabric(facts: Facts) -> None:
    page = render(replace(facts, board=SIMULATOR, fit=None, resources=None, timing=None))
    assert plots(page) == PLOTS - {"resources", "fmax", "critical-path"}
    assert "Fmax \N{EN DASH} no fabric" in text(page)


def test_a_refused_build_says_what_is_short(facts: Facts) -> None:
    fit = Fit(fits=False, resources={"LC": 7100}, reasons=("1,820 logic cells are short",))
    page = render(Facts(board=facts.board, fit=fit))
    assert "Fit estimate Does not fit 1,820 logic cells are short" in text(page)
    assert plots(page) == {"summary", "resources"}
    assert 'class="bad"' in page


def test_a_missed_clock_and_a_difference_are_not_hidden(facts: Facts) -> None:
    assert facts.timing is not None
    clock = replace(facts.timing.clocks[0], fmax_hz=11e6)
    wrong = Simulation(
        simulator="x", bit_exact=False, images=1, cycles_per_second=1.0, difference="image 0 <t 1>"
    )
    found = text(
        render(replace(facts, timing=replace(facts.timing, clocks=(clock,)), simulation=wrong))
    )
    assert "clock 12.0 MHz, not met" in found.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "if the clock were met" in found
    assert "Differs image 0 <t 1>" in found


def test_the_rate_over_the_link_comes_first(facts: Facts) -> None:
    assert facts.cycles is not None
    seconds = facts.cycles.cycles / 12e6
    core, whole = (f"{round(1 / part):,}" for part in (seconds, seconds + 0.009))
    found = text(render(facts)).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert f"estimate {whole} over the link at 1.00 Mbaud; {core} the core alone" in found


def test_turns_cost_the_bridge_s_latency_unless_line_and_core_overlap(facts: Facts) -> None:
    assert facts.cycles is not None
    seconds = facts.cycles.cycles / 12e6
    link = Link(baud=1_000_000, bytes=900, turns=6, latency=0.016)
    assert link.seconds == 0.009 + 6 * 0.016
    found = summary(replace(facts, link=link))
    assert found["images_per_second"] == 1 / (link.seconds + seconds)
    both = replace(link, turns=0, gap=0.0)
    assert summary(replace(facts, link=both))["images_per_second"] == 1 / max(0.009, seconds)


def test_answers_are_counted_by_class_and_mistakes_come_first(facts: Facts) -> None:
    assert facts.answers is not None
    found = text(render(facts)).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert (
        "classifies 357 of 359 test images of digits correctly, 99.44 %. These are the golden "
        "model's answers" in found
    )
    assert "3 taken for 2 1 / 52" in found
    root = tree(render(facts))
    cells = [node for node in root.iter("td") if "taken for" in node.get("title", "")]
    assert len(cells) == 100
    assert [node.get("title") for node in cells if node.get("class") == "miss"] == [
        "3 taken for 2: 1", "6 taken for 3: 1",
    ]  # fmt: skip
    wrong = [one.label != one.answer for one in facts.answers.samples]
    assert wrong == [True, True, *[False] * 14]


def test_many_classes_have_mistakes_and_no_matrix(facts: Facts) -> None:
    assert facts.answers is not None
    many = tuple(tuple(3 if at == to else 0 for to in range(21)) for at in range(21))
    answers = replace(facts.answers, names=(), confusion=many, mistakes=())
    found = plots(render(replace(facts, answers=answers)))
    assert PLOTS - found == {"confusion", "mistakes"}
    with pytest.raises(
        ValueError, match=r"^a confusion matrix must have 21 columns, and as many names$"
    ):
        replace(answers, names=("a", "b"))


def test_recordings_have_right_answers_by_timestep(facts: Facts) -> None:
    assert facts.answers is not None
    assert "timesteps" not in plots(render(facts))
    shown = render(replace(facts, answers=replace(facts.answers, by_step=(0.1, 0.5, 0.9944))))
    assert "timesteps" in plots(shown)
    found = text(shown).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "after 2 timesteps: 50.00 %" in found
    assert "3 timesteps: 99.44 %" in found


def test_a_picture_is_nothing_but_base64(facts: Facts) -> None:
    assert facts.answers is not None
    with pytest.raises(ValueError, match=r"^a picture must be base64$"):
        replace(facts.answers.samples[0], png='"/><script>')


def test_a_rate_without_the_link_says_so(facts: Facts) -> None:
    assert "without the link, lanes" in text(render(replace(facts, link=None)))


def test_cycles_of_noise_are_not_taken_for_those_of_a_dataset(facts: Facts) -> None:
    assert facts.cycles is not None
    assert "of noise" not in text(render(facts))
    found = text(render(replace(facts, cycles=replace(facts.cycles, dataset="noise"))))
    assert f"{round(facts.cycles.cycles):,} cycles on noise, computing alone" in found
    assert f"a mean of {facts.cycles.images} images of noise." in found


def test_energies_and_fits_before_synthesis_are_labelled_estimates(facts: Facts) -> None:
    found = text(render(facts))
    assert "Energy per image estimate" in found
    assert "an 8-bit multiplication estimate" in found
    assert "Fit estimate" not in found
    assert "Fit estimate Fits" in text(render(replace(facts, resources=None)))


@pytest.mark.parametrize(
    ("baked", "said"),
    [
        (True, "Next The model is baked into the bitstream. load it test it Steps"),
        (
            False,
            "Next The model is not baked into the bitstream: the host loads it. load it test it "
            "Steps",
        ),
        (None, "Next load it test it Steps"),
    ],
)
def test_the_next_commands_and_what_brings_the_model_are_said(
    facts: Facts, baked: bool | None, said: str
) -> None:
    assert facts.build is not None
    made = replace(facts.build, next=("load it", "test it"), baked=baked)
    assert said in text(render(replace(facts, build=made)))
    assert "Next" not in text(render(facts))


def test_classes_are_named(facts: Facts) -> None:
    assert facts.model is not None
    names = ("cat", "dog", "<b>", *map(str, range(20)))
    named = replace(facts, model=replace(facts.model, class_names=names))
    assert "classes cat, dog, <b>, 0, 1, 2, 3, 4, 5, 6, ..." in text(render(named))


def test_names_cannot_break_the_page(facts: Facts) -> None:
    name = '</style><script>alert("&amp;")</script>'
    assert isinstance(facts.model, Model)
    page = render(replace(facts, model=replace(facts.model, name=name)))
    heading = tree(page).find("body/header/h1")
    assert heading is not None
    assert heading.text == f"{name} on iCEBreaker"


def test_labels_of_a_map_are_seen_whole_or_stand_below_it(facts: Facts) -> None:
    for name in ("memory-map", "weight-map"):
        figure = tree(render(facts)).find(f".//figure[@data-plot='{name}']")
        assert figure is not None
        picture = figure.find(".//svg[@class='map']")
        assert picture is not None
        areas = picture.findall("svg")
        titles = [area.findtext("title") or "" for area in areas]
        assert [item.text for item in figure.iter("li")] == titles
        for number, (area, title) in enumerate(zip(areas, titles, strict=True), 1):
            shown = area.findtext("text")
            pixels = 2.3 * float(area.get("width", "").rstrip("%"))
            assert shown in (None, str(number), title.partition(":")[0])
            assert 7 * len(shown or "") <= pixels


def test_the_line_across_fmax_is_called_the_core_clock(facts: Facts) -> None:
    assert "Fmax after routing core clock" in text(render(facts))


def test_bars_never_pass_their_ends(facts: Facts) -> None:
    for bar in tree(render(facts)).iter("svg"):
        if bar.get("class") == "bar":
            widths = [float(rect.get("width", "").rstrip("%")) for rect in bar.iter("rect")]
            assert all(width > 0 for width in widths)
            assert round(sum(widths), 1) <= 100.0


def test_the_accented_part_of_a_layers_bar_is_its_utilisation(facts: Facts) -> None:
    assert facts.cycles is not None
    figure = tree(render(facts)).find(".//figure[@data-plot='cycles']")
    assert figure is not None
    longest = max(layer.cycles for layer in facts.cycles.layers)
    bars = [node for node in figure.iter("svg") if node.get("class") == "bar"]
    for layer, bar in zip(facts.cycles.layers, bars, strict=True):
        rects = [float(rect.get("width", "").rstrip("%")) for rect in bar.iter("rect")]
        assert round(sum(rects), 1) == round(100 * layer.cycles / longest, 1)
        assert round(rects[0], 1) == round(100 * layer.utilisation * layer.cycles / longest, 1)


def test_waiting_is_not_split_where_stalls_were_not_counted(facts: Facts) -> None:
    assert facts.cycles is not None
    assert "waiting for neuron units" in text(render(facts))
    layers = tuple(
        replace(layer, scanner_stalls=None, neuron_stalls=None, bounds=None, limit=None)
        for layer in facts.cycles.layers
    )
    found = text(render(replace(facts, cycles=replace(facts.cycles, layers=layers))))
    assert "waiting for" not in found
    assert "limit:" not in found


def test_estimate_and_result_stand_side_by_side(facts: Facts) -> None:
    found = text(render(facts)).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "logic cells 80 71 +13 %" in found
    assert "Fmax 70.0 MHz 86.7 MHz -19 %" in found
    assert "cycles per image (by guess) 3,500 " in found
    assert "Seeds tried and their Fmax: 1: 80.0 MHz, 2: 86.7 MHz." in found
