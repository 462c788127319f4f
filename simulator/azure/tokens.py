"""Access tokens of the simulated Entra: JWTs signed with the simulator's own secret, which only it can check."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.azure.subscription import Subscription

LIFETIME_S = 3600
STORAGE = "https://storage.azure.com"
GRAPH = "https://graph.microsoft.com"
"""Nobody answers there: the azure-native plugin reads in a token for it who is signed in (auth_getclientconfig.go)."""


@dataclass(frozen=True)
class Tokens:
    """Issues tokens, and reads them again. `secret` is the simulator's own."""

    secret: str
    subscription: Subscription
    arm: str
    """The endpoint of the Resource Manager, which also is the audience of its tokens."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """What tokens are asked for from outside."""
        return STORAGE, GRAPH, self.arm

    def knows(self, audience: str) -> bool:
        """Whether it is one of ours; clients write it with and without a slash at the end."""
        return audience.rstrip("/") in self.audiences

    def issue(
        self, audience: str, now: float | None = None, *, client_id: str = "", object_id: str = ""
    ) -> tuple[str, int]:
        """A token for one audience (`https://storage.azure.com`), and when it ends (seconds since 1970).

        It is for who is signed in, or for the identity that is named.
        """
        begin = int(time.time() if now is None else now)
        claims = {
            "aud": audience,
            "iss": f"https://sts.windows.net/{self.subscription.tenant_id}/",
            "iat": begin,
            "nbf": begin,
            "exp": begin + LIFETIME_S,
            "appid": client_id or self.subscription.client_id,
            "oid": object_id or self.subscription.object_id,
            "tid": self.subscription.tenant_id,
        }
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{signed}.{self._signature(signed)}", begin + LIFETIME_S

    def principal(self, token: str) -> str | None:
        """The object id of whom a token was issued for; None for a token of somebody else."""
        claims = self.claims(token)
        return None if claims is None else str(claims.get("oid", ""))

    def claims(self, token: str) -> dict[str, Any] | None:
        """What a token says; None for a token of somebody else. Times are not looked at."""
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        try:
            claims: dict[str, Any] = json.loads(_decode(signed.partition(".")[2]))
        except (ValueError, binascii.Error):
            return None
        return claims

    def _signature(self, signed: str) -> str:
        digest = hmac.digest(self.secret.encode(), signed.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
