"""The interface of resource types: rules, actions, and long-running operations."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulator.azure.arm_world import World
from simulator.azure.errors import in_progress
from simulator.azure.ids import ResourceId
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid

Action = Callable[[World, Record, Mapping[str, str], Body], Body | Record | None]
"""The handler of a POST action. Takes the resource, the query and the request's body. Raises ArmError.

If it returns None, the status is 204, or 202 if an operation started. If it returns a record, clients get the
record's URL.
"""


@dataclass(frozen=True)
class Use:
    """A reference to another resource. Azure does not delete the other resource while it is used."""

    of: str
    """The used resource's id, in any case."""
    by: str
    """The id in error messages, usually the id of a part of the referencing resource."""
    addresses: int = 0
    address: str = ""


@dataclass(frozen=True)
class ZoneRecord:
    """A resource's record in a private DNS zone."""

    zone: ResourceId
    name: str
    """The name relative to the zone."""
    address: str
    of: ResourceId


class Kind(ABC):
    """A resource type with default methods. The caller of `put` first checks the body, the name and the parent."""

    asynchronous: bool = False
    """Whether changes run as operations (`provisioningState`)."""
    creation_alone: bool = False
    """Whether only creation is asynchronous, with polling at a result URL. Other changes end before the response."""
    deleted_later: bool = False
    """Whether only deletion is asynchronous, with polling at a result URL."""
    shown_deleted: bool = False
    """Whether the response to a synchronous deletion contains the resource."""
    patches_tags: bool = True
    """Whether PATCH accepts only tags (`TagsObject` in azure-rest-api-specs)."""
    actions: Mapping[str, Action] = {}
    """POST actions by lower-case name."""

    @abstractmethod
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        """Checks the type's rules, sets `record`'s body and stores it with its children. Raises ArmError.

        `record` is a copy of the existing resource, or new and empty.
        """

    def check_idle(self, world: World, record: Record) -> None:
        """Raises ArmError (409) while a running operation blocks updates."""
        if record.busy:
            raise in_progress(f"operation ({record.state})")

    def check_delete(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Raises ArmError if ARM rejects the deletion. Most types allow it even with children."""

    def uses(self, world: World, record: Record) -> Iterable[Use]:
        """Returns references to other resources."""
        return ()

    def names(self, world: World, record: Record) -> Mapping[str, Sequence[str]]:
        """Returns the resource's public DNS names, by the group id of private endpoints."""
        return {}

    def hosts(self, world: World, record: Record) -> Mapping[str, str]:
        """Returns public DNS names that are never aliases, with the private address or an empty string."""
        return {}

    def unlinkable(self, record: Record) -> str:
        return ""

    def zone_records(self, world: World, record: Record) -> Iterable[ZoneRecord]:
        return ()

    def removed(self, world: World, record: Record) -> None:  # noqa: B027 - most types have nothing
        """Removes the backend. The caller then removes the record. After a kill in between, both run again."""

    def chosen(self, world: World, scope: str, records: Sequence[Record], text: str) -> Sequence[Record]:
        """Returns the records that match the `$filter` in `text`. Raises ArmError."""
        return records

    def outputs(self, world: World, record: Record) -> Body:
        """Returns the properties that ARM adds to those of the request."""
        return {}

    def view(self, world: World, record: Record) -> Body:
        return envelope(record, record.body | {"properties": record.properties | self.outputs(world, record)})

    # -- asynchronous operations ---------------------------------------------------------------------------------------

    def lock_owner(self, resource: ResourceId) -> ResourceId:
        """Returns the resource that serializes the operations of `resource` (a pool's cluster).

        If it is `resource` itself, the backend of `resource` starts with the simulator.
        """
        return resource

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:  # noqa: B027
        """Prepares an operation, which then waits for other operations. Allocates machines. Raises ArmError."""

    def settle(self, world: World, record: Record) -> None:  # noqa: B027
        """Reconciles the backend with the record. Also runs at every start of the simulator."""

    def inline(self, world: World, record: Record) -> Sequence[Record]:
        """Returns inline children. Their operations end with the resource's operation."""
        return ()

    def succeeded(self, world: World, record: Record) -> None:  # noqa: B027
        """Updates the record's facts after a successful operation."""

    def end(self, world: World, record: Record) -> None:  # noqa: B027
        """Stops the backend when deletion begins. The resource and its children are still stored."""


_LOWER_CASE = ("Microsoft.ContainerService/", "Microsoft.ManagedIdentity/")
"""Providers that write `resourcegroups` in lower case in ids (tests/contract/recordings/examples.yaml)."""


def envelope(record: Record, body: Body) -> Body:
    tag = {"etag": etag(record)} if record.id.type.startswith("Microsoft.Network/") else {}
    return {"id": shown_id(record.id), "name": record.id.name, "type": record.id.type, **tag, **body}


def shown_id(resource: ResourceId) -> str:
    is_lower = resource.type.startswith(_LOWER_CASE)
    return resource.text.replace("/resourceGroups/", "/resourcegroups/") if is_lower else resource.text


def etag(record: Record) -> str:
    version = guid(json.dumps(record.body, sort_keys=True), record.id.text)
    return version if record.id.type.startswith("Microsoft.Network/privateDnsZones") else f'W/"{version}"'
