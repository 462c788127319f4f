"""Entra's workload identity: exchanges a service account's token for a token of a managed identity.

Error texts: user reports of AADSTS700213, AADSTS700016 and AADSTS700024 (Azure/azure-workload-identity#693). Signatures
are not checked, because simulated clusters do not publish their keys.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

import jwt

from simulator.azure import directory
from simulator.azure.arm_world import World
from simulator.azure.errors import LoginError
from simulator.azure.store import Record
from simulator.azure.tokens import Tokens
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.user_assigned_identity import rules as identities

_HELP = "https://learn.microsoft.com/entra/workload-id/workload-identity-federation"


def exchange(world: World, tokens: Tokens, client_id: str, assertion: str, audience: str) -> tuple[str, int]:
    """Returns a token for `audience` and the token's expiry time (seconds since 1970). Raises LoginError."""
    principal, identity = directory.application(world, client_id), identities.of_client(world, client_id)
    claims, issuers = _claims(assertion), [clusters.issuer(world, each) for each in world.store.all(clusters.TYPE)]
    if (
        identity is None
        or claims.get("iss") not in issuers
        or not any(_counts(credential, claims) for credential in world.store.within(identity.id))
    ):
        message = (
            "No matching federated identity record found for presented assertion subject "
            f"'{claims.get('sub')}'. Check your federated identity credential Subject, Audience and Issuer against the "
            f"presented assertion. {_HELP}"
        )
        raise LoginError(HTTPStatus.UNAUTHORIZED, "invalid_client", 700213, message)
    if claims.get("exp", 0) < time.time():
        message = f"Client assertion is not within its valid time range. Its expiry time is {claims.get('exp')}."
        raise LoginError(HTTPStatus.UNAUTHORIZED, "invalid_client", 700024, message)
    return tokens.issue(audience, principal)


def _counts(credential: Record, claims: dict[str, Any]) -> bool:
    wanted, audiences = credential.properties, claims.get("aud") or []
    named = [audiences] if isinstance(audiences, str) else audiences
    same = wanted["issuer"] == claims.get("iss") and wanted["subject"] == claims.get("sub")
    return same and any(audience in wanted["audiences"] for audience in named)


def _claims(assertion: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = jwt.decode(assertion, options={"verify_signature": False})
    except jwt.DecodeError as error:
        message = "JWT token is invalid or malformed."
        raise LoginError(HTTPStatus.UNAUTHORIZED, "invalid_client", 50027, message) from error
    return found
