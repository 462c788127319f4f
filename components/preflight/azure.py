"""Checks, in previews too, for everything that Azure would reject in the middle of an update.

Quota and VM sizes are checked for pools that are created or grow. Providers and rights are checked mainly before the
cluster exists. Available capacity cannot be checked (AllocationFailed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from urllib.parse import quote

import pulumi
from pulumi_azure_native import authorization

from components.azure.cluster import SYSTEM_POOL
from components.azure.roles import ASSIGNED_ROLES, JUMP_BOX_ROLES
from components.preflight import network as preflight_network
from components.preflight.arm import Question, connect, look_up
from components.preflight.existing import Existing
from components.preflight.network import groups_for_roles
from config.rules.subscription import (
    IDENTITY_PROVIDERS,
    PROVIDERS,
    Objection,
    condition_objections,
    provider_objections,
    refusal,
    rights_objections,
    size_objections,
)
from config.rules.vcpu_quota import Growth, growths, quota_objections
from config.schema.models import Settings

_COMPUTE = "/providers/Microsoft.Compute"
_PERMISSIONS = "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01"
_ASSIGNMENTS = "/providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter="


def check_subscription(settings: Settings, existing: Existing, reserved: Mapping[str, int]) -> None:
    """Raises pulumi.RunError with everything that Azure would reject. Warns of failed lookups.

    `reserved` is the number of reserved nodes by pool key.
    """
    report(_objections(settings, existing, reserved))


def check_rights(resource_group: str, region: str) -> None:
    """Raises pulumi.RunError if the deployer lacks rights in a shared platform's resource group. Identities of consumer
    stacks are created there.
    """
    login = authorization.get_client_config()
    group = f"/subscriptions/{login.subscription_id}/resourceGroups/{resource_group}"
    report(look_up(list(_about_rights(group, login.object_id)), connect(region)))


def report(found: Iterable[Objection]) -> None:
    """Logs warnings. Raises pulumi.RunError with everything that stops the update."""
    objections = list(found)
    for each in objections:
        if not each.stops:
            pulumi.log.warn(str(each))
    if why := refusal(objections):
        raise pulumi.RunError(why)


def _objections(settings: Settings, existing: Existing, reserved: Mapping[str, int]) -> Iterator[Objection]:
    growing = growths(settings, existing.pools, SYSTEM_POOL, reserved)
    identities = bool(settings.storage.by_identity())  # later containers and namespaces get roles too
    if existing.cluster and not growing and not identities:
        return
    login = authorization.get_client_config()
    scope = f"/subscriptions/{login.subscription_id}"
    asked = list(_about_pools(settings, growing, scope)) if growing else []
    if existing.cluster is None:
        asked += _about_providers(PROVIDERS, scope)
        asked += (each for group in groups_for_roles(settings) for each in _about_rights(group, login.object_id))
    if existing.cluster is None or identities:
        given = ASSIGNED_ROLES | (JUMP_BOX_ROLES if settings.network.jump_box and existing.cluster is None else {})
        asked += _about_rights(f"{scope}/resourceGroups/{existing.group}", login.object_id, given)
    if identities or (existing.cluster is None and settings.network.own and settings.cluster.identity is None):
        asked += _about_providers(IDENTITY_PROVIDERS, scope)
    arm = connect(settings.location)
    yield from look_up(asked, arm)
    if existing.cluster is None:
        yield from preflight_network.objections(settings, arm)


def _about_pools(settings: Settings, growing: list[Growth], scope: str) -> Iterator[Question]:
    region = settings.location
    pools: dict[str, str] = {}
    for growth in growing:
        name = growth.sku.name
        pools[name] = f"{pools[name]}, {growth.pool}" if name in pools else growth.pool
    yield Question(
        f"vCPU quota of {region}",
        (f"{scope}{_COMPUTE}/locations/{region}/usages?api-version=2024-07-01",),
        lambda answer: quota_objections(growing, answer, settings),
    )
    chosen = quote(f"location eq '{region}'")
    yield Question(
        f"whether {region} offers {', '.join(pools)}",
        (f"{scope}{_COMPUTE}/skus?api-version=2021-07-01&$filter={chosen}",),
        lambda answer: size_objections(pools, answer, region),
    )


def _about_providers(namespaces: Iterable[str], scope: str) -> Iterator[Question]:
    for namespace in namespaces:
        yield Question(
            f"whether the resource provider {namespace} is registered",
            (f"{scope}/providers/{namespace}?api-version=2021-04-01",),
            partial(provider_objections, namespace),
        )


def _about_rights(group: str, deployer: str, given: Mapping[str, str] = ASSIGNED_ROLES) -> Iterator[Question]:
    scope = group.partition("/resourceGroups/")[0]
    yield Question(
        "whether the deployer may assign roles",
        # The group may not exist yet. The subscription's path is not in the specification, but Azure answers it
        # (Azure/azure-rest-api-specs#19473).
        (f"{group}{_PERMISSIONS}", f"{scope}{_PERMISSIONS}"),
        lambda answer: rights_objections(answer, deployer, scope),
    )
    chosen = quote(f"atScope() and assignedTo('{deployer}')")
    yield Question(
        "whether that right has a condition",
        (f"{group}{_ASSIGNMENTS}{chosen}", f"{scope}{_ASSIGNMENTS}{chosen}"),
        lambda answer: condition_objections(answer, given),
    )
