"""The life of pools: which a cluster has, the machines that Azure finds for them, and the nodes that these become."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from config.facts import skus
from simulator.azure import faults, reservations
from simulator.azure.backend import Node
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.store import Record
from simulator.azure.types.agent_pool import nodes
from simulator.azure.world import World

TYPE = "Microsoft.ContainerService/managedClusters/agentPools"
VMS = "vms"
"""Of a pool's facts: for how many machines there was capacity."""
ALLOCATION_S = 3.0
"""How long machines are looked for in vain; on Azure minutes."""


def of_cluster(world: World, cluster: ResourceId) -> list[Record]:
    """The pools of a cluster, in the order in which they were made, without those being deleted."""
    pools = [pool for pool in world.store.within(cluster) if pool.id.type.lower() == TYPE.lower()]
    return sorted((pool for pool in pools if pool.state != "Deleting"), key=lambda pool: int(pool.facts["index"]))


def machines(pool: Record) -> int:
    """How many it has: fewer than its count where Azure had no more."""
    count: int = pool.properties["count"]
    return min(count, int(pool.facts.get(VMS, count)))


def allocate(world: World, pool: Record, pause: Callable[[float], object]) -> None:
    """Finds machines for a pool that changes. Raises ArmError, after a while, where there are none.

    Holds nothing back meanwhile: other pools go on, and the pool itself can be deleted.
    """
    wanted = int(pool.properties["count"])
    needed = wanted > reservations.free(world, pool.properties, pool.id) and wanted > pool.facts.get(VMS, 0)
    if needed and (failure := faults.allocation_failure(world, pool)):
        pause(ALLOCATION_S)
        raise failure
    with world.store.lock:
        if now := world.store.get(pool.id):
            now.facts[VMS] = wanted
            world.store.put(now)


def boot(world: World, cluster: ResourceId) -> Mapping[str, str]:
    """Runs the control plane with the nodes that the pools ask for; what runs already stays.

    Returns why nodes are not there, by their names.
    """
    record = world.store.get(cluster)
    world.backend.create(cluster.text)
    properties = record.properties if record else {}
    world.backend.set_storage(cluster.text, properties.get("storageProfile", {}))
    world.backend.set_admins(cluster.text, (properties.get("aadProfile") or {}).get("adminGroupObjectIDs") or [])
    return world.backend.set_nodes(cluster.text, node_objects(world, cluster))


def check_ready(refused: Mapping[str, str], pool: Record) -> None:
    """Raises ArmError where nodes of this pool are not there. The code is AKS's (Azure/AKS#1412)."""
    own = {name: why for name, why in refused.items() if name.startswith(f"aks-{pool.id.name}-")}
    if own:
        wanted = machines(pool)
        message = f"Not all nodes reached Ready state. Expected: {wanted}, Actual: {wanted - len(own)}. "
        raise bad_request(message + next(iter(own.values())), code="NodesNotReady")


def node_objects(world: World, cluster: ResourceId, counts: Mapping[str, int] | None = None) -> list[Node]:
    """All Node objects that the pools of a cluster ask for; `counts` are others than theirs, by the pools' keys."""
    record = world.store.get(cluster)
    if record is None:
        return []
    found: list[Node] = []
    for pool in of_cluster(world, cluster):
        properties = pool.properties
        version = world.subscription.kubernetes(properties["orchestratorVersion"]) or properties["orchestratorVersion"]
        shape = nodes.Pool(
            id=pool.id.text,
            name=pool.id.name,
            properties=properties | {"count": (counts or {}).get(pool.id.key, machines(pool))},
            location=record.body["location"],
            node_group=record.properties["nodeResourceGroup"],
            kubernetes=version,
            index=int(pool.facts["index"]),
            one_fabric=bool(pool.facts["one_fabric"]),
        )
        found += nodes.manifests(shape, skus.sku(properties["vmSize"]))
    return found
