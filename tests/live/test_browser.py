"""The page in a real browser, where there is one: a stroke is drawn, a prediction appears."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.browser import BROWSER, Browser
from simulators import digits

from lbq_hw.datasets.fitting import load_samples
from lbq_hw.live.answers import Live
from lbq_hw.live.machines import GoldenMachine
from lbq_hw.live.server import LiveServer

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here to load the page in (package chromium)"
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    network = digits()
    live = Live.of(network, GoldenMachine(network), load_samples(network, limit=5))
    with LiveServer(live, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.url
        serving.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


READY = (
    "document.readyState === 'complete' && typeof facts === 'object' && facts && at === 0 "
    "&& !running"
)
SCREENS = {"light": (1280, 1000, False), "dark": (1280, 1000, True), "phone": (390, 844, False)}


@pytest.mark.parametrize("screen", SCREENS)
def test_a_stroke_is_drawn_and_a_prediction_appears(
    browser: Browser, url: str, screen: str, tmp_path: Path
) -> None:
    width, height, dark = SCREENS[screen]
    browser.show(url, width=width, height=height, dark=dark)
    browser.until(READY)
    before = browser.evaluate("one('logits').textContent")
    box = browser.evaluate("(box => [box.left, box.top, box.width])(pad.getBoundingClientRect())")
    left, top, side = box
    browser.drag([(left + side / 2, top + side * part / 10) for part in range(2, 9)])
    browser.until("drawn && !running && one('verdict').textContent === ''")
    browser.until(f"one('logits').textContent !== {before!r}")
    assert browser.evaluate("one('class').textContent") == "1"
    assert browser.evaluate("one('error').textContent") == ""
    assert browser.evaluate("document.querySelectorAll('.layer canvas').length") == 4
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(17, 21, 23)" if dark else "rgb(255, 255, 255)")
    assert browser.console == []
    picture = browser.picture()
    assert picture.startswith(b"\x89PNG")
    (tmp_path / f"{screen}.png").write_bytes(picture)


def test_samples_are_replayed_with_their_labels(browser: Browser, url: str) -> None:
    browser.show(url, width=1280, height=1000, dark=False)
    browser.until(READY)
    browser.evaluate("one('next').click()")
    assert browser.until("at === 1 && !running && one('place').textContent") == "2 of 5"
    verdict = browser.evaluate("one('verdict').textContent")
    assert verdict == "right" or verdict.startswith("wrong: it is ")
    assert browser.console == []
