"""The two keys of a storage account, and when they open it."""

from __future__ import annotations

import base64
import secrets

from simulator.azure.errors import conflict
from simulator.azure.store import Body, Record

NAMES = ("key1", "key2")
_BYTES = 64


def made() -> list[str]:
    """New ones."""
    return [base64.b64encode(secrets.token_bytes(_BYTES)).decode() for _ in NAMES]


def listed(record: Record) -> Body:
    """`listKeys`."""
    pairs = zip(NAMES, record.facts["keys"], strict=True)
    return {"keys": [{"keyName": name, "value": key, "permissions": "FULL"} for name, key in pairs]}


def allowed(record: Record) -> bool:
    """Whether requests signed with the account's keys are let in; unset means yes."""
    found: bool = record.properties.get("allowSharedKeyAccess", True)
    return found


def require_ready(record: Record) -> None:
    """Raises ArmError while an operation on the account goes on."""
    if record.busy:
        message = "The storage account provisioning state must be 'Succeeded' before executing the operation."
        raise conflict(message, code="StorageAccountIsNotProvisioned")
