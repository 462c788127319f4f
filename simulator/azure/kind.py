"""What a resource type says of itself beyond its shape: its rules, its actions, its life while operations go on."""

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
"""A POST: answers from the resource, the query and the request's body; raises ArmError.

None answers with 204, or with 202 if it has changed the resource's state so that an operation goes on. A record is a
result that clients read at its own path.
"""


@dataclass(frozen=True)
class Use:
    """What a resource uses of another, which Azure does not delete meanwhile."""

    of: str
    """The id of what is used, in any spelling."""
    by: str
    """Who uses it, as refusals name it: mostly a part of the resource."""
    addresses: int = 0
    """Of a subnet: how many it takes."""
    address: str = ""
    """Of a subnet: the one that it has, where it is known."""


@dataclass(frozen=True)
class ZoneRecord:
    """An address that a resource writes in a private DNS zone."""

    zone: ResourceId
    name: str
    """Below the zone's."""
    address: str
    of: ResourceId
    """What answers at the address."""


class Kind(ABC):
    """One resource type. Shape, names and parents were checked before its rules are asked.

    What a type has no rule for stays as it is here.
    """

    asynchronous: bool = False
    """Whether a change goes on after the answer (`provisioningState`). The second half of this class is for these."""
    creation_alone: bool = False
    """Whether of these changes creation alone goes on, and is seen at its result; the others are answered when done."""
    deleted_later: bool = False
    """Whether the deletion alone goes on, and is seen at its result."""
    shown_deleted: bool = False
    """Whether the answer to a deletion that is done at once has the resource; most have no body."""
    patches_tags: bool = True
    """Whether PATCH takes tags and nothing else (`TagsObject` in azure-rest-api-specs)."""
    actions: Mapping[str, Action] = {}
    """By name, in lower case."""

    @abstractmethod
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        """Checks the type's own rules, gives `record` its body and stores it, with what it contains. Raises ArmError.

        `record` is a copy of the existing resource, or an empty new one.
        """

    def check_idle(self, world: World, record: Record) -> None:
        """Raises ArmError (409) where an operation that goes on stands in the way of an update."""
        if record.busy:
            raise in_progress(f"operation ({record.state})")

    def check_delete(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Raises ArmError where ARM refuses to delete it; most it deletes with all that they hold."""

    def uses(self, world: World, record: Record) -> Iterable[Use]:
        """Other resources that it is in or points at (`rooms.uses` asks who does)."""
        return ()

    def names(self, world: World, record: Record) -> Mapping[str, Sequence[str]]:
        """The public names of what it serves, by the groups that private endpoints know them by."""
        return {}

    def hosts(self, world: World, record: Record) -> Mapping[str, str]:
        """Names that public DNS always has as they are, each with its address where that is a private one."""
        return {}

    def unlinkable(self, record: Record) -> str:
        """Why it can have no private endpoint; empty where it can."""
        return ""

    def zone_records(self, world: World, record: Record) -> Iterable[ZoneRecord]:
        """What it writes in private DNS zones."""
        return ()

    def removed(self, world: World, record: Record) -> None:  # noqa: B027 - most types have nothing
        """Removes what is behind it, before the record goes; a second time after a kill in between."""

    def chosen(self, world: World, scope: str, records: Sequence[Record], text: str) -> Sequence[Record]:
        """Those of a list in a scope that a `$filter` is for; by default it does nothing. Raises ArmError."""
        return records

    def outputs(self, world: World, record: Record) -> Body:
        """The properties that it shows beside those that it was given."""
        return {}

    def view(self, world: World, record: Record) -> Body:
        """The resource as a GET answers it, outputs included."""
        return envelope(record, record.body | {"properties": record.properties | self.outputs(world, record)})

    # -- the life of an asynchronous one -------------------------------------------------------------------------------

    def turn(self, resource: ResourceId) -> ResourceId:
        """In whose turn its operations run: one at a time. What has a turn of its own starts with the simulator."""
        return resource

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:  # noqa: B027
        """Looks for what it needs before its turn comes, which holds nobody back. Raises ArmError."""

    def settle(self, world: World, record: Record) -> None:  # noqa: B027
        """Brings what is behind it to what the record says; also at every start of the simulator."""

    def inline(self, world: World, record: Record) -> Sequence[Record]:
        """The children that were written inline in it: an operation on it ends theirs too."""
        return ()

    def succeeded(self, world: World, record: Record) -> None:  # noqa: B027
        """Notes in the record's facts what counts from the end of the operation on."""

    def end(self, world: World, record: Record) -> None:  # noqa: B027
        """Takes down what is behind it, when its deletion begins: it and all in it are still stored."""


_LOWER_CASE = ("Microsoft.ContainerService/", "Microsoft.ManagedIdentity/")
"""The providers that write `resourcegroups` in their ids (tests/contract/recordings/examples.yaml)."""


def envelope(record: Record, body: Body) -> Body:
    """Adds what every resource shows: id, name, type, and an etag if it is a network's."""
    tag = {"etag": etag(record)} if record.id.type.startswith("Microsoft.Network/") else {}
    return {"id": shown_id(record.id), "name": record.id.name, "type": record.id.type, **tag, **body}


def shown_id(resource: ResourceId) -> str:
    """Returns the id as its provider spells it in answers."""
    is_lower = resource.type.startswith(_LOWER_CASE)
    return resource.text.replace("/resourceGroups/", "/resourcegroups/") if is_lower else resource.text


def etag(record: Record) -> str:
    """Returns another one after each change, as Azure's networks and its private DNS zones spell it."""
    version = guid(json.dumps(record.body, sort_keys=True), record.id.text)
    return version if record.id.type.startswith("Microsoft.Network/privateDnsZones") else f'W/"{version}"'
