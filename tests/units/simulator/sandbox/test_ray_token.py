"""The simulated head of Ray requires the token of its environment, as Ray 2.60.0 does."""

from __future__ import annotations

import http.client
import http.server
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from simulator.sandbox.library import ray_dashboard

TOKEN = "0123"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    handler = type("Handler", (ray_dashboard._Dashboard,), {"jobs": {}, "logs": tmp_path})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def status(port: int, path: str, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "headers", "answer"),
    [
        ("/api/jobs/", {}, HTTPStatus.UNAUTHORIZED),
        ("/api/jobs/", {"Authorization": "Bearer other"}, HTTPStatus.FORBIDDEN),
        ("/api/jobs/", {"Authorization": f"Bearer {TOKEN}"}, HTTPStatus.OK),
        ("/api/jobs/", {"x-ray-authorization": f"Bearer {TOKEN}"}, HTTPStatus.OK),
        ("/api/gcs_healthz", {}, HTTPStatus.OK),  # a kubelet's probe
    ],
)
def test_head_requires_the_token(
    port: int, monkeypatch: pytest.MonkeyPatch, path: str, headers: dict[str, str], answer: HTTPStatus
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    assert status(port, path, headers) == answer


def test_head_refuses_to_run_code_without_the_token(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/api/jobs/", "x" * 100_000)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (401, b"Unauthorized: Missing authentication token")
    finally:
        connection.close()


def test_head_without_a_mode_lets_everybody_run_code(port: int) -> None:
    assert status(port, "/api/jobs/", {}) == HTTPStatus.OK
