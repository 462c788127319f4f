"""Tokens of a service principal, for clients that sign in by a secret: of OAuth 2.0, what MSAL asks for.

A stack whose provider has `clientId`, `clientSecret` and `tenantId` signs in so, on real Azure and here. The one
service principal is the deployer; its secret here is the simulator's. Sources: Entra's page "OAuth 2.0 client
credentials flow"; MSAL for Go 1.6.0 (oauth/resolvers.go, authority.go), which refuses an issuer at another host.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from urllib.parse import parse_qsl

from simulator.azure.store import Body
from simulator.azure.tokens import LIFETIME_S, Tokens

DISCOVERY = "/v2.0/.well-known/openid-configuration"
TOKEN = "/oauth2/v2.0/token"  # noqa: S105 - a path
_SCOPE = "/.default"


class LoginError(Exception):
    """Entra's refusal, in its own shape, which is not ARM's."""

    def __init__(self, status: int, error: str, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: Body = {"error": error, "error_description": f"AADSTS{code}: {message}", "error_codes": [code]}


def discovery(path: str, tokens: Tokens) -> Body:
    """Of a GET: where a tenant signs in. Raises LoginError."""
    here = f"{tokens.arm}/{_tenant(path.removesuffix(DISCOVERY), tokens)}"
    return {
        "authorization_endpoint": f"{here}/oauth2/v2.0/authorize",
        "issuer": f"{here}/v2.0",
        "token_endpoint": f"{here}{TOKEN}",
    }


def token(path: str, content: bytes, tokens: Tokens) -> Body:
    """Of a POST with a form. Raises LoginError."""
    tenant, form = _tenant(path.removesuffix(TOKEN), tokens), dict(parse_qsl(content.decode(errors="replace")))
    asked, resource = form.get("client_id", ""), form.get("scope", "").split(" ")[0].removesuffix(_SCOPE)
    if form.get("grant_type") != "client_credentials":
        message = f"The app requested an unsupported grant type '{form.get('grant_type', '')}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "unsupported_grant_type", 70003, message)
    if asked != tokens.subscription.client_id:
        message = f"Application with identifier '{asked}' was not found in the directory '{tenant}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "unauthorized_client", 700016, message)
    if not hmac.compare_digest(form.get("client_secret", "").encode(), tokens.secret.encode()):
        message = f"Invalid client secret provided for app '{asked}': in the simulator it is that of IDENTITY_HEADER."
        raise LoginError(HTTPStatus.UNAUTHORIZED, "invalid_client", 7000215, message)
    if not tokens.knows(resource):
        message = f"The resource principal named {resource} was not found in the tenant '{tenant}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_resource", 500011, message)
    issued, _ = tokens.issue(resource)
    return {"access_token": issued, "expires_in": LIFETIME_S, "token_type": "Bearer"}


def _tenant(path: str, tokens: Tokens) -> str:
    name, known = path.strip("/"), tokens.subscription.tenant_id
    if name != known:
        message = f"Tenant '{name}' not found. The simulated one is '{known}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_tenant", 90002, message)
    return known
