from __future__ import annotations

import base64
import json
import os
import ssl
import time
from pathlib import Path
from typing import Any

import httpx
import msal  # type: ignore[import-untyped]
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from simulator.azure import trust
from simulator.azure.tokens import AKS, LIFETIME_S, STORAGE, Tokens
from simulator.command import environment
from tests.support.arm import GROUP, SUBSCRIPTION, TOKEN, Arm
from tests.support.blob_account import IDENTITY

TOKENS = Tokens("secret", generate_private_key(65537, 2048), SUBSCRIPTION, "https://arm.test")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def request_token(arm: Arm, resource: str = STORAGE, header: str = TOKEN) -> httpx.Response:
    query = {"resource": resource, "api-version": "2019-08-01"}
    return arm.client.get("/identity/token", params=query, headers={"X-IDENTITY-HEADER": header})


def test_returns_a_token_of_the_deployer(arm: Arm) -> None:
    answer = request_token(arm).json()
    assert answer["token_type"] == "Bearer"
    assert arm.server.tokens.principal(answer["access_token"]) == SUBSCRIPTION.object_id


@pytest.mark.parametrize("slash", ["", "/"])
def test_arm_accepts_its_token(slash: str, arm: Arm) -> None:
    token = request_token(arm, arm.server.endpoint + slash).json()["access_token"]
    answer = arm.client.get(GROUP, params={"api-version": "2024-03-01"}, headers={"Authorization": f"Bearer {token}"})
    assert arm.refusal(answer)[:2] == (404, "ResourceGroupNotFound")


def test_returns_the_endpoints_of_the_cloud(arm: Arm) -> None:
    """The official plugin requires these fields. Without MicrosoftGraph it has no client config."""
    found = arm.client.get("/metadata/endpoints?api-version=2022-09-01").json()
    here = arm.server.endpoint
    assert (found["resourceManager"], found["authentication"]["loginEndpoint"]) == (here, here)
    assert found["authentication"]["audiences"] == [here]
    assert arm.server.tokens.knows(found["microsoftGraphResourceId"])
    assert arm.refusal(arm.client.get("/metadata/endpoints"))[:2] == (400, "InvalidApiVersionParameter")


GRACE, AUTOMATION = (SUBSCRIPTION.directory[name] for name in ("grace", "automation"))
SECRET = {
    "grant_type": "client_credentials",
    "client_id": SUBSCRIPTION.client_id,
    "client_secret": TOKEN,
    "scope": f"{STORAGE}/.default openid",
}


def sign_in(arm: Arm, tenant: str = SUBSCRIPTION.tenant_id, **form: str) -> httpx.Response:
    return arm.client.post(f"/{tenant}/oauth2/v2.0/token", data=SECRET | form)


def test_a_service_principal_signs_in_with_its_secret(arm: Arm) -> None:
    assert claims_of(arm, sign_in(arm))["oid"] == SUBSCRIPTION.object_id


def test_ignores_the_case_of_guids(arm: Arm) -> None:
    answer = sign_in(arm, tenant=SUBSCRIPTION.tenant_id.upper(), client_id=AUTOMATION.client_id.upper())
    assert claims_of(arm, answer)["oid"] == AUTOMATION.object_id


@pytest.mark.parametrize(
    ("form", "status", "error", "code"),
    [
        ({"client_secret": "guessed"}, 401, "invalid_client", 7000215),
        ({"client_secret": ""}, 401, "invalid_client", 7000215),
        ({"client_id": "another"}, 400, "unauthorized_client", 700016),
        ({"scope": "https://vault.azure.net/.default"}, 400, "invalid_resource", 500011),
        ({"grant_type": "device_code"}, 400, "unsupported_grant_type", 70003),
        ({"grant_type": "password", "username": GRACE.upn}, 400, "invalid_grant", 50126),
        ({"grant_type": "password", "username": "missing"}, 400, "invalid_grant", 50034),
        ({"tenant": "another"}, 400, "invalid_tenant", 90002),
    ],
)
def test_rejects_other_logins(form: dict[str, str], status: int, error: str, code: int, arm: Arm) -> None:
    answer = sign_in(arm, **form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["error_description"].startswith(f"AADSTS{code}: ")


def claims_of(arm: Arm, answer: httpx.Response) -> dict[str, Any]:
    return arm.server.tokens.claims(answer.json()["access_token"]) or {}


def test_only_tokens_of_users_have_a_name_and_groups(arm: Arm) -> None:
    password = {"grant_type": "password", "username": GRACE.upn, "password": TOKEN}
    user = claims_of(arm, sign_in(arm, **password, scope=f"{AKS}/.default"))
    assert {name: user[name] for name in ("aud", "idtyp", "upn", "oid")} == {
        "aud": AKS,
        "idtyp": "user",
        "upn": GRACE.upn,
        "oid": GRACE.object_id,
    }
    assert user["groups"] == list(GRACE.groups)
    application = claims_of(arm, sign_in(arm, client_id=AUTOMATION.client_id))
    assert (application["oid"], application["idtyp"]) == (AUTOMATION.object_id, "app")
    assert not {"upn", "groups"} & application.keys()


def test_the_published_keys_verify_tokens(arm: Arm) -> None:
    """API servers verify tokens with the issuer's configuration, without a secret."""
    here = f"/{SUBSCRIPTION.tenant_id}/.well-known/openid-configuration"
    anonymous = {"Authorization": ""}
    found = arm.client.get(here, headers=anonymous).json()
    (key,) = arm.client.get(found["jwks_uri"], headers=anonymous).json()["keys"]
    token = request_token(arm, AKS).json()["access_token"]
    signed, _, signature = token.rpartition(".")
    assert unpacked(signed.partition(".")[0])["kid"] == key["kid"]
    assert unpacked(signed.partition(".")[2])["iss"] == found["issuer"]
    n, e = (int.from_bytes(raw(key[part])) for part in ("n", "e"))
    RSAPublicNumbers(e, n).public_key().verify(raw(signature), signed.encode(), PKCS1v15(), SHA256())


def raw(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "==")


def unpacked(part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw(part))
    return found


def test_a_managed_identity_signs_in_with_its_client_id(group: Arm) -> None:
    ids = group.put(IDENTITY, {"location": "eastus"}).json()["properties"]
    query = {"resource": AKS, "client_id": ids["clientId"]}
    answer = group.client.get("/identity/token", params=query, headers={"X-IDENTITY-HEADER": TOKEN})
    claims = claims_of(group, answer)
    assert (claims["oid"], claims["appid"]) == (ids["principalId"], ids["clientId"])
    assert sign_in(group, client_id=ids["clientId"]).json()["error_codes"] == [7000215]  # it has no secret


def test_the_identity_endpoint_needs_its_header(arm: Arm) -> None:
    answer = request_token(arm, header="guessed")
    assert (answer.status_code, answer.json()["statusCode"]) == (401, 401)


def test_rejects_other_audiences(arm: Arm) -> None:
    answer = request_token(arm, resource="https://vault.azure.net")
    assert answer.status_code == 400
    assert "only for https://storage.azure.com" in answer.text


def test_accepts_the_names_for_any_tenant(arm: Arm) -> None:
    """`az logout` requests `organizations`."""
    for name in ("organizations", "common", SUBSCRIPTION.tenant_id):
        found = arm.client.get(f"/{name}/v2.0/.well-known/openid-configuration").json()
        assert found["token_endpoint"] == f"{arm.server.endpoint}/{SUBSCRIPTION.tenant_id}/oauth2/v2.0/token"
    refused = arm.client.get("/00000000-0000-4000-8000-0000000000ff/v2.0/.well-known/openid-configuration")
    assert refused.json()["error_codes"] == [90002]


def test_the_login_host_of_microsoft_returns_its_own_urls(arm: Arm) -> None:
    """MSAL's clients send a secret only to a trusted host."""
    host = {"Host": "login.microsoftonline.com"}
    instance = arm.client.get("/common/discovery/instance?api-version=1.1", headers=host).json()
    assert instance["metadata"][0]["aliases"] == ["login.microsoftonline.com"]
    path = f"/{SUBSCRIPTION.tenant_id}/v2.0/.well-known/openid-configuration"
    found = arm.client.get(path, headers=host).json()
    assert found["issuer"] == f"https://login.microsoftonline.com/{SUBSCRIPTION.tenant_id}/v2.0"


def test_rejects_an_expired_token(arm: Arm) -> None:
    token, _ = arm.server.tokens.issue(arm.server.endpoint, now=time.time() - LIFETIME_S - 1)
    answer = arm.client.get(GROUP, params={"api-version": "2024-03-01"}, headers={"Authorization": f"Bearer {token}"})
    assert arm.refusal(answer)[:2] == (401, "ExpiredAuthenticationToken")


@pytest.mark.parametrize("token", ["", "x", "a.b.c", TOKENS.issue(STORAGE)[0] + "x"])
def test_rejects_foreign_tokens(token: str) -> None:
    assert TOKENS.principal(token) is None


def test_the_environment_signs_in_only_to_the_simulator(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "real")
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://169.254.169.254/real")
    monkeypatch.setenv("MSI_SECRET", "real")
    monkeypatch.setenv("ARM_CLIENT_SECRET", "real")
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", "real")
    monkeypatch.setenv("ARM_METADATA_HOSTNAME", "management.real")
    found = environment.environment()
    assert found["IDENTITY_ENDPOINT"] == f"{found['SIMULATOR_ARM_ENDPOINT']}/identity/token"
    assert found["ARM_METADATA_HOSTNAME"] == found["SIMULATOR_ARM_ENDPOINT"]
    assert found["IDENTITY_HEADER"] == environment.token_file().read_text()
    assert found["ARM_USE_MSI"] == found["ARM_DISABLE_INSTANCE_DISCOVERY"] == "true"
    assert found["ARM_SUBSCRIPTION_ID"] == SUBSCRIPTION.subscription_id
    assert "real" not in str(found)
    assert {"AZURE_CLIENT_SECRET", "MSI_SECRET"} <= set(environment.unset())


def test_the_environment_needs_no_proxy_for_blobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    assert (
        environment.settings()["no_proxy"]
        == environment.settings()["NO_PROXY"]
        == "intranet.example,127.0.0.1,localhost"
    )


def test_the_bundle_has_the_authorities_of_the_machine_and_of_the_simulator(home: Path) -> None:
    bundle = trust.bundle()
    assert trust.authority().pem in bundle.read_text()
    context = ssl.create_default_context(cafile=str(bundle))
    assert len(context.get_ca_certs()) > 1


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_the_bundle_keeps_the_users_authorities(home: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = home / "company.pem"
    chosen.write_text("# the company's\n" + trust.authority().pem)
    monkeypatch.setenv(variable, str(chosen))
    assert trust.bundle().read_text().startswith("# the company's\n")
    assert environment.settings()[variable] == str(trust.bundle())


def test_entering_the_environment_twice_changes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = environment.settings()
    before = trust.bundle().read_text()
    for name, value in first.items():
        monkeypatch.setitem(os.environ, name, value)
    assert environment.settings() == first
    assert trust.bundle().read_text() == before


def test_msal_reads_the_error_of_the_identity_endpoint(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Azure CLI requests tokens with MSAL, which prints "None, None" for an error in another shape."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{arm.server.endpoint}/identity/token")
    monkeypatch.setenv("IDENTITY_HEADER", TOKEN)
    identity = msal.UserAssignedManagedIdentity(client_id="00000000-0000-0000-0000-000000000009")
    found = msal.ManagedIdentityClient(identity, http_client=arm.client).acquire_token_for_client(resource=STORAGE)
    assert found["error_description"] == (
        "400, No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId."
    )
