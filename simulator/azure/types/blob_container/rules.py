"""Blob containers of storage accounts."""

from __future__ import annotations

import hashlib

from simulator.azure.arm_world import World
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.storage_account import rules as accounts
from simulator.azure.types.storage_account.keys import require_ready

TYPE = accounts.CONTAINERS


class BlobContainers(Kind):
    """Containers. The same request creates or deletes the container in the blob service."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        account = _rules.found(world, record.id.parent.parent)
        require_ready(account)
        world.blobs.create_container(account.id.name, record.id.name)
        record.body = body
        world.store.put(record)

    def removed(self, world: World, record: Record) -> None:
        world.blobs.delete_container(record.id.parent.parent.name, record.id.name)

    def view(self, world: World, record: Record) -> Body:
        made = self.outputs(world, record)["lastModifiedTime"]
        tag = hashlib.sha256(f"{record.id.key} {made}".encode()).hexdigest()[:15].upper()
        return super().view(world, record) | {"etag": f'"0x{tag}"'}

    def outputs(self, world: World, record: Record) -> Body:
        return {
            "deleted": False,
            "hasImmutabilityPolicy": False,
            "hasLegalHold": False,
            "lastModifiedTime": _rules.created_at(record, microsecond=0),
            "leaseState": "Available",
            "leaseStatus": "Unlocked",
            "legalHold": {"hasLegalHold": False, "tags": []},
            "remainingRetentionDays": 0,
        }


KIND = BlobContainers()
