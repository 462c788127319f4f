"""Simulated Entra's access tokens: JWTs in the shape of Entra's version 1.0, signed with RS256.

Clients, such as clusters' API servers, verify tokens with the published keys. Sources of claims: Entra's page "Access
token claims reference"; kubeguard/guard (auth/providers/azure/azure.go), which reads names and object ids.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm
from jwt.types import Options

from simulator.azure.subscription import Principal, Subscription

LIFETIME_S = 3600
STORAGE = "https://storage.azure.com"
GRAPH = "https://graph.microsoft.com"
"""azure-native reads only the caller from Graph tokens (auth_getclientconfig.go)."""
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""The application id of all AKS API servers, in every tenant (Azure/kubelogin)."""
_ALGORITHM = "RS256"
_SIGNATURE_ALONE: Options = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False}


@dataclass(frozen=True)
class Tokens:
    """Issues and verifies tokens. `secret` is the simulator's secret. `key` signs tokens."""

    secret: str
    key: RSAPrivateKey
    subscription: Subscription
    arm: str
    """Resource Manager's endpoint and the audience of its tokens."""

    @property
    def audiences(self) -> tuple[str, ...]:
        return STORAGE, GRAPH, AKS, self.arm

    @property
    def issuer(self) -> str:
        return f"https://sts.windows.net/{self.subscription.tenant_id}/"

    def knows(self, audience: str) -> bool:
        """Returns whether tokens for the audience exist. The audience may end with a slash."""
        return audience.rstrip("/") in self.audiences

    def issue(self, audience: str, principal: Principal | None = None, now: float | None = None) -> tuple[str, int]:
        """Issues a token for an audience (`https://storage.azure.com`) to a principal, by default the deployer.

        Returns the token and its expiry time (seconds since 1970).
        """
        begin, owner = int(time.time() if now is None else now), principal or self.subscription.deployer
        claims = {
            "aud": audience,
            "iss": self.issuer,
            "iat": begin,
            "nbf": begin,
            "exp": begin + LIFETIME_S,
            "appid": owner.client_id,
            "idtyp": "user" if owner.upn else "app",
            "oid": owner.object_id,
            "sub": owner.object_id,
            "tid": self.subscription.tenant_id,
            "ver": "1.0",
        }
        claims |= {"upn": owner.upn} if owner.upn else {}
        claims |= {"groups": list(owner.groups)} if owner.groups else {}
        return jwt.encode(claims, self.key, _ALGORITHM, {"kid": self._jwk["kid"]}), begin + LIFETIME_S

    def principal(self, token: str) -> str | None:
        """Returns the object id of a token's principal, or None for an invalid signature."""
        claims = self.claims(token)
        return None if claims is None else str(claims.get("oid", ""))

    def claims(self, token: str) -> dict[str, Any] | None:
        """Returns a token's claims, or None for an invalid signature. Does not check times."""
        try:
            claims: dict[str, Any] = jwt.decode(token, self.key.public_key(), [_ALGORITHM], options=_SIGNATURE_ALONE)
        except jwt.InvalidTokenError:
            return None
        return claims

    def keys(self) -> dict[str, Any]:
        return {"keys": [self._jwk]}

    @cached_property
    def _jwk(self) -> dict[str, Any]:
        made = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        parts = {name: made[name] for name in ("kty", "n", "e")}
        return {**parts, "use": "sig", "kid": hashlib.sha256(made["n"].encode()).hexdigest()}
