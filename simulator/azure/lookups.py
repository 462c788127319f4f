"""The table of requests that are not for stored resources: method, path and handler.

Responses have the shapes in azure-rest-api-specs. Docstrings at the handlers name the operations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from simulator.azure import (
    aks_lists,
    authorization,
    faults,
    features,
    locks,
    machines,
    node_group,
    providers,
    quota,
    tenancy,
    vm_sizes,
)
from simulator.azure.arm_world import World
from simulator.azure.errors import not_allowed
from simulator.azure.rest import PathRequest, Request, Response
from simulator.azure.store import Body
from simulator.azure.types.route_table import rules as route_tables

_SUBSCRIPTION = "/subscriptions/{subscription}"
_GROUP = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_PROVIDERS = f"{_SUBSCRIPTION}/providers"
_CLUSTER = f"{_GROUP}/providers/Microsoft.ContainerService/managedClusters/{{cluster}}"
_POOL = f"{_CLUSTER}/agentPools/{{pool}}"
_SCALE_SETS = f"{_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"
_MACHINE = f"{_SCALE_SETS}/{{set}}/virtualMachines/{{machine}}"
_MACHINES = f"{_GROUP}/providers/Microsoft.Compute/virtualMachines"
_ROUTES = f"{_GROUP}/providers/Microsoft.Network/routeTables/{{table}}/routes"
_ROUTE = f"{_ROUTES}/{{route}}"
_PROVIDER = f"{_PROVIDERS}/{{provider}}"
_AKS = "Microsoft.ContainerService"
_FEATURES = f"{_PROVIDERS}/Microsoft.Features"
_FEATURE = f"{_FEATURES}/providers/{{provider}}/features/{{feature}}"
_REGISTRATION = f"{_FEATURES}/featureProviders/{{provider}}/subscriptionFeatureRegistrations/{{feature}}"
_OWN = "Microsoft.Authorization"
_AUTHORIZATION = f"{{scope}}/providers/{_OWN}"
View = Callable[[World, PathRequest], Body | Response]
"""The handler of a row. Returns the response's body. For DELETE, an empty body means 204, else 200 without a body."""


@dataclass(frozen=True)
class Lookup:
    """A row of the table."""

    method: str
    path: str
    """The path with parameters in braces. `{scope}` is a subscription or anything below it."""
    what: str
    """The resource type that defines the allowed API versions."""
    view: View

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.path)
        pattern = ""
        for text, name in zip(parts[::2], [*parts[1::2], ""], strict=True):
            matched = r"/subscriptions/[^/]+(?:/.+?)?" if name == "scope" else "[^/]+"
            pattern += re.escape(text) + (f"(?P<{name}>{matched})" if name else "")
        return re.compile(f"{pattern}/?", re.IGNORECASE)


_TABLE = (
    Lookup("GET", "/tenants", tenancy.ACCOUNT, tenancy.tenants),
    Lookup("GET", "/subscriptions", tenancy.ACCOUNT, tenancy.subscriptions),
    Lookup("GET", _SUBSCRIPTION, tenancy.ACCOUNT, tenancy.subscription),
    Lookup("GET", f"{_SUBSCRIPTION}/locations", tenancy.ACCOUNT, tenancy.locations),
    Lookup("GET", f"{_SUBSCRIPTION}/resources", "Microsoft.Resources", providers.resources),
    Lookup("GET", f"{_GROUP}/resources", "Microsoft.Resources", providers.resources),
    Lookup("GET", _PROVIDERS, providers.TYPE, providers.all_of_them),
    Lookup("GET", _PROVIDER, providers.TYPE, providers.one),
    Lookup("POST", f"{_PROVIDER}/register", providers.TYPE, partial(providers.one, change="Registered")),
    Lookup("POST", f"{_PROVIDER}/unregister", providers.TYPE, partial(providers.one, change="Unregistered")),
    Lookup("GET", f"{_FEATURES}/features", features.TYPE, features.features),
    Lookup("GET", f"{_FEATURES}/providers/{{provider}}/features", features.TYPE, features.features),
    Lookup("GET", _FEATURE, features.TYPE, features.feature),
    Lookup("POST", f"{_FEATURE}/register", features.TYPE, partial(features.feature, change=features.REGISTERED)),
    Lookup("POST", f"{_FEATURE}/unregister", features.TYPE, partial(features.feature, change=features.UNREGISTERED)),
    Lookup("GET", _REGISTRATION, features.TYPE, features.registration),
    Lookup("PUT", _REGISTRATION, features.TYPE, partial(features.registration, change=features.REGISTERED)),
    Lookup("DELETE", _REGISTRATION, features.TYPE, partial(features.registration, change=features.UNREGISTERED)),
    Lookup("GET", f"{_AUTHORIZATION}/locks", locks.TYPE, locks.view),
    Lookup("GET", f"{_AUTHORIZATION}/locks/{{lock}}", locks.TYPE, locks.one),
    Lookup("DELETE", f"{_AUTHORIZATION}/locks/{{lock}}", locks.TYPE, partial(locks.one, delete=True)),
    Lookup("GET", faults.POLICY_ASSIGNMENT, f"{_OWN}/policyAssignments", faults.policy_assignment),
    Lookup("GET", f"{_AUTHORIZATION}/permissions", f"{_OWN}/permissions", authorization.permissions),
    Lookup("GET", f"{_AUTHORIZATION}/roleDefinitions", f"{_OWN}/roleDefinitions", authorization.role_definitions),
    Lookup(
        "GET", f"{_AUTHORIZATION}/roleDefinitions/{{role}}", f"{_OWN}/roleDefinitions", authorization.role_definition
    ),
    Lookup("GET", f"{_PROVIDERS}/Microsoft.Compute/skus", "Microsoft.Compute/skus", vm_sizes.skus),
    Lookup("GET", f"{_PROVIDERS}/Microsoft.Compute/locations/{{region}}/usages", "Microsoft.Compute", quota.view),
    Lookup("GET", f"{_PROVIDERS}/Microsoft.Network/locations/{{region}}/usages", "Microsoft.Network", quota.networks),
    Lookup("GET", _ROUTES, route_tables.TYPE, route_tables.routes),
    Lookup("GET", _ROUTE, route_tables.TYPE, route_tables.route),
    Lookup("PUT", _ROUTE, route_tables.TYPE, route_tables.put_route),
    Lookup("DELETE", _ROUTE, route_tables.TYPE, route_tables.delete_route),
    Lookup("PUT", f"{_MACHINES}/{{machine}}/extensions/{{extension}}", "Microsoft.Compute", machines.run),
    Lookup("POST", f"{_MACHINE}/runCommand", node_group.TYPE, machines.run),
    Lookup("GET", _SCALE_SETS, node_group.TYPE, node_group.scale_sets),
    Lookup("GET", f"{_SCALE_SETS}/{{set}}", node_group.TYPE, node_group.scale_set),
    Lookup("GET", f"{_SCALE_SETS}/{{set}}/instanceView", node_group.TYPE, node_group.instance_view),
    Lookup("GET", f"{_SCALE_SETS}/{{set}}/virtualMachines", node_group.TYPE, node_group.machines),
    Lookup("GET", f"{_MACHINE}/instanceView", node_group.TYPE, node_group.instance_view),
    Lookup("GET", f"{_PROVIDERS}/{_AKS}/locations/{{region}}/kubernetesVersions", _AKS, aks_lists.kubernetes_versions),
    Lookup("GET", f"{_CLUSTER}/upgradeProfiles/default", _AKS, aks_lists.cluster_upgrades),
    Lookup("GET", f"{_POOL}/upgradeProfiles/default", _AKS, aks_lists.pool_upgrades),
    Lookup("GET", f"{_CLUSTER}/commandResults/{{command}}", _AKS, aks_lists.command_result),
    Lookup("GET", f"{_POOL}/machines", _AKS, aks_lists.machines),
    *(
        Lookup(
            "POST", f"{_PROVIDERS}/{of.split('/')[0]}/checkNameAvailability", of, partial(providers.check_name, of=of)
        )
        for of in ("Microsoft.Storage/storageAccounts", "Microsoft.ContainerRegistry/registries")
    ),
)


def find(request: Request) -> tuple[Lookup, PathRequest] | None:
    """Returns a request's row and path parameters, or None. Raises ArmError if the method alone does not match."""
    rows = [(row, found) for row in _TABLE if (found := row.pattern.fullmatch(request.path))]
    for row, found in rows:
        if row.method == request.method:
            return row, PathRequest(found.groupdict(), request.query, request.body, request.caller)
    if rows:
        raise not_allowed(request.method, request.path)
    return None
