"""Settings -> platform -> workloads -> outputs."""

from __future__ import annotations

import pulumi

import workloads
from components.platform import Platform
from config import loader


def main() -> None:
    """Declares everything of the stack."""
    known = workloads.find()
    settings = loader.load(known)
    platform = Platform("platform", settings)
    context = platform.context()
    deployed = {name: known[name].deploy(context, placement) for name, placement in settings.placements.items()}

    pulumi.export("resourceGroup", platform.cluster.resource_group)
    pulumi.export("clusterName", platform.cluster.name)
    pulumi.export("clusterId", platform.cluster.id)
    pulumi.export("kubeconfig", platform.access.kubeconfig)  # secret
    pulumi.export("pools", {key: pool.agent_pool for key, pool in platform.pools.pools.items()})  # ARM names by key
    pulumi.export("workloads", {name: found.outputs() for name, found in deployed.items()})  # where, and what shows it


main()
