"""HTTPS requests of the small `az` to simulated Entra and ARM, at the addresses that `make shell` sets."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_SCOPE = "/.default"
_TIMEOUT_S, _BOOT_S = 30, 600


class LoginFailed(Exception):
    """A request failed, or an option of `az` is wrong."""


def by_identity(server: str, client_id: str = "") -> tuple[str, float]:
    """Returns a managed identity's token for `server`, and its expiry. The default identity is the deployer's."""
    query = {"resource": server, "api-version": "2019-08-01"} | ({"client_id": client_id} if client_id else {})
    headers = {"X-IDENTITY-HEADER": _variable("IDENTITY_HEADER")}
    answer = _answer(f"{_variable('IDENTITY_ENDPOINT')}?{urlencode(query)}", None, headers)
    return answer["access_token"], float(answer["expires_on"])


def by_form(server: str, tenant: str, form: Mapping[str, str]) -> tuple[str, float]:
    body = urlencode({**form, "scope": server + _SCOPE}).encode()
    answer = _answer(f"{_variable('SIMULATOR_ARM_ENDPOINT')}/{tenant}/oauth2/v2.0/token", body, {})
    return answer["access_token"], time.time() + answer["expires_in"]


def post(url: str, token: str) -> None:
    """Sends an empty POST. Waits up to 10 minutes for the answer, because `az aks start` boots a cluster."""
    _answer(url, b"", {"Authorization": f"Bearer {token}"}, _BOOT_S)


def get(url: str, token: str) -> dict[str, Any]:
    return _answer(url, None, {"Authorization": f"Bearer {token}"})


def _answer(url: str, form: bytes | None, headers: dict[str, str], timeout_s: int = _TIMEOUT_S) -> dict[str, Any]:
    trusting = ssl.create_default_context(cafile=_variable("SSL_CERT_FILE"))
    try:
        request = Request(url, form, headers)  # noqa: S310 - our URL, with HTTPS
        with urlopen(request, timeout=timeout_s, context=trusting) as answer:  # noqa: S310
            found: dict[str, Any] = json.loads(answer.read() or b"{}")
    except HTTPError as error:
        found = json.load(error)  # the format of Entra, the identity endpoint or Resource Manager
        raise LoginFailed(found.get("error_description") or found.get("message") or found["error"]["message"]) from None
    except URLError as error:
        raise LoginFailed(f"simulated Azure does not answer: {error.reason}") from None
    return found


def _variable(name: str) -> str:
    if not (value := os.environ.get(name)):
        raise LoginFailed(f"{name} is not set: enter the environment of the simulator with make shell")
    return value
