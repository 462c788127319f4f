"""AKS's lists of Kubernetes versions, upgrades and machines, and the results of `az aks command`.

Response shapes: azure-rest-api-specs, ManagedClusters_ListKubernetesVersions, *_GetUpgradeProfile, Machines_List.
"""

from __future__ import annotations

from config.data.versions import versions
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import shown_id
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import life
from simulator.azure.types.agent_pool.nodes import image
from simulator.azure.types.managed_cluster import checks, run_command

_CLUSTERS = "Microsoft.ContainerService/managedClusters"


def kubernetes_versions(world: World, _request: PathRequest) -> Body:
    patches, regular = world.subscription.kubernetes_patches, versions().kubernetes.newest
    values = [
        {
            "version": minor,
            "isDefault": minor == next(iter(patches)),
            "isPreview": False,
            "capabilities": {"supportPlan": ["KubernetesOfficial"] * (minor in regular) + ["AKSLongTermSupport"]},
            "patchVersions": {patch: {"upgrades": _newer(world, patch)}},
        }
        for minor, patch in patches.items()
    ]
    return {"values": values}


def cluster_upgrades(world: World, request: PathRequest) -> Body:
    cluster = _cluster(world, request)
    pools = [_of_pool(world, cluster, pool) | {"name": pool.id.name} for pool in life.of_cluster(world, cluster.id)]
    properties = {"controlPlaneProfile": _upgrades(world, cluster.properties["kubernetesVersion"])}
    return _default(cluster, properties | {"agentPoolProfiles": pools})


def pool_upgrades(world: World, request: PathRequest) -> Body:
    cluster, pool = _cluster(world, request), _pool(world, request)
    latest = image(pool.properties["osSKU"], pool.properties["orchestratorVersion"]).version
    return _default(pool, _of_pool(world, cluster, pool) | {"latestNodeImageVersion": latest})


def machines(world: World, request: PathRequest) -> Body:
    cluster, pool = _cluster(world, request), _pool(world, request)
    nodes = {node["metadata"]["name"]: node for node in life.node_objects(world, cluster.id)}
    return {"value": [_machine(pool, nodes[name]) for name in life.by_node([pool]) if name in nodes]}


def command_result(world: World, request: PathRequest) -> Body:
    result = _rules.found(world, _cluster(world, request).id.child(run_command.RESULTS, request["command"]))
    return {"id": result.id.name, **result.body}


def _newer(world: World, version: str) -> list[str]:
    minors = dict(sorted(world.subscription.kubernetes_patches.items(), key=lambda each: _number(each[0])))
    own = _number(version)
    last = own + checks.longest_step(own)
    return [patch for minor, patch in minors.items() if own <= _number(minor) <= last and patch != version]


def _number(minor: str) -> int:
    return int(minor.split(".")[1])


def _upgrades(world: World, version: str, newest: int = 99) -> Body:
    version = world.subscription.kubernetes(version) or version
    offered = [each for each in _newer(world, version) if _number(each) <= newest]
    upgrades = [{"kubernetesVersion": each, "isPreview": False} for each in offered]
    return {"kubernetesVersion": version, "osType": "Linux", "upgrades": upgrades}


def _of_pool(world: World, cluster: Record, pool: Record) -> Body:
    """Returns a pool's upgrades, at most to the control plane's version (AKS's page on node pool upgrades)."""
    return _upgrades(world, pool.properties["orchestratorVersion"], _number(cluster.properties["kubernetesVersion"]))


def _default(record: Record, properties: Body) -> Body:
    return {
        "id": f"{shown_id(record.id)}/upgradeprofiles/default",
        "name": "default",
        "type": f"{record.id.type}/{'upgradeprofiles' if record.id.type == _CLUSTERS else 'upgradeProfiles'}",
        "properties": properties,
    }


def _machine(pool: Record, node: Body) -> Body:
    addresses = [{"family": "IPv4", "ip": each["address"]} for each in node["status"]["addresses"][:1]]
    name, resource = node["metadata"]["name"], node["spec"]["providerID"].removeprefix("azure://")
    _, zonal, zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"].rpartition("-")
    return {
        **({"zones": [zone]} if zonal else {}),
        "id": f"{pool.id.text}/machines/{name}",
        "name": name,
        "type": f"{pool.id.type}/machines",
        "properties": {"network": {"ipAddresses": addresses}, "resourceId": resource},
    }


def _cluster(world: World, request: PathRequest) -> Record:
    scope = f"/subscriptions/{request['subscription']}/resourceGroups/{request['group']}"
    return _rules.found(world, ResourceId(scope, _CLUSTERS, (request["cluster"],)))


def _pool(world: World, request: PathRequest) -> Record:
    return _rules.found(world, _cluster(world, request).id.child("agentPools", request["pool"]))
