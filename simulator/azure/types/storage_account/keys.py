"""A storage account's two keys, and whether it accepts keys."""

from __future__ import annotations

import base64
import secrets

from simulator.azure.errors import bad_request, conflict
from simulator.azure.store import Body, Record

NAMES = ("key1", "key2")
REVOKED = "delegationKeysRevoked"
"""The key of a time in an account's facts. User delegation keys from before this time are invalid."""
_BYTES = 64


def made() -> list[str]:
    return [base64.b64encode(secrets.token_bytes(_BYTES)).decode() for _ in NAMES]


def regenerate(record: Record, name: object) -> None:
    """Replaces a key. Raises ArmError for an unknown name."""
    if name not in NAMES:
        message = f"Values for request parameters are invalid: keyName. Allowed: {', '.join(NAMES)}."
        raise bad_request(message, code="InvalidValuesForRequestParameters", target="keyName")
    index = NAMES.index(str(name))
    record.facts["keys"] = [*record.facts["keys"][:index], made()[0], *record.facts["keys"][index + 1 :]]


def listed(record: Record) -> Body:
    pairs = zip(NAMES, record.facts["keys"], strict=True)
    return {"keys": [{"keyName": name, "value": key, "permissions": "FULL"} for name, key in pairs]}


def allowed(record: Record) -> bool:
    found: bool = record.properties.get("allowSharedKeyAccess", True)
    return found


def require_ready(record: Record) -> None:
    """Raises ArmError while an operation on the account is running."""
    if record.busy:
        message = "The storage account provisioning state must be 'Succeeded' before executing the operation."
        raise conflict(message, code="StorageAccountIsNotProvisioned")
