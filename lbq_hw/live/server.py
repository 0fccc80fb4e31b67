"""An HTTP server for browsers of this machine only.

The server listens on 127.0.0.1. It answers a fixed set of paths, which are not paths of files. A
request with another Host is refused, against DNS rebinding, and so is a request from a page of
another site. A body must have exactly the length of the network's input.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from lbq_hw.host.transport import DeviceError
from lbq_hw.live.answers import Live

ADDRESS = "127.0.0.1"
TIMEOUT = 30.0
"""Seconds that a browser may stay silent in the middle of a request."""
_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAMPLE = re.compile(r"/api/sample/([0-9]{1,9})")
_BYTES = "application/octet-stream"


class Refusal(Exception):
    """A refused request: its status, and one sentence."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    timeout = TIMEOUT
    server_version = "lbq"
    sys_version = ""

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    @property
    def _serving(self) -> LiveServer:
        assert isinstance(self.server, LiveServer)
        return self.server

    def _get(self) -> tuple[str, bytes]:
        if self.path in _PAGE:
            name, kind = _PAGE[self.path]
            return kind, resources.files("lbq_hw.live").joinpath("page", name).read_bytes()
        if self.path == "/api/facts":
            return _json(self._serving.live.facts())
        if self.path == "/favicon.ico":
            return "image/x-icon", b""
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def _post(self) -> tuple[str, bytes]:
        live = self._serving.live
        if self.path == "/api/picture":
            if not live.picture_bytes:
                raise Refusal(HTTPStatus.CONFLICT, "this network takes recordings, not pictures")
            return _json(live.picture(self._body(live.picture_bytes)))
        if found := _SAMPLE.fullmatch(self.path):
            number = int(found[1])
            if live.samples is None or number >= len(live.samples.images):
                raise Refusal(HTTPStatus.NOT_FOUND, f"there is no sample {number}")
            self._body(0)
            return _json(live.sample(number))
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def _body(self, length: int) -> bytes:
        """The body, of exactly this length."""
        told = self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding") is not None or not told.isdecimal():
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "give the body's Content-Length")
        if len(told) > 12 or int(told) > length:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have {length} bytes")
        if int(told) != length:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"the body must have {length} bytes")
        if length and self.headers.get("Content-Type") != _BYTES:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body must be {_BYTES}")
        body = self.rfile.read(length)
        if len(body) != length:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"the body must have {length} bytes")
        return body

    def _check(self) -> None:
        """Refuse requests that do not come from this server's page."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self._serving.hosts:
            raise Refusal(HTTPStatus.FORBIDDEN, "this server answers only at its own address")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            raise Refusal(HTTPStatus.FORBIDDEN, "this server answers its own page alone")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refusal(HTTPStatus.FORBIDDEN, "this server answers its own page alone")

    def _reply(self, answer: Callable[[], tuple[str, bytes]]) -> None:
        status = HTTPStatus.OK
        try:
            self._check()
            kind, body = answer()
        except Refusal as refusal:
            status, self.close_connection = refusal.status, True
            kind, body = _json({"error": str(refusal)})
        except DeviceError as error:
            status = HTTPStatus.BAD_GATEWAY
            kind, body = _json({"error": str(error)})
        except TimeoutError:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class LiveServer(ThreadingHTTPServer):
    """Serves one `Live` on a port of this machine; port 0 means any free port."""

    daemon_threads = True

    def __init__(self, live: Live, port: int) -> None:
        self.live = live
        super().__init__((ADDRESS, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing if a browser has closed its connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names under which a browser may address this server."""
        return tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))

    @property
    def url(self) -> str:
        return f"http://{self.hosts[0]}/"


def _json(value: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()
