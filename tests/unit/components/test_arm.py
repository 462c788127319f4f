from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pulumi
import pytest

from components.preflight import arm
from components.preflight.arm import Arm, Unread, connect
from simulator.azure import trust
from simulator.azure.https import HttpsServer
from tests.support.lookups import ENDPOINT, Answer, answer
from tests.support.mocked_azure import TOKEN
from tests.support.mocks import deploy

ARM = Arm(ENDPOINT, TOKEN)
FORBIDDEN = {"error": {"code": "AuthorizationFailed", "message": "..."}}


def asked(monkeypatch: pytest.MonkeyPatch, *answers: Answer | Exception) -> list[str]:
    """Answers in this order. Returns requested URLs."""
    urls, left = list[str](), list(answers)

    def fetch(url: str, token: str) -> Answer:
        assert token == TOKEN
        urls.append(url)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(arm, "fetch", fetch)
    return urls


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (answer(FORBIDDEN, 403), "403 AuthorizationFailed"),
        (answer([], 404), "404"),
        (answer({"error": "no"}, 400), "400"),
        ((200, b"<html>"), "https://arm.test/it does not answer with JSON"),
        (answer(["a"]), "https://arm.test/it does not answer with JSON"),
        (OSError("no route to host"), "https://arm.test/it: no route to host"),
    ],
)
def test_a_failed_lookup_returns_the_reason(given: Answer, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, given)
    assert ARM.get({"it": "/it?api-version=1"}) == {"it": Unread(why)}


def test_joins_the_pages_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = {"value": [1], "nextLink": f"{ENDPOINT}/it?page=2"}, {"value": [2], "nextLink": None}
    urls = asked(monkeypatch, answer(first), answer(last))
    assert ARM.get({"it": "/it"})["it"] == {"value": [1, 2], "nextLink": None}
    assert urls == [f"{ENDPOINT}/it", f"{ENDPOINT}/it?page=2"]


@pytest.mark.parametrize("there", ["https://elsewhere/it", f"{ENDPOINT}.elsewhere/it", "file:///etc/passwd", 5])
def test_rejects_a_next_page_on_another_host(there: object, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = asked(monkeypatch, answer({"value": [1], "nextLink": there}))
    assert isinstance(ARM.get({"it": "/it"})["it"], Unread)
    assert urls == [f"{ENDPOINT}/it"]
    assert TOKEN not in repr(ARM)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    requests: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("Authorization")))
            self.send_response(307 if self.path == "/moved" else 503 if len(requests) == 1 else 200)
            self.send_header("Location", f"https://localhost:{https.server_port}/there")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    authority = trust.authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", authority.path("ca", "crt"))
    monkeypatch.setattr(arm, "_trusted", ssl.create_default_context)  # a program caches it
    https = HttpsServer(0, authority, Handler)
    thread = threading.Thread(target=https.serve_forever, args=(0.05,))
    thread.start()
    yield f"https://127.0.0.1:{https.server_port}", requests
    https.shutdown()
    thread.join()
    https.server_close()


def test_retries_a_busy_server(server: tuple[str, list[tuple[str, str | None]]]) -> None:
    endpoint, requests = server
    assert Arm(endpoint, TOKEN).get({"it": "/it"}) == {"it": {}}
    assert requests == [("/it", f"Bearer {TOKEN}")] * 2


def test_a_redirect_to_another_host_gets_no_token(server: tuple[str, list[tuple[str, str | None]]]) -> None:
    endpoint, requests = server
    assert Arm(endpoint, TOKEN).get({"it": "/moved"}) == {"it": {}}
    assert requests == [("/moved", f"Bearer {TOKEN}"), ("/there", None)]


@pytest.mark.parametrize("endpoint", ["file://", "https://127.0.0.1:1", "https://", "http://127.0.0.1:1"])
def test_returns_the_reason_for_an_invalid_or_unreachable_url(endpoint: str) -> None:
    found = Arm(endpoint, TOKEN).get({"it": "/it"})["it"]
    assert isinstance(found, Unread)
    assert found.why.endswith(" does not begin with https://") == (not endpoint.startswith("https:"))


def connected(region: str = "eastus") -> Arm | Unread:
    found: list[Arm | Unread] = []
    deploy(lambda: found.append(connect(region)))
    return found[0]


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("eastus", "https://management.azure.com"),
        ("usgovvirginia", "https://management.usgovcloudapi.net"),
        ("chinanorth3", "https://management.chinacloudapi.cn"),
    ],
)
def test_each_cloud_has_its_own_endpoint(region: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARM_METADATA_HOSTNAME", raising=False)
    assert connected(region) == Arm(endpoint, TOKEN)


@pytest.mark.parametrize(
    ("host", "asked"), [("arm.test", "https://arm.test"), ("https://127.0.0.1:8", "https://127.0.0.1:8")]
)
def test_reads_the_endpoint_of_a_custom_cloud(host: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[tuple[str, str]] = []

    def fetch(url: str, token: str) -> Answer:
        urls.append((url, token))
        return answer({"resourceManager": "https://my.cloud/"})

    monkeypatch.setattr(arm, "fetch", fetch)
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", host)
    assert connected() == Arm("https://my.cloud", TOKEN)
    assert urls == [(f"{asked}/metadata/endpoints?api-version=2022-09-01", "")]


def test_the_providers_key_overrides_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm, "fetch", lambda url, *_: answer({"resourceManager": url.partition("/metadata")[0]}))
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "variable")
    pulumi.runtime.set_all_config({"azure-native:metadataHost": "key"})
    assert connected() == Arm("https://key", TOKEN)
    pulumi.runtime.set_all_config({})


def test_a_custom_cloud_without_an_endpoint_gets_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "arm.test")
    monkeypatch.setattr(arm, "fetch", lambda *_: answer({}, 404))
    assert connected() == Unread("404")
    monkeypatch.setattr(arm, "fetch", lambda *_: answer({}))
    assert isinstance(connected(), Unread)
