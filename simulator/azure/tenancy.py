"""The tenant, its subscription and regions, in the shapes of Tenants_List and Subscriptions_*."""

from __future__ import annotations

from http import HTTPStatus

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body
from simulator.azure.subscription import Subscription

ACCOUNT = "Microsoft.Resources/subscriptions"
_DISPLAYED = "Simulator"


def check_subscription(subscription: Subscription, subscription_id: str) -> None:
    """Raises ArmError (404) if this is not the simulated subscription."""
    mine = subscription.subscription_id
    if subscription_id.lower() != mine:
        message = f"The subscription '{subscription_id}' could not be found. The simulated one is '{mine}'."
        raise ArmError(HTTPStatus.NOT_FOUND, "SubscriptionNotFound", message)


def tenants(world: World, _request: PathRequest) -> Body:
    tenant = world.subscription.tenant_id
    shown = {"id": f"/tenants/{tenant}", "tenantId": tenant, "tenantCategory": "Home", "tenantType": "AAD"}
    return {"value": [shown | {"displayName": _DISPLAYED}]}


def subscriptions(world: World, request: PathRequest) -> Body:
    return {"value": [subscription(world, request)]}


def subscription(world: World, _request: PathRequest) -> Body:
    known = world.subscription
    return {
        "id": f"/subscriptions/{known.subscription_id}",
        "subscriptionId": known.subscription_id,
        "tenantId": known.tenant_id,
        "displayName": _DISPLAYED,
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }


def locations(world: World, _request: PathRequest) -> Body:
    above, kind = f"/subscriptions/{world.subscription.subscription_id}/locations", {"regionType": "Physical"}
    names = world.subscription.regions
    shown = ({"id": f"{above}/{name}", "name": name, "displayName": name, "metadata": kind} for name in names)
    return {"value": [{**each, "type": "Region", "regionalDisplayName": each["name"]} for each in shown]}
