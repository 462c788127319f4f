"""Entra's part of workload identity: a service account's token for one of the managed identity that it counts as.

Texts: AADSTS700213 and AADSTS700016 as users report them. What is left out is the signature: who asks is the simulated
kubelet, whose cluster's API server has just issued the token.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from simulator.azure.kinds import clusters, identities
from simulator.azure.store import Record
from simulator.azure.tokens import STORAGE, Tokens
from simulator.azure.world import World

_HELP = "https://learn.microsoft.com/entra/workload-id/workload-identity-federation"


class EntraError(PermissionError):
    """Entra's refusal, beginning with its code."""


def exchange(world: World, tokens: Tokens, client_id: str, assertion: str) -> tuple[str, int]:
    """A token for storage, and when it ends (seconds since 1970). Raises EntraError."""
    identity = identities.of_client(world, client_id)
    if identity is None:
        tenant = world.subscription.tenant_id
        raise EntraError(
            f"AADSTS700016: Application with identifier '{client_id}' was not found in the directory '{tenant}'."
        )
    claims = _claims(assertion)
    if not _is_issuer(world, claims.get("iss")) or not any(
        _counts(credential, claims) for credential in world.store.within(identity.id)
    ):
        raise EntraError(
            "AADSTS700213: No matching federated identity record found for presented assertion subject "
            f"'{claims.get('sub')}'. Check your federated identity credential Subject, Audience and Issuer against the "
            f"presented assertion. {_HELP}"
        )
    return tokens.issue(STORAGE, client_id=client_id, object_id=identity.facts["principal"])


def _is_issuer(world: World, issuer: object) -> bool:
    """Whether a cluster answers there with its keys, for Entra to check signatures with."""
    return issuer in [clusters.issuer(world, cluster) for cluster in world.store.all(clusters.TYPE)]


def _counts(credential: Record, claims: dict[str, Any]) -> bool:
    wanted, audiences = credential.properties, claims.get("aud") or []
    named = [audiences] if isinstance(audiences, str) else audiences
    same = wanted["issuer"] == claims.get("iss") and wanted["subject"] == claims.get("sub")
    return same and any(audience in wanted["audiences"] for audience in named)


def _claims(assertion: str) -> dict[str, Any]:
    try:
        part = assertion.split(".")[1]
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, binascii.Error) as error:
        raise EntraError("AADSTS50027: JWT token is invalid or malformed.") from error
    return found
