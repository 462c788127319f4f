"""An example of every resource type of simulated Azure, and an update of it, for the SDKs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.support import networks as net
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, cluster_body, pool_body
from tests.support.blob_account import ACCOUNT, IDENTITY, account_body

Body = dict[str, Any]
_ROLES = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Authorization/roleDefinitions"
_READER = f"{_ROLES}/acdd72a7-3385-48ef-bd42-f606fba81ae7"
_WINDOW = {
    "durationHours": 4,
    "startTime": "00:00",
    "schedule": {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 1}},
}
_TRUST = {"issuer": "https://issuer/", "subject": "system:serviceaccount:ai:a", "audiences": ["api://a"]}


_PROVIDERS = f"{GROUP}/providers"
_ZONE = net.zone("privatelink.blob.core.windows.net")


@dataclass(frozen=True)
class Example:
    id: str
    body: Body
    changed: Body | None
    """None if Azure does not support updates."""


def parents() -> dict[str, Body]:
    """Returns the examples' parents, outermost first."""
    place = {"location": "eastus"}
    return {
        GROUP: place,
        CLUSTER: cluster_body(),
        ACCOUNT: account_body(),
        IDENTITY: place,
        net.NETWORK: net.network_body(),
        net.ENDPOINTS: net.subnet_body("10.16.0.0/24"),
        net.BASTION_SUBNET: net.subnet_body("10.16.1.0/26"),
        net.ADDRESS: net.address_body(),
        net.INTERFACE: net.interface_body(),
        _ZONE: {"location": "global"},
        net.endpoint("blob"): net.endpoint_body(ACCOUNT, "blob"),
    }


def _tagged(body: Body, identity: str = "") -> Example:
    """Returns a resource whose tags change; by default `sample` in the group."""
    return Example(identity, body, body | {"tags": {"changed": "yes"}})


_EXAMPLES: dict[str, Example] = {
    "Microsoft.Resources/resourceGroups": _tagged({"location": "eastus"}, GROUP.replace("/rg", "/sample")),
    "Microsoft.ContainerService/managedClusters": _tagged(cluster_body()),
    "Microsoft.ContainerService/managedClusters/agentPools": Example(
        f"{CLUSTER}/agentPools/sample", pool_body(count=1), pool_body(count=2)
    ),
    "Microsoft.ContainerService/managedClusters/maintenanceConfigurations": Example(
        f"{CLUSTER}/maintenanceConfigurations/aksManagedAutoUpgradeSchedule",
        {"properties": {"maintenanceWindow": _WINDOW}},
        {"properties": {"maintenanceWindow": _WINDOW | {"startTime": "06:00"}}},
    ),
    "Microsoft.Authorization/roleAssignments": Example(
        f"{CLUSTER}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001",
        {
            "properties": {
                "principalId": SUBSCRIPTION.object_id,
                "principalType": "ServicePrincipal",
                "roleDefinitionId": _READER,
            }
        },
        None,
    ),
    "Microsoft.ContainerRegistry/registries": Example(
        f"{_PROVIDERS}/Microsoft.ContainerRegistry/registries/sample1",
        {"location": "eastus", "sku": {"name": "Basic"}},
        {"location": "eastus", "sku": {"name": "Premium"}},
    ),
    "Microsoft.Storage/storageAccounts": Example("", account_body(), account_body(allowSharedKeyAccess=False)),
    "Microsoft.Storage/storageAccounts/blobServices/containers": Example(
        f"{ACCOUNT}/blobServices/default/containers/sample",
        {"properties": {"metadata": {"a": "1"}}},
        {"properties": {"metadata": {"a": "2"}}},
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities": _tagged({"location": "eastus"}),
    "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": Example(
        f"{IDENTITY}/federatedIdentityCredentials/sample",
        {"properties": _TRUST},
        {"properties": _TRUST | {"audiences": ["api://b"]}},
    ),
    "Microsoft.Network/virtualNetworks": _tagged(net.network_body()),
    "Microsoft.Network/virtualNetworks/subnets": Example(
        f"{net.NETWORK}/subnets/sample",
        net.subnet_body("10.16.2.0/24"),
        net.subnet_body("10.16.2.0/24", privateEndpointNetworkPolicies="Enabled"),
    ),
    "Microsoft.Network/publicIPAddresses": _tagged(net.address_body()),
    "Microsoft.Network/natGateways": _tagged(net.gateway_body()),
    "Microsoft.Network/routeTables": _tagged(net.routes_body()),
    "Microsoft.Network/privateDnsZones": _tagged({"location": "global"}, net.zone("sample.example")),
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": Example(
        net.link(_ZONE), net.link_body(), net.link_body(resolutionPolicy="NxDomainRedirect")
    ),
    "Microsoft.Network/privateEndpoints": _tagged(net.endpoint_body(ACCOUNT, "dfs")),
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": Example(
        f"{net.endpoint('blob')}/privateDnsZoneGroups/sample", net.group_body(_ZONE), None
    ),
    "Microsoft.Network/networkInterfaces": _tagged(net.interface_body()),
    "Microsoft.Network/bastionHosts": _tagged(net.bastion_body()),
    "Microsoft.Compute/virtualMachines": _tagged(net.machine_body()),
}
EXAMPLES = {name: replace(each, id=each.id or f"{_PROVIDERS}/{name}/sample") for name, each in _EXAMPLES.items()}


def shows(answer: Any, body: Any) -> bool:
    if isinstance(body, dict):
        return isinstance(answer, dict) and all(shows(answer.get(key), value) for key, value in body.items())
    if isinstance(body, list):
        return isinstance(answer, list) and all(map(shows, answer, body))
    return bool(answer == body)
