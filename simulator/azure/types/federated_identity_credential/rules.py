"""Federated identity credentials, which exchange another issuer's token for a managed identity's token."""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record

TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"


class FederatedIdentityCredentials(Kind):
    """Credentials, each with an accepted issuer, subject and audience.

    Error text: Azure's page "Important considerations for federated identity credentials". The error for concurrent
    writes (ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity) is not simulated.
    """

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        wanted = body["properties"]
        for other in world.store.all(TYPE):
            same = all(other.properties[name] == wanted[name] for name in ("issuer", "subject"))
            if same and other.id.parent == record.id.parent and other.id != record.id:
                message = "Issuer and subject combination already exists for this Managed Identity."
                raise bad_request(message, code="BadRequest")
        record.body = body
        world.store.put(record)


KIND = FederatedIdentityCredentials()
