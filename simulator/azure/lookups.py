"""Lookups in a subscription that are not resources: vCPUs, VM sizes, resource providers, rights, locks.

In the shapes of azure-rest-api-specs: Tenants_List, Subscriptions_List and _Get, Usage_List, Providers_Get,
ListAvailableResourceSkusForARegion, and Permissions_ListForResourceGroup, which a subscription answers too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from config.facts.skus import VmSku, catalogue
from simulator.azure import locks, quota
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, Problem, bad_request
from simulator.azure.ids import Path
from simulator.azure.store import Body
from simulator.azure.subscription import Subscription

_FILTER = re.compile(r"location eq '(\w+)'")
_SIZES = ("microsoft.compute", "skus")
_USAGES = ("microsoft.compute/locations", "usages")
_DISPLAYED = "Simulator"
ACCOUNT = "Microsoft.Resources/subscriptions"
_RIGHTS, _LOCKS = ("microsoft.authorization", "permissions"), ("microsoft.authorization", "locks")


@dataclass(frozen=True)
class Lookup:
    """One of them; `view` makes the answer, of the request's query."""

    what: str
    api_versions: tuple[str, ...]
    view: Callable[[Mapping[str, str]], Body]


def above_groups(subscription: Subscription, path: str) -> Lookup | None:
    """What the path of a tenant's lists, or of a subscription, looks up; None for others. Raises ArmError."""
    match [part.lower() for part in path.split("/") if part]:
        case ["tenants"]:
            tenant = {"tenantId": subscription.tenant_id, "tenantCategory": "Home", "displayName": _DISPLAYED}
            found: Body = {"value": [{"id": f"/tenants/{subscription.tenant_id}", **tenant}]}
        case ["subscriptions"]:
            found = {"value": [_subscription(subscription)]}
        case ["subscriptions", asked]:
            check_subscription(subscription, asked)
            found = _subscription(subscription)
        case _:
            return None
    return Lookup(ACCOUNT, ("2022-12-01",), lambda _: found)


def check_subscription(subscription: Subscription, asked: str) -> None:
    """Raises ArmError (404) for another one."""
    mine = subscription.subscription_id
    if asked.lower() != mine:
        message = f"The subscription '{asked}' could not be found. The simulated one is '{mine}'."
        raise ArmError(HTTPStatus.NOT_FOUND, "SubscriptionNotFound", message)


def find(world: World, path: Path) -> Lookup | None:
    """What a path looks up; None where it is of a resource. Raises ArmError."""
    subscription = world.subscription
    kind = (path.type.lower(), path.tail.lower())
    if kind == _USAGES and path.names:
        region = path.names[-1].lower()
        return Lookup("Microsoft.Compute/locations/usages", ("2024-07-01",), lambda _: quota.view(world, region))
    if kind == _SIZES:
        return Lookup("Microsoft.Compute/skus", ("2021-07-01",), lambda query: _sizes(subscription, query))
    if kind == _RIGHTS:
        rights = {"value": [dict(role) for role in subscription.rights]}
        return Lookup("Microsoft.Authorization/permissions", ("2022-04-01",), lambda _: rights)
    if kind == _LOCKS:
        return Lookup(locks.TYPE, locks.API_VERSIONS, lambda _: locks.view(world, path))
    if "/" not in path.type and not path.tail:
        return Lookup("Microsoft.Resources/providers", ("2021-04-01",), lambda _: _provider(subscription, path.type))
    return None


def check_registered(subscription: Subscription, resource_type: str) -> None:
    """Raises ArmError (409) for a resource of a provider that is not registered."""
    namespace = resource_type.partition("/")[0]
    if subscription.providers.get(namespace, "Registered") in ("Registered", "Registering"):
        return
    code = "MissingSubscriptionRegistration"
    message = (
        f"The subscription is not registered to use namespace '{namespace}'. "
        "See https://aka.ms/rps-not-found for how to register subscriptions."
    )
    raise ArmError(HTTPStatus.CONFLICT, code, message, details=[Problem(namespace, message, code)])


def _subscription(subscription: Subscription) -> Body:
    return {
        "id": f"/subscriptions/{subscription.subscription_id}",
        "subscriptionId": subscription.subscription_id,
        "tenantId": subscription.tenant_id,
        "displayName": _DISPLAYED,
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }


def _provider(subscription: Subscription, namespace: str) -> Body:
    found = next((name for name in subscription.providers if name.lower() == namespace.lower()), None)
    if found is None:
        message = f"The resource namespace '{namespace}' is invalid, or not simulated."
        raise ArmError(HTTPStatus.NOT_FOUND, "InvalidResourceNamespace", message)
    return {
        "id": f"/subscriptions/{subscription.subscription_id}/providers/{found}",
        "namespace": found,
        "registrationPolicy": "RegistrationRequired",
        "registrationState": subscription.providers[found],
        "resourceTypes": [],
    }


def _sizes(subscription: Subscription, query: Mapping[str, str]) -> Body:
    chosen = query.get("$filter")
    match = _FILTER.fullmatch(chosen) if chosen else None
    if chosen and match is None:
        raise bad_request(f"The filter '{chosen}' is not supported; only location eq '<region>' is.")
    wanted = [match[1].lower()] if match else list(subscription.regions)
    regions = [region for region in wanted if region in subscription.regions]
    return {"value": [view for region in regions for view in _of_region(subscription, region)]}


def _of_region(subscription: Subscription, region: str) -> Iterator[Body]:
    for sku in catalogue().values():
        restricted = sku.family in subscription.restricted.get(region, ())
        if restricted or subscription.offers(sku, region):
            yield _size(sku, region, restricted=restricted)


def _size(sku: VmSku, region: str, *, restricted: bool) -> Body:
    where = {"type": "Location", "values": [region], "restrictionInfo": {"locations": [region]}}
    tier, _, size = sku.name.partition("_")
    numbers = {"vCPUs": sku.vcpus, "MemoryGB": sku.memory_gib, "GPUs": sku.gpus}
    return {
        "resourceType": "virtualMachines",
        "name": sku.name,
        "tier": tier,
        "size": size,
        "family": sku.family,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": [], "zoneDetails": []}],
        "capabilities": [{"name": name, "value": str(number)} for name, number in numbers.items() if number],
        "restrictions": [{**where, "reasonCode": "NotAvailableForSubscription"}] if restricted else [],
    }
