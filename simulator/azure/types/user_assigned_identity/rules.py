"""Managed identities of one's own."""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.ids import parse_id
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.subscription import Principal, guid
from simulator.azure.types import _rules

TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"


class UserAssignedIdentities(Kind):
    """An identity, with the two ids that Entra knows it by."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.place(world, record, body, existing)
        record.body = body
        if existing is None:
            # Another one of the same name is another identity: it has no roles of the first.
            born = str(world.faults.clock())
            record.facts |= {"client": guid(record.id.text, "client", born), "principal": guid(record.id.text, born)}
        world.store.put(record)

    def outputs(self, world: World, record: Record) -> Body:
        return {
            "clientId": record.facts["client"],
            "principalId": record.facts["principal"],
            "tenantId": world.subscription.tenant_id,
        }


KIND = UserAssignedIdentities()


def principal(identity: Record) -> Principal:
    """By whom Entra knows it."""
    return Principal(object_id=identity.facts["principal"], client_id=identity.facts["client"])


def of_client(world: World, client_id: str) -> Record | None:
    """The identity of a client id."""
    return next((found for found in world.store.all(TYPE) if found.facts["client"] == client_id.lower()), None)


def principals(world: World, identity: Body) -> list[str]:
    """Object ids of the identities that a resource's `identity` names; one that is not there has none."""
    found = (world.store.get(parse_id(text)) for text in identity.get("userAssignedIdentities", {}))
    return [record.facts["principal"] for record in found if record]


def shown(world: World, identity: Body) -> Body:
    """A resource's `identity` with the ids of those that it names."""
    if "userAssignedIdentities" not in identity:
        return identity
    ids = {}
    for text in identity["userAssignedIdentities"]:
        record = world.store.get(parse_id(text))
        known = {"clientId": record.facts["client"], "principalId": record.facts["principal"]} if record else {}
        ids[text] = known
    return identity | {"userAssignedIdentities": ids}
