"""How the program's Azure SDK signs in inside the simulator, and whose certificates it trusts there."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import httpx
import pytest

from simulator.azure.blobs import trust
from simulator.azure.tokens import LIFETIME_S, Tokens
from simulator.command import environment
from tests.support.arm import SUBSCRIPTION, TOKEN, Arm

STORAGE = "https://storage.azure.com"
TOKENS = Tokens("secret", SUBSCRIPTION)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def ask(arm: Arm, resource: str = STORAGE, header: str = TOKEN) -> httpx.Response:
    query = {"resource": resource, "api-version": "2019-08-01"}
    url = f"{arm.server.endpoint}/identity/token"
    return httpx.get(url, params=query, headers={"X-IDENTITY-HEADER": header}, trust_env=False)


def test_token_of_who_is_signed_in(arm: Arm) -> None:
    answer = ask(arm).json()
    assert answer["token_type"] == "Bearer"
    assert arm.server.tokens.principal(answer["access_token"]) == SUBSCRIPTION.object_id


def test_no_token_without_the_header(arm: Arm) -> None:
    answer = ask(arm, header="guessed")
    assert arm.refusal(answer)[:2] == (401, "Unauthorized")


def test_no_token_for_anything_else(arm: Arm) -> None:
    answer = ask(arm, resource="https://vault.azure.net")
    assert arm.refusal(answer)[:2] == (400, "InvalidResource")
    assert "only for https://storage.azure.com" in answer.text


def test_tokens_end() -> None:
    _, expires = TOKENS.issue(STORAGE, now=1000)
    assert expires == 1000 + LIFETIME_S


@pytest.mark.parametrize("token", ["", "x", "a.b.c", TOKENS.issue(STORAGE)[0] + "x"])
def test_what_is_no_token_of_ours(token: str) -> None:
    assert TOKENS.principal(token) is None


def test_environment_signs_in_here_and_nowhere_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "real")
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://169.254.169.254/real")
    monkeypatch.setenv("MSI_SECRET", "real")
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "management.real")
    found = environment.environment()
    assert found["IDENTITY_ENDPOINT"] == f"{found['SIMULATOR_ARM_ENDPOINT']}/identity/token"
    assert found["ARM_METADATA_HOSTNAME"] == found["SIMULATOR_ARM_ENDPOINT"]
    assert found["IDENTITY_HEADER"] == environment.token_file().read_text()
    assert "real" not in str(found)
    assert {"AZURE_CLIENT_SECRET", "MSI_SECRET"} <= set(environment.unset())


def test_proxies_are_not_asked_for_blobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    assert environment.settings()["no_proxy"] == environment.settings()["NO_PROXY"] == "intranet.example,127.0.0.1"


def test_trusts_what_this_machine_trusts_and_our_authority(home: Path) -> None:
    bundle = trust.bundle()
    assert trust.authority().pem in bundle.read_text()
    context = ssl.create_default_context(cafile=str(bundle))
    assert len(context.get_ca_certs()) > 1


def test_keeps_the_authority_that_the_user_chose(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = home / "company.pem"
    chosen.write_text("# the company's\n" + trust.authority().pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(chosen))
    assert trust.bundle().read_text().startswith("# the company's\n")


def test_entering_twice_changes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = environment.settings()
    before = trust.bundle().read_text()
    for name, value in first.items():
        monkeypatch.setitem(os.environ, name, value)
    assert environment.settings() == first
    assert trust.bundle().read_text() == before
