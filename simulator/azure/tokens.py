"""Access tokens of the simulated Entra: JWTs in the shape of its version 1.0, signed with RS256.

Whoever has the published keys can check them: the API servers of clusters do. Claims: Entra's page "Access token claims
reference"; names and object ids are those that AKS's guard reads (kubeguard/guard, auth/providers/azure/azure.go).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from simulator.azure.subscription import Principal, Subscription

LIFETIME_S = 3600
STORAGE = "https://storage.azure.com"
GRAPH = "https://graph.microsoft.com"
"""Nobody answers there: the azure-native plugin reads in a token for it who is signed in (auth_getclientconfig.go)."""
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""The API servers of all AKS clusters: an application that is the same in every tenant (Azure/kubelogin)."""


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
        signed = f"{_encode({'alg': 'RS256', 'kid': self._key_id, 'typ': 'JWT'})}.{_encode(claims)}"
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}", begin + LIFETIME_S

    def principal(self, token: str) -> str | None:
        """The object id of whom a token was issued for; None for a token of somebody else."""
        claims = self.claims(token)
        return None if claims is None else str(claims.get("oid", ""))

    def claims(self, token: str) -> dict[str, Any] | None:
        """What a token says; None for a token of somebody else. Times are not looked at."""
        signed, _, signature = token.rpartition(".")
        try:
            self.key.public_key().verify(_decode(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            claims: dict[str, Any] = json.loads(_decode(signed.partition(".")[2]))
        except (InvalidSignature, ValueError, binascii.Error):
            return None
        return claims

    def keys(self) -> dict[str, Any]:
        """The public key, as Entra publishes its own (a JSON Web Key Set)."""
        numbers = self.key.public_key().public_numbers()
        parts = {name: _base64(_bytes(number)) for name, number in (("n", numbers.n), ("e", numbers.e))}
        return {"keys": [{"kty": "RSA", "use": "sig", "kid": self._key_id, **parts}]}

    @cached_property
    def _key_id(self) -> str:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = self.key.public_key().public_bytes(serialization.Encoding.DER, form)
        return _base64(hashlib.sha256(public).digest())


def _encode(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
