"""The rules of each resource type that the simulated Resource Manager serves."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.azure.ids import GROUP_TYPE
from simulator.azure.kinds import (
    accounts,
    clusters,
    container_registries,
    containers,
    groups,
    identities,
    maintenance,
    pools,
    roles,
)
from simulator.azure.world import Kind

KINDS: Mapping[str, Kind] = {
    name.lower(): kind
    for name, kind in {
        GROUP_TYPE: groups.ResourceGroups(),
        clusters.TYPE: clusters.ManagedClusters(),
        pools.TYPE: pools.AgentPools(),
        maintenance.TYPE: maintenance.MaintenanceConfigurations(),
        roles.TYPE: roles.RoleAssignments(),
        container_registries.TYPE: container_registries.ContainerRegistries(),
        accounts.TYPE: accounts.StorageAccounts(),
        containers.TYPE: containers.BlobContainers(),
        identities.TYPE: identities.UserAssignedIdentities(),
        identities.CREDENTIALS: identities.FederatedIdentityCredentials(),
    }.items()
}
"""By the name of the type in lower case."""
