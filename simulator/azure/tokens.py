"""Access tokens of the simulated Entra: JWTs in the shape of its version 1.0, signed with RS256.

Whoever has the published keys can check them: the API servers of clusters do. Claims: Entra's page "Access token claims
reference"; names and object ids are those that AKS's guard reads (kubeguard/guard, auth/providers/azure/azure.go).
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
"""Nobody answers there: the azure-native plugin reads in a token for it who is signed in (auth_getclientconfig.go)."""
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""The API servers of all AKS clusters: an application that is the same in every tenant (Azure/kubelogin)."""
_ALGORITHM = "RS256"
_SIGNATURE_ALONE: Options = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False}


@dataclass(frozen=True)
class Tokens:
    """Issues tokens, and reads them again. `secret` is the simulator's own, `key` what it signs with."""

    secret: str
    key: RSAPrivateKey
    subscription: Subscription
    arm: str
    """The endpoint of the Resource Manager, which also is the audience of its tokens."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """What tokens are asked for from outside."""
        return STORAGE, GRAPH, AKS, self.arm

    @property
    def issuer(self) -> str:
        return f"https://sts.windows.net/{self.subscription.tenant_id}/"

    def knows(self, audience: str) -> bool:
        """Whether it is one of ours; clients write it with and without a slash at the end."""
        return audience.rstrip("/") in self.audiences

    def issue(self, audience: str, principal: Principal | None = None, now: float | None = None) -> tuple[str, int]:
        """A token for one audience (`https://storage.azure.com`), and when it ends (seconds since 1970).

        It is for who is signed in, or for whom is named.
        """
        begin, whose = int(time.time() if now is None else now), principal or self.subscription.deployer
        claims = {
            "aud": audience,
            "iss": self.issuer,
            "iat": begin,
            "nbf": begin,
            "exp": begin + LIFETIME_S,
            "appid": whose.client_id,
            "idtyp": "user" if whose.upn else "app",
            "oid": whose.object_id,
            "sub": whose.object_id,
            "tid": self.subscription.tenant_id,
            "ver": "1.0",
        }
        claims |= {"upn": whose.upn} if whose.upn else {}
        claims |= {"groups": list(whose.groups)} if whose.groups else {}
        return jwt.encode(claims, self.key, _ALGORITHM, {"kid": self._jwk["kid"]}), begin + LIFETIME_S

    def principal(self, token: str) -> str | None:
        """The object id of whom a token was issued for; None for a token of somebody else."""
        claims = self.claims(token)
        return None if claims is None else str(claims.get("oid", ""))

    def claims(self, token: str) -> dict[str, Any] | None:
        """What a token says; None for a token of somebody else. Times are not looked at."""
        try:
            claims: dict[str, Any] = jwt.decode(token, self.key.public_key(), [_ALGORITHM], options=_SIGNATURE_ALONE)
        except jwt.InvalidTokenError:
            return None
        return claims

    def keys(self) -> dict[str, Any]:
        """The public key, as Entra publishes its own (a JSON Web Key Set)."""
        return {"keys": [self._jwk]}

    @cached_property
    def _jwk(self) -> dict[str, Any]:
        made = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        parts = {name: made[name] for name in ("kty", "n", "e")}
        return {**parts, "use": "sig", "kid": hashlib.sha256(made["n"].encode()).hexdigest()}
