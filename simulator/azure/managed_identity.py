"""The token endpoint for the deployer and managed identities. It works like App Service's endpoint.

It serves all identities of the subscription. Without a client id, it issues the deployer's token. In a virtual network,
it issues the token of the first machine's user-assigned identity, if any.

Clients: `DefaultAzureCredential` of the program's Azure SDK, and the azure-native plugin if `ARM_USE_MSI` is true
(pulumi-azure-native, provider/pkg/provider/auth_azidentity.go; managed_identity_client.go of azidentity). Source:
Azure's page "How to use managed identities for App Service", REST endpoint reference (2019-08-01).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http import HTTPStatus

from simulator.azure import directory, domains, machines
from simulator.azure.arm_world import World
from simulator.azure.errors import IdentityError
from simulator.azure.store import Body
from simulator.azure.subscription import Principal
from simulator.azure.tokens import Tokens

_HEADER = "x-identity-header"


def answer(path: str, query: Mapping[str, str], headers: Mapping[str, str], world: World, tokens: Tokens) -> Body:
    """Answers a GET. `query` and `headers` have lower-case names. Raises IdentityError."""
    if not hmac.compare_digest(headers.get(_HEADER, "").encode(), tokens.secret.encode()):
        message = "The header X-IDENTITY-HEADER is missing or wrong; it has the value of IDENTITY_HEADER."
        raise IdentityError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)
    resource = query.get("resource", "")
    if not tokens.knows(resource):
        message = f"The simulator has no tokens for '{resource}', only for {', '.join(tokens.audiences)}."
        raise IdentityError(HTTPStatus.BAD_REQUEST, "InvalidResource", message)
    deployer, client = tokens.subscription.deployer, query.get("client_id", "").lower()
    principal: Principal | None
    if client in ("", deployer.client_id.lower()):
        principal = (not client and machines.signed_in(world, path.removesuffix(domains.IDENTITY))) or deployer
    else:
        principal = directory.managed_identity(world, client)
    if principal is None:
        message = "No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId."
        raise IdentityError(HTTPStatus.BAD_REQUEST, "BadRequest", message)
    token, expires = tokens.issue(resource, principal)
    return {
        "access_token": token,
        "client_id": principal.client_id,
        "expires_on": str(expires),
        "resource": resource,
        "token_type": "Bearer",
    }
