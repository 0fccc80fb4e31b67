"""The page in a real browser, where there is one: nothing on the console, every plot drawn."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import report
from lbq_hw.report import Facts

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
THEMES = {"dark": 0, "light": 1}

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here to load the page in (package chromium)"
)

# The page in a frame as wide as a screen, since a window cannot be as narrow as a phone.
_FRAME = """<!DOCTYPE html><html><body><pre id="seen"></pre>
<iframe id="page" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<script>
document.getElementById("page").onload = event => {{
  const page = event.target.contentDocument;
  const size = node => {{ const box = node.getBoundingClientRect();
    return {{width: box.width, height: box.height}}; }};
  const plots = {{}};
  for (const plot of page.querySelectorAll("[data-plot]")) {{
    plots[plot.dataset.plot] = {{...size(plot),
      marks: [...plot.querySelectorAll("svg rect")].filter(r => size(r).width > 0).length}};
  }}
  document.getElementById("seen").textContent = JSON.stringify({{plots,
    wide: page.documentElement.scrollWidth, height: page.documentElement.scrollHeight,
    paper: page.defaultView.getComputedStyle(page.body).backgroundColor}});
}};
</script></body></html>"""


def load(page: str, folder: Path, *, width: int = 1280, theme: str = "light") -> dict[str, Any]:
    """What the browser made of the page, and what it said on the console."""
    outer = folder / "outer.html"
    outer.write_text(_FRAME.format(width=width, page=html.escape(page)), encoding="utf-8")
    assert BROWSER is not None
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000",
            f"--blink-settings=preferredColorScheme={THEMES[theme]}",
            f"--window-size={max(width, 600)},900", "--dump-dom", outer.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    seen = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
    assert seen, "the browser did not load the page"
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return {**json.loads(html.unescape(seen[1])), "console": console}


@pytest.fixture(scope="module")
def page(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> str:
    return report.write(tmp_path_factory.mktemp("report"), facts).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("width", "theme", "paper"),
    [(1280, "light", "rgb(255, 255, 255)"), (390, "dark", "rgb(17, 21, 23)")],
)
def test_every_plot_is_drawn_within_the_screen(
    page: str, tmp_path: Path, width: int, theme: str, paper: str
) -> None:
    seen = load(page, tmp_path, width=width, theme=theme)
    assert seen["console"] == []
    assert set(seen["plots"]) == set(re.findall(r'data-plot="([^"]+)"', page))
    assert len(seen["plots"]) == 22
    for name, plot in seen["plots"].items():
        assert 0 < plot["width"] <= width, name
        assert plot["height"] > 20, name
        assert plot["marks"] > 0 or name in ("summary", "confusion", "samples"), name
    assert seen["wide"] <= width
    assert seen["height"] > 1000
    assert seen["paper"] == paper


def test_the_check_sees_an_error_and_a_page_that_is_too_wide(tmp_path: Path) -> None:
    broken = (
        '<!DOCTYPE html><body><div data-plot="x" style="width:500px">x</div>'
        "<script>missing()</script></body>"
    )
    seen = load(broken, tmp_path, width=390)
    assert len(seen["console"]) == 1
    assert "missing is not defined" in seen["console"][0]
    assert seen["wide"] > 390
    assert seen["plots"]["x"]["marks"] == 0
