"""Simulated Entra's endpoints: discovery of the login host, token signing keys, and tokens.

They serve the part of OAuth 2.0 that MSAL uses. Applications sign in with a secret (Pulumi providers have `clientId`,
`clientSecret` and `tenantId`) or with another issuer's token. Users sign in with a password. Each secret and password
must be the simulator's secret (IDENTITY_HEADER). API servers request the OpenID configuration of version 1.0 (a URL
without `/v2.0`), as in AKS (kubeguard/guard, getMetadata in auth/providers/azure/azure.go).

Sources: Entra's pages "OAuth 2.0 client credentials flow" and "Resource owner password credentials"; MSAL for Go 1.6.0
(oauth/resolvers.go, authority.go), which rejects an issuer at another host.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from urllib.parse import parse_qsl

from simulator.azure import directory, domains, federation
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, LoginError
from simulator.azure.store import Body
from simulator.azure.subscription import Principal
from simulator.azure.tokens import GRAPH, LIFETIME_S, Tokens

CLOUD = "/metadata/endpoints"
DISCOVERY = "/.well-known/openid-configuration"
INSTANCE = "/common/discovery/instance"
KEYS = "/discovery/keys"
TOKEN = "/oauth2/v2.0/token"  # noqa: S105 - a path
_V2 = "/v2.0"
_SCOPE = "/.default"
_CLOUD_VERSION = "2022-09-01"
_SUFFIXES = {"storage": "core.windows.net", "keyVaultDns": "vault.azure.net", "acrLoginServer": "azurecr.io"}
"""Azure's host name suffixes. Key vaults are not simulated."""
_ANY = ("organizations", "common")
"""Path parts that mean the caller's tenant."""


def cloud(version: str, tokens: Tokens) -> Body:
    """Returns the cloud's endpoints for the azure-native plugin or the program. Raises ArmError.

    Source: Azure's response at https://management.azure.com/metadata/endpoints, in the plugin's API version. Returns
    only the tenant and the fields that the plugin uses (pulumi-azure-native, cloud.go, FromMetadataEndpoint).
    """
    if version != _CLOUD_VERSION:
        message = f"The api-version '{version}' is invalid. The supported versions are '{_CLOUD_VERSION}'."
        raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidApiVersionParameter", message)
    here, tenant = tokens.arm, tokens.subscription.tenant_id
    signing_in = {"audiences": [here], "loginEndpoint": here, "tenant": tenant, "identityProvider": "AAD"}
    own = {"name": "AiOnAksSimulator", "resourceManager": here, "authentication": signing_in}
    return own | {"microsoftGraphResourceId": GRAPH, "suffixes": _SUFFIXES}


def instance() -> Body:
    """Returns the metadata that makes MSAL trust the login host. MSAL requests it only at Microsoft's login host."""
    host = f"https://{domains.LOGIN}/{_ANY[0]}"
    known = {"preferred_network": domains.LOGIN, "preferred_cache": domains.LOGIN, "aliases": [domains.LOGIN]}
    return {"api-version": "1.1", "tenant_discovery_endpoint": f"{host}{_V2}{DISCOVERY}", "metadata": [known]}


def discovery(path: str, tokens: Tokens, host: str = "") -> Body:
    """Returns the tenant's OpenID configuration, with URLs at the requested host. Raises LoginError."""
    stem = path.removesuffix(DISCOVERY)
    base = f"https://{host}" if host == domains.LOGIN else tokens.arm
    here = f"{base}/{_tenant(stem.removesuffix(_V2), tokens)}"
    return {
        "authorization_endpoint": f"{here}/oauth2/v2.0/authorize",
        "issuer": f"{here}{_V2}" if stem.endswith(_V2) else tokens.issuer,
        "jwks_uri": f"{here}{KEYS}",
        "token_endpoint": f"{here}{TOKEN}",
    }


def keys(path: str, tokens: Tokens) -> Body:
    """Returns the public keys that verify tokens. Raises LoginError."""
    _tenant(path.removesuffix(KEYS), tokens)
    return tokens.keys()


def token(path: str, content: bytes, world: World, tokens: Tokens) -> Body:
    """Answers a token request (a POST with a form). Raises LoginError."""
    tenant, form = _tenant(path.removesuffix(TOKEN), tokens), dict(parse_qsl(content.decode(errors="replace")))
    resource = form.get("scope", "").split(" ")[0].removesuffix(_SCOPE)
    if "client_assertion" in form:
        _check_resource(resource, tenant, tokens)
        client, assertion = form.get("client_id", ""), form["client_assertion"]
        issued, _ = federation.exchange(world, tokens, client, assertion, resource)
    else:
        principal = _principal(form, world, tokens)
        _check_resource(resource, tenant, tokens)
        issued, _ = tokens.issue(resource, principal)
    return {"access_token": issued, "expires_in": LIFETIME_S, "token_type": "Bearer"}


def no_browser(path: str) -> ArmError:
    message = f"Simulated Entra does not serve {path}: a login with a browser is not possible."
    return ArmError(HTTPStatus.NOT_FOUND, "NotFound", message)


def _principal(form: dict[str, str], world: World, tokens: Tokens) -> Principal:
    client, name = form.get("client_id", ""), form.get("username", "")
    match form.get("grant_type"):
        case "client_credentials":
            found, given = directory.application(world, client), form.get("client_secret", "")
            if _same(given, tokens.secret) and not directory.managed_identity(world, client):
                return found
            message = f"Invalid client secret provided for app '{client}': here it is the value of IDENTITY_HEADER."
            raise LoginError(HTTPStatus.UNAUTHORIZED, "invalid_client", 7000215, message)
        case "password":
            found = directory.user(world, name)
            if _same(form.get("password", ""), tokens.secret):
                return found
            message = "Error validating credentials due to invalid username or password."
            raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_grant", 50126, message)
    message = f"The app requested an unsupported grant type '{form.get('grant_type', '')}'."
    raise LoginError(HTTPStatus.BAD_REQUEST, "unsupported_grant_type", 70003, message)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _check_resource(resource: str, tenant: str, tokens: Tokens) -> None:
    if not tokens.knows(resource):
        message = f"The resource principal named {resource} was not found in the tenant '{tenant}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_resource", 500011, message)


def _tenant(path: str, tokens: Tokens) -> str:
    name, known = path.strip("/"), tokens.subscription.tenant_id
    if name.lower() not in (known.lower(), *_ANY):
        message = f"Tenant '{name}' not found. The simulated one is '{known}'."
        raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_tenant", 90002, message)
    return known
