"""The page's server: what it tells, and whom it refuses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
from simulators import digits

from lbq_hw import golden
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.live.__main__ import main
from lbq_hw.live.answers import Live
from lbq_hw.live.machines import GoldenMachine
from lbq_hw.live.server import LiveServer

Reply = tuple[int, dict[str, str], bytes]
BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    network = digits()
    live = Live.of(network, GoldenMachine(network), load_samples(network, limit=5))
    with LiveServer(live, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def ask(
    server: LiveServer,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Reply:
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=100)
    line.request(method, path, body, headers or {})
    reply = line.getresponse()
    found = reply.status, dict(reply.headers), reply.read()
    line.close()
    return found


def error(reply: Reply) -> tuple[int, str]:
    return reply[0], json.loads(reply[2])["error"]


def test_it_listens_on_this_machine_alone(server: LiveServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_a_sample_is_run_and_equals_golden(server: LiveServer) -> None:
    samples = server.live.samples
    assert samples is not None
    assert samples.labels is not None
    status, _, body = ask(server, "POST", "/api/sample/3")
    answer = json.loads(body)
    result = golden.run(digits(), samples.images[3:4], keep="levels")
    assert status == 200
    assert answer["logits"] == result.logits[0].tolist()
    assert answer["class"] == int(result.logits[0].argmax())
    assert answer["label"] == int(samples.labels[3])
    assert answer["equal"] is True
    assert [layer["name"] for layer in answer["layers"]] == [
        name for name, trace in result.traces.items() if trace.output is not None
    ]
    for layer in answer["layers"]:
        output = result.traces[layer["name"]].output
        assert output is not None
        bits = np.unpackbits(np.asarray(output, np.uint8))
        assert layer["events"] == int(bits.sum())
        assert layer["largest"] == int(np.asarray(output).max())


def test_a_picture_is_mapped_to_the_range_of_the_network(server: LiveServer) -> None:
    picture = np.full((1, 8, 8), 255, np.uint8)
    _, _, body = ask(server, "POST", "/api/picture", picture.tobytes(), BYTES)
    white = np.full((1, 1, 8, 8), 16, np.uint8)
    assert json.loads(body)["logits"] == golden.run(digits(), white).logits[0].tolist()


def test_the_page_asks_for_nothing_from_elsewhere(server: LiveServer) -> None:
    for path, kind in (("/", "html"), ("/app.js", "javascript"), ("/style.css", "css")):
        status, headers, body = ask(server, "GET", path)
        assert status == 200
        assert kind in headers["Content-Type"]
        assert b"http" not in body.replace(b"http://www.w3.org/2000/svg", b"")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")


OWN = "this server answers only at its own address"
PAGE = "this server answers its own page alone"


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Host": "evil.example"}, OWN),
        ({"Host": "127.0.0.1"}, OWN),
        ({"Host": "localhost:1"}, OWN),
        ({"Host": ""}, OWN),
        ({"Origin": "http://evil.example"}, PAGE),
        ({"Origin": "null"}, PAGE),
        ({"Sec-Fetch-Site": "cross-site"}, PAGE),
        ({"Sec-Fetch-Site": "same-site"}, PAGE),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/facts"), ("POST", "/api/sample/0")])
def test_strangers_are_refused(
    server: LiveServer, method: str, path: str, headers: dict[str, str], reason: str
) -> None:
    assert error(ask(server, method, path, headers=headers)) == (403, reason)


def test_a_page_of_its_own_is_answered(server: LiveServer) -> None:
    for host in server.hosts:
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert ask(server, "POST", "/api/sample/0", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/page/app.js", "//etc/passwd", "/app.js?x",
     "/api/sample/-1", "/api/sample/0/", "/api/sample/0x1"],
)  # fmt: skip
def test_no_path_leads_to_a_file(server: LiveServer, path: str) -> None:
    for method in ("GET", "POST"):
        assert error(ask(server, method, path)) == (404, "there is nothing at this path")


def test_a_sample_that_there_is_not(server: LiveServer) -> None:
    assert error(ask(server, "POST", "/api/sample/5")) == (404, "there is no sample 5")


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (bytes(63), BYTES, 400, "the body must have 64 bytes"),
        (bytes(65), BYTES, 413, "the body must have 64 bytes"),
        (bytes(64), {"Content-Type": "text/plain"}, 415,
         "the body must be application/octet-stream"),
        (None, BYTES | {"Content-Length": "9" * 40}, 413, "the body must have 64 bytes"),
        (None, BYTES | {"Content-Length": "-1"}, 411, "give the body's Content-Length"),
        (None, BYTES | {"Transfer-Encoding": "chunked"}, 411, "give the body's Content-Length"),
    ],
)  # fmt: skip
def test_bodies_of_another_size_are_refused(
    server: LiveServer, body: bytes | None, headers: dict[str, str], status: int, reason: str
) -> None:
    assert error(ask(server, "POST", "/api/picture", body, headers)) == (status, reason)


def test_a_method_that_there_is_not(server: LiveServer) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert ask(server, method, "/")[0] == 501


def test_what_is_no_http_does_not_stop_it(server: LiveServer) -> None:
    for noise in (
        b"\0" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/picture HTTP/1.1\r\n",
    ):
        line = socket.create_connection(("127.0.0.1", server.server_port), timeout=100)
        with line, suppress(OSError):  # it may be refused before all of it was sent
            line.sendall(noise)
    assert ask(server, "GET", "/api/facts")[0] == 200


def test_arguments_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "digits", "--port", "x"]) == 2
    assert capsys.readouterr().err == "error: --port needs the --package that is on the board\n"
    assert main(["--model", "mnist", "--dataset", "mnist"]) == 2
    assert capsys.readouterr().err == (
        "error: --dataset mnist needs --data, the folder of its files\n"
    )
    assert main(["--model", "digits", "--listen", "70000"]) == 2
    assert capsys.readouterr().err == "error: --listen must be 0 to 65535, not 70000\n"


def test_a_port_that_is_taken(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "digits", "--listen", str(server.server_port)]) == 2
    assert capsys.readouterr().err == (
        f"error: the server cannot listen on port {server.server_port} (Address already in use): "
        "give another with --listen\n"
    )
