"""Principals in simulated Entra: the deployer, other users and applications, and user-assigned identities."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import LoginError
from simulator.azure.subscription import Principal
from simulator.azure.types.user_assigned_identity import rules as identities


def application(world: World, client_id: str) -> Principal:
    """Returns the service principal with this client id. Raises LoginError."""
    known = (world.subscription.deployer, *world.subscription.directory.values())
    found = next((each for each in known if each.client_id.lower() == client_id.lower() and not each.upn), None)
    if principal := found or managed_identity(world, client_id):
        return principal
    tenant = world.subscription.tenant_id
    message = f"Application with identifier '{client_id}' was not found in the directory '{tenant}'."
    raise LoginError(HTTPStatus.BAD_REQUEST, "unauthorized_client", 700016, message)


def managed_identity(world: World, client_id: str) -> Principal | None:
    record = identities.of_client(world, client_id)
    return identities.principal(record) if record else None


def user(world: World, name: str) -> Principal:
    """Returns the user with this user principal name. Raises LoginError."""
    found = next((each for each in world.subscription.directory.values() if each.upn == name.lower() != ""), None)
    if found is None:
        tenant = world.subscription.tenant_id
        message = f"The user account {name} does not exist in the {tenant} directory."
        raise LoginError(HTTPStatus.BAD_REQUEST, "invalid_grant", 50034, message)
    return found
