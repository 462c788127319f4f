"""Tokens for the program's Azure SDK: an endpoint in the shape of App Service's, which `DefaultAzureCredential` asks.

Source: Azure's page "How to use managed identities for App Service", REST endpoint reference (2019-08-01).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http import HTTPStatus

from simulator.azure.errors import ArmError
from simulator.azure.store import Body
from simulator.azure.tokens import Tokens

PATH = "/identity/token"
_HEADER = "x-identity-header"
_AUDIENCES = ("https://storage.azure.com",)


def answer(query: Mapping[str, str], headers: Mapping[str, str], tokens: Tokens) -> Body:
    """Of a GET; names of `query` and `headers` in lower case. Raises ArmError."""
    if not hmac.compare_digest(headers.get(_HEADER, "").encode(), tokens.secret.encode()):
        message = "The header X-IDENTITY-HEADER is missing or wrong; it has the value of IDENTITY_HEADER."
        raise ArmError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)
    resource = query.get("resource", "").rstrip("/")
    if resource not in _AUDIENCES:
        message = f"The simulator has no tokens for '{resource}', only for {', '.join(_AUDIENCES)}."
        raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidResource", message)
    token, expires = tokens.issue(resource)
    client = tokens.subscription.client_id
    return {
        "access_token": token,
        "client_id": client,
        "expires_on": str(expires),
        "resource": resource,
        "token_type": "Bearer",
    }
