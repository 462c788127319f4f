"""The node resource group that AKS creates for a cluster, and its scale sets. Read-only.

Shapes: azure-rest-api-specs, VirtualMachineScaleSets_List, VirtualMachineScaleSetVMs_List and _GetInstanceView.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.azure.arm_world import World
from simulator.azure.errors import conflict, not_found
from simulator.azure.ids import GROUP_TYPE, ResourceId
from simulator.azure.rest import PathRequest, Request
from simulator.azure.store import Body, Record
from simulator.azure.types.agent_pool import life, nodes

TYPE = "Microsoft.Compute/virtualMachineScaleSets"
_CLUSTERS = "Microsoft.ContainerService/managedClusters"


def groups(world: World) -> list[Record]:
    return [_group(cluster) for cluster in world.store.all(_CLUSTERS)]


def find(world: World, group: ResourceId) -> Record | None:
    return next((each for each in groups(world) if each.id == group), None)


def check_change(world: World, request: Request, resource: ResourceId) -> None:
    """Raises ArmError (409) for a change of a node resource group. These changes are not simulated.

    Error text for a missing or different `managedBy`: Azure/AKS#1080.
    """
    found = find(world, resource) if resource.type == GROUP_TYPE and request.method not in ("GET", "HEAD") else None
    if found is None:
        return
    owner, body = found.body["managedBy"], request.body if isinstance(request.body, dict) else {}
    if request.method == "PUT" and str(body.get("managedBy")).lower() != owner.lower():
        message = f"The managed by property of the resource group cannot be changed from its current value '{owner}'."
        raise conflict(message, code="ResourceGroupManagedByMismatch")
    raise conflict(f"The resource group '{resource.name}' belongs to {owner}: it changes only with the cluster.")


def scale_sets(world: World, request: PathRequest) -> Body:
    return {"value": [_scale_set(cluster, pool) for cluster, pool in _pools(world, request["group"])]}


def scale_set(world: World, request: PathRequest) -> Body:
    return _scale_set(*_found(world, request))


def machines(world: World, request: PathRequest) -> Body:
    cluster, pool = _found(world, request)
    return {"value": [_machine(cluster, pool, number) for number in life.instances(pool)]}


def instance_view(world: World, request: PathRequest) -> Body:
    cluster, pool = _found(world, request)
    off = life.stopped(cluster) or pool.properties["powerState"] == life.STOPPED
    power, numbers = f"PowerState/{'deallocated' if off else 'running'}", life.instances(pool)
    made = {"code": "ProvisioningState/succeeded", "level": "Info"}
    if "machine" not in request.names:
        counts = [{"code": power, "count": len(numbers)}]
        return {"virtualMachine": {"statusesSummary": counts}, "statuses": [made]}
    if request["machine"] not in map(str, numbers):
        raise not_found(f"{TYPE}/virtualMachines", f"{request['set']}/{request['machine']}", request["group"])
    return {"statuses": [made, {"code": power, "level": "Info"}]}


def _group(cluster: Record) -> Record:
    name, location = cluster.properties["nodeResourceGroup"], cluster.body["location"]
    group = ResourceId(f"/subscriptions/{cluster.id.subscription}", GROUP_TYPE, (name,))
    body = {"location": location, "managedBy": cluster.id.text, "tags": cluster.body.get("tags") or {}}
    return Record(group, body | {"properties": {"provisioningState": "Succeeded"}})


def _pools(world: World, group: str) -> Iterator[tuple[Record, Record]]:
    for cluster in world.store.all(_CLUSTERS):
        if cluster.properties["nodeResourceGroup"].lower() == group.lower():
            yield from ((cluster, pool) for pool in life.of_cluster(world, cluster.id))


def _found(world: World, request: PathRequest) -> tuple[Record, Record]:
    for cluster, pool in _pools(world, request["group"]):
        if _name(pool).lower() == request["set"].lower():
            return cluster, pool
    raise not_found(TYPE, request["set"], request["group"])


def _name(pool: Record) -> str:
    return nodes.scale_set(pool.id.text, pool.id.name)


def _id(cluster: Record, pool: Record) -> str:
    return f"{_group(cluster).id.text}/providers/{TYPE}/{_name(pool)}"


def _scale_set(cluster: Record, pool: Record) -> Body:
    size, priority = pool.properties["vmSize"], pool.properties["scaleSetPriority"]
    own = {"id": _id(cluster, pool), "name": _name(pool), "type": TYPE, "location": cluster.body["location"]}
    profile = {"priority": priority, "osProfile": {"computerNamePrefix": _name(pool)}}
    properties = {"orchestrationMode": "Uniform", "provisioningState": "Succeeded", "virtualMachineProfile": profile}
    return own | {
        "sku": {"name": size, "tier": "Standard", "capacity": len(life.instances(pool))},
        "tags": {"aks-managed-poolName": pool.id.name, **(pool.properties.get("tags") or {})},
        "properties": properties,
    }


def _machine(cluster: Record, pool: Record, number: int) -> Body:
    computer = {"computerName": nodes.node_name(_name(pool), number)}
    return {
        "id": f"{_id(cluster, pool)}/virtualMachines/{number}",
        "instanceId": str(number),
        "name": f"{_name(pool)}_{number}",
        "type": f"{TYPE}/virtualMachines",
        "location": cluster.body["location"],
        "properties": {"osProfile": computer, "provisioningState": "Succeeded"},
    }
