"""Storage accounts: names and access. The blob service stores blobs.

Error texts are Azure's if its documentation or an issue quotes them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request, conflict
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.private_endpoint import rules as endpoints
from simulator.azure.types.storage_account import keys, service_sas

TYPE = "Microsoft.Storage/storageAccounts"
CONTAINERS = f"{TYPE}/blobServices/containers"
FILES = "FileStorage"
"""The kind with only file shares (Azure's overview of storage accounts)."""
_KEPT_SKUS = {"Standard_ZRS", "Premium_LRS", "Premium_ZRS"}
"""SKUs that an update cannot change from or to (Azure's REST reference, StorageAccountUpdateParameters)."""


class StorageAccounts(Kind):
    """Accounts, each with two keys."""

    asynchronous = True
    patches_tags = False
    creation_alone = True  # REST specification: PUT returns 202 or 200, DELETE 200 or 204
    actions = {
        "listkeys": lambda _world, record, _query, _body: keys.listed(record),
        "regeneratekey": lambda world, record, _query, body: _regenerate_key(world, record, body),
        "revokeuserdelegationkeys": lambda world, record, _query, _body: _revoke_delegation_keys(world, record),
        "listservicesas": lambda _world, record, _query, body: service_sas.issue(record, body),
    }

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        if existing and "isHnsEnabled" in existing.properties:
            body["properties"].setdefault("isHnsEnabled", existing.properties["isHnsEnabled"])
        _check_kind(body, existing)
        if existing is None:
            _check_name(world, record.id)
            record.facts |= {"keys": keys.made()}
            if body["kind"] != FILES:
                world.store.put(Record(record.id.child("blobServices", "default"), {}))
        if body["kind"] == "StorageV2":
            body["properties"].setdefault("accessTier", "Hot")
        body["properties"]["provisioningState"] = "ResolvingDNS" if existing is None else "Updating"
        record.body, record.error = body, None
        world.store.put(record)

    def settle(self, world: World, record: Record) -> None:
        """Serves the account. Re-creates the containers, because a killed Azurite may have lost them."""
        world.blobs.set_accounts(lambda: _served(world))
        service = record.id.child("blobServices", "default")
        for container in world.store.all(CONTAINERS):
            if container.id.parent == service:
                world.blobs.create_container(record.id.name, container.id.name)

    def removed(self, world: World, record: Record) -> None:
        if not has_blobs(record):
            return
        world.blobs.set_accounts(lambda: _served(world))
        world.blobs.clear(record.id.name)
        world.blobs.set_accounts(lambda: _served(world, without=record.id))

    def names(self, world: World, record: Record) -> Mapping[str, Sequence[str]]:
        groups = ("blob", "dfs") if has_blobs(record) else ("file",)
        return {group: [f"{record.id.name}.{group}.core.windows.net"] for group in groups}

    def view(self, world: World, record: Record) -> Body:
        sku = record.body["sku"]
        return super().view(world, record) | {"sku": sku | {"tier": sku["name"].partition("_")[0]}}

    def outputs(self, world: World, record: Record) -> Body:
        created = _rules.created_at(record)
        service = {"enabled": True, "keyType": "Account", "lastEnabledTime": created}
        return {
            "creationTime": created,
            "encryption": record.properties["encryption"] | {"services": {"blob": service, "file": service}},
            "keyCreationTime": dict.fromkeys(keys.NAMES, created),
            "primaryEndpoints": _endpoints(world, record),
            "primaryLocation": record.body["location"],
            "privateEndpointConnections": endpoints.connections(world, record.id, "actionRequired"),
            "statusOfPrimary": "available",
        }


KIND = StorageAccounts()


def _regenerate_key(world: World, record: Record, body: Body) -> Body:
    keys.regenerate(record, body.get("keyName"))
    world.store.put(record)
    if has_blobs(record):
        world.blobs.set_accounts(lambda: _served(world))
    return keys.listed(record)


def _revoke_delegation_keys(world: World, record: Record) -> Body:
    record.facts[keys.REVOKED] = time.time()
    world.store.put(record)
    return {}


def named(world: World, name: str) -> Record | None:
    """Returns the account with this name in any group, or None if it does not exist or is being deleted."""
    found = _rules.named(world, TYPE, name)
    return found if found and found.state != "Deleting" else None


def has_blobs(record: Record) -> bool:
    """Returns whether the blob service serves the account. File shares exist only as mounts."""
    return bool(record.body["kind"] != FILES)


def is_public(record: Record) -> bool:
    """Returns whether access is possible without private endpoints."""
    return record.properties.get("publicNetworkAccess") != "Disabled"


def _endpoints(world: World, record: Record) -> Body:
    """Returns the simulator's blob URL for a public account with blobs, else Azure's URLs."""
    if has_blobs(record) and is_public(record):
        return {"blob": f"{world.blobs.endpoint}/{record.id.name}/"}
    return {group: f"https://{names[0]}/" for group, names in KIND.names(world, record).items()}


def _served(world: World, without: ResourceId | None = None) -> dict[str, list[str]]:
    accounts = [record for record in world.store.all(TYPE) if record.id != without]
    return {record.id.name: record.facts["keys"] for record in accounts if has_blobs(record)}


def _check_name(world: World, resource: ResourceId) -> None:
    if _rules.named(world, TYPE, resource.name):
        message = f"The storage account named {resource.name} already exists under the subscription."
        raise conflict(message, code="StorageAccountAlreadyExists")
    if _rules.taken_elsewhere(world, resource):
        raise conflict(
            f"The storage account named {resource.name} is already taken.", code="StorageAccountAlreadyTaken"
        )


def _check_kind(body: Body, existing: Record | None) -> None:
    """Error text for a changed SKU: hashicorp/terraform-provider-azurerm#110."""
    kind, sku = body["kind"], body["sku"]["name"]
    has = existing.body["sku"]["name"] if existing else sku
    if has != sku and {has, sku} & _KEPT_SKUS:
        code = "StorageAccountTypeConversionNotAllowed"
        raise bad_request(f"Storage account type cannot be changed to {sku}.", code=code)
    message = None
    if kind in ("BlockBlobStorage", FILES) and not sku.startswith("Premium"):
        message = f"The account kind {kind} needs a premium sku (Premium_LRS, Premium_ZRS), not {sku}."
    elif kind == "StorageV2" and sku == "Premium_ZRS":
        message = f"The sku {sku} is offered for the account kinds BlockBlobStorage and FileStorage, not for {kind}."
    if message:
        raise bad_request(message, code="InvalidValuesForRequestParameters", target="sku.name")
