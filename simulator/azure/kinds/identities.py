"""Managed identities of one's own, and the credentials by which tokens of other issuers count as theirs."""

from __future__ import annotations

from simulator.azure.errors import bad_request
from simulator.azure.kinds import _rules
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.world import Kind, World, envelope

TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"
CREDENTIALS = f"{TYPE}/federatedIdentityCredentials"


class UserAssignedIdentities(Kind):
    """An identity, with the two ids that Entra knows it by."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.location(world, record.id, body, existing)
        record.body = body
        if existing is None:
            # Another one of the same name is another identity: it has no roles of the first.
            born = str(world.faults.clock())
            record.facts |= {"client": guid(record.id.text, "client", born), "principal": guid(record.id.text, born)}
        world.store.put(record)

    def view(self, world: World, record: Record) -> Body:
        ids = {
            "clientId": record.facts["client"],
            "principalId": record.facts["principal"],
            "tenantId": world.subscription.tenant_id,
        }
        return envelope(record, record.body | {"properties": ids})


class FederatedIdentityCredentials(Kind):
    """One issuer, subject and audience whose tokens count.

    Status and text of the refusal: Azure's page "Important considerations for federated identity credentials". Two that
    are written at once are not refused (ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity there).
    """

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        wanted = body["properties"]
        for other in world.store.all(CREDENTIALS):
            same = all(other.properties[name] == wanted[name] for name in ("issuer", "subject"))
            if same and other.id.parent == record.id.parent and other.id.key != record.id.key:
                message = "Issuer and subject combination already exists for this Managed Identity."
                raise bad_request(message, code="BadRequest")
        record.body = body
        world.store.put(record)

    def view(self, world: World, record: Record) -> Body:
        return envelope(record, record.body)


def of_client(world: World, client_id: str) -> Record | None:
    """The identity of a client id."""
    return next((found for found in world.store.all(TYPE) if found.facts["client"] == client_id.lower()), None)
