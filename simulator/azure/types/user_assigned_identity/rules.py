"""User-assigned managed identities."""

from __future__ import annotations

import json

from simulator.azure import reservations
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.ids import Path, ResourceId, parse, parse_id
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record
from simulator.azure.subscription import Principal, guid
from simulator.azure.types import _rules

TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"


class UserAssignedIdentities(Kind):
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        record.body = body
        if existing is None:
            # A re-created identity has new ids, so it does not have the old roles.
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
    return Principal(object_id=identity.facts["principal"], client_id=identity.facts["client"])


def of_client(world: World, client_id: str) -> Record | None:
    return next((found for found in world.store.all(TYPE) if found.facts["client"] == client_id.lower()), None)


def principals(world: World, identity: Body) -> list[str]:
    found = (world.store.get(parse_id(text)) for text in identity.get("userAssignedIdentities", {}))
    return [record.facts["principal"] for record in found if record]


def shown(world: World, identity: Body) -> Body:
    if "userAssignedIdentities" not in identity:
        return identity
    ids = {}
    for text in identity["userAssignedIdentities"]:
        record = world.store.get(parse_id(text))
        ids[text] = {"clientId": record.facts["client"], "principalId": record.facts["principal"]} if record else {}
    return identity | {"userAssignedIdentities": ids}


def named(text: str) -> Path | None:
    """Parses the id of an identity. The identity need not exist. Returns None for other text."""
    path = parse(text)
    return path if path and path.type.lower() == TYPE.lower() and not path.tail else None


def check(world: World, resource: ResourceId, identity: Body) -> None:
    """Raises ArmError if a resource's `identity` references an invalid or missing identity.

    Error texts: MicrosoftDocs/azure-docs#112377 (invalid id), Azure/azure-policy#1311 (missing identity).
    """
    for text in identity.get("userAssignedIdentities", {}):
        _rules.linked_id(text, "")
        path = named(text)
        if path is None or not (world.store.get(path.id) or reservations.is_about(world, path)):
            raise failed(resource, f"Resource '{text}' was not found.")


def failed(resource: ResourceId, why: str) -> ArmError:
    """Returns the error of the service that assigns identities to resources."""
    error = {"error": {"code": "BadRequest", "message": why}}
    response = f"Status: 'BadRequest'. Response: '{json.dumps(error, separators=(',', ':'))}'."
    message = f"Identity operation for resource '{resource.text}' failed with error 'Failed to perform resource"
    return bad_request(f"{message} identity operation. {response}'.", code="FailedIdentityOperation")
