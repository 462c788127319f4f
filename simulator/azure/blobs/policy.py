"""Access rules of storage accounts that Azurite does not enforce: account settings and roles.

Azurite checks a SAS's signature, permissions and times, and a token's audience.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.store import Record
from simulator.azure.tokens import Tokens
from simulator.azure.types.role_assignment import allowed as roles
from simulator.azure.types.storage_account import keys
from simulator.azure.types.storage_account import rules as accounts

_READS = ("GET", "HEAD")


@dataclass(frozen=True)
class BlobRequest:
    """A request with a decoded `path`. `authorization` is the value of the header, or empty."""

    method: str
    path: str
    query: Mapping[str, str]
    authorization: str
    content: bytes = b""
    client: int = 0
    """The client's port."""


@dataclass(frozen=True)
class Refusal:
    status: int
    code: str
    message: str


_NO_KEYS = Refusal(
    HTTPStatus.FORBIDDEN,
    "KeyBasedAuthenticationNotPermitted",
    "Key based authentication is not permitted on this storage account.",
)
_NOT_FROM_HERE = Refusal(
    HTTPStatus.FORBIDDEN,
    "AuthorizationFailure",
    "This request is not authorized to perform this operation.",
)
"""The error for public access to a private account (Azure's page on 403 errors of storage accounts)."""
_NO_ROLE = Refusal(
    HTTPStatus.FORBIDDEN,
    "AuthorizationPermissionMismatch",
    "This request is not authorized to perform this operation using this permission.",
)
_REVOKED = Refusal(
    HTTPStatus.FORBIDDEN,
    "AuthenticationFailed",
    "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
    "including the signature.",
)
"""The error for a SAS with a revoked user delegation key (Azure's page "Create a user delegation SAS")."""
_NO_TOKEN = Refusal(
    HTTPStatus.UNAUTHORIZED,
    "InvalidAuthenticationInfo",
    "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
)


_KEY_TOO_LONG = Refusal(
    HTTPStatus.BAD_REQUEST,
    "OutOfRangeInput",
    "One of the request inputs is out of range: a user delegation key expires within 7 days.",
)
_KEY_LIFETIME = datetime.timedelta(days=7)
_EXPIRY = re.compile(rb"<Expiry>([^<]+)</Expiry>")


class Policy:
    """The current rules. Thread-safe."""

    def __init__(
        self, world: World, tokens: Tokens, destination: Callable[[int], ResourceId | None] | None = None
    ) -> None:
        """`destination` maps a client's port to the resource that the client reaches through a private endpoint."""
        self._world, self._tokens = world, tokens
        self._destination = destination or (lambda _: None)

    def refusal(self, request: BlobRequest) -> Refusal | None:
        """Returns the error for a request, or None to forward it."""
        name, _, rest = request.path.strip("/").partition("/")
        account = accounts.named(self._world, name)
        if account is None:
            message = f"The storage account {name} does not exist. In Azure, its host name would not resolve."
            return Refusal(HTTPStatus.NOT_FOUND, "ResourceNotFound", message)
        if not accounts.is_public(account) and self._destination(request.client) != account.id:
            return _NOT_FROM_HERE
        if "skoid" in request.query:
            if _began(request.query.get("skt", "")) < account.facts.get(keys.REVOKED, 0):
                return _REVOKED
            return self._by_role(request, account, rest, request.query["skoid"])
        if "sig" in request.query or request.authorization.startswith("SharedKey"):
            return None if keys.allowed(account) else _NO_KEYS
        if request.authorization.startswith("Bearer "):
            principal = self._tokens.principal(request.authorization.removeprefix("Bearer "))
            return self._by_role(request, account, rest, principal) if principal else _NO_TOKEN
        return None

    def _by_role(self, request: BlobRequest, account: Record, rest: str, principal: str) -> Refusal | None:
        """Checks the roles of `principal`. For a user delegation SAS, this is the owner of the key."""
        container = rest.partition("/")[0]
        scope: ResourceId = account.id
        if container:
            scope = account.id.child("blobServices", "default").child("containers", container)
        action, is_data = roles.READ_BLOBS if request.method in _READS else roles.WRITE_BLOBS, True
        if request.query.get("comp") == "userdelegationkey":
            if _outlives(request.content):
                return _KEY_TOO_LONG
            action, is_data = roles.DELEGATION_KEY, False
        return None if roles.allows(self._world, (principal,), action, scope.text, is_data=is_data) else _NO_ROLE


def _began(text: str) -> float:
    """Returns the time, or infinity if it is missing: Azurite rejects such a SAS."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return math.inf


def _outlives(content: bytes) -> bool:
    found = _EXPIRY.search(content)
    if found is None:
        return False  # Azurite rejects a missing time
    try:
        expiry = datetime.datetime.fromisoformat(found[1].decode())
    except ValueError:
        return False  # Azurite rejects an invalid time
    expiry = expiry if expiry.tzinfo else expiry.replace(tzinfo=datetime.UTC)
    return expiry > datetime.datetime.now(datetime.UTC) + _KEY_LIFETIME
