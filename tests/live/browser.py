"""Chromium, driven through a pipe by its own protocol: real pointers, and pictures of pages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
_PATIENCE = 240.0


class Browser:
    """One page of a browser without a screen."""

    def __init__(self, folder: Path) -> None:
        assert BROWSER is not None
        (to_browser, self._write), (self._read, from_browser) = os.pipe(), os.pipe()

        def pipes() -> None:  # the browser reads from 3 and writes to 4
            copies = os.dup(to_browser), os.dup(from_browser)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self._process = subprocess.Popen(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, ""
        self.console: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        (page,) = [one["targetId"] for one in targets if one["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            got = os.read(self._read, 1 << 16)
            assert got, "the browser has ended"
            self._buffer += got
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(message["params"]))
        return message

    def evaluate(self, code: str) -> Any:
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, code: str) -> Any:
        """What an expression gives as soon as that is true."""
        ends = time.monotonic() + _PATIENCE
        while not (value := self.evaluate(code)):
            assert time.monotonic() < ends, f"{code} does not become true"
            time.sleep(0.05)
        return value

    def show(self, url: str, *, width: int, height: int, dark: bool) -> None:
        """Load a page on a screen of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)

    def drag(self, places: list[tuple[float, float]]) -> None:
        """Press the left button, move through places, release it."""
        for number, (x, y) in enumerate(places):
            kind = "mousePressed" if number == 0 else "mouseMoved"
            self._mouse(kind, x, y)
        self._mouse("mouseReleased", *places[-1])

    def _mouse(self, kind: str, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1,
                  clickCount=1)  # fmt: skip

    def picture(self) -> bytes:
        """The whole page as a PNG file."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])
