"""The lifecycle of pools, their machines and nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from config.data import skus
from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.backend import Node
from simulator.azure.errors import bad_request, conflict
from simulator.azure.ids import ResourceId
from simulator.azure.store import Record
from simulator.azure.types.agent_pool import nodes, subnets
from simulator.azure.types.agent_pool.nodes import ADDRESSES_PER_POOL

TYPE = "Microsoft.ContainerService/managedClusters/agentPools"
INSTANCES, NEXT = "instances", "nextInstance"
"""Keys of a pool's facts: the machines' instance numbers in the scale set, and the next instance number."""
STOPPED = {"code": "Stopped"}
_NO_INTERNET = 50
"""Node set-up's exit code if mcr.microsoft.com is not reachable (Azure/AgentBaker, cse_helpers.sh)."""
ALLOCATION_S = 3.0
"""The time until an allocation fails. In Azure, it is minutes."""


def of_cluster(world: World, cluster: ResourceId) -> list[Record]:
    """Returns a cluster's pools, sorted by index, without pools that are being deleted."""
    pools = [pool for pool in world.store.within(cluster) if pool.id.type.lower() == TYPE.lower()]
    return sorted((pool for pool in pools if pool.state != "Deleting"), key=lambda pool: int(pool.facts["index"]))


def instances(pool: Record) -> list[int]:
    """Returns the instance numbers of a pool's machines: fewer than the count if Azure lacked capacity.

    If the count decreases, the highest numbers are removed, as in the default scale-in policy of scale sets (Azure's
    page on these policies). Balancing of zones is not simulated.
    """
    return sorted(pool.facts.get(INSTANCES, ()))[: int(pool.properties["count"])]


def by_node(pools: Iterable[Record]) -> dict[str, tuple[Record, int]]:
    return {
        nodes.node_name(nodes.scale_set(pool.id.text, pool.id.name), number): (pool, number)
        for pool in pools
        for number in instances(pool)
    }


def allocate(world: World, pool: Record, pause: Callable[[float], object]) -> None:
    """Allocates the machines of a changed pool. If machines are missing, waits before the operation fails.

    The wait does not block other pools or this pool's deletion.
    """
    with world.store.lock:
        now = world.store.get(pool.id)
        if now is None:
            return
        there = instances(now)
        more = int(now.properties["count"]) - len(there)
        unreachable = subnets.drops_traffic(world, now.properties)
        left = 0 if unreachable else faults.machines_left(world, now, len(there), spot_machines(world, now))
        _add(now, there, more if left is None else min(more, left))
        world.store.put(now)
    if left is not None and left < more:
        pause(ALLOCATION_S)


def spot_machines(world: World, pool: Record) -> int:
    alike = [
        other
        for other in world.store.all(TYPE)
        if other.properties.get("scaleSetPriority") == "Spot"
        and other.properties["vmSize"] == pool.properties["vmSize"]
        and other.facts.get("location") == pool.facts.get("location")
    ]
    return sum(len(instances(other)) for other in alike)


def remove(world: World, pool: Record, numbers: Collection[int]) -> None:
    """Removes machines from the scale set and reduces the count. A later operation removes the nodes."""
    with world.store.lock:
        if now := world.store.get(pool.id):
            left = [number for number in instances(now) if number not in numbers]
            now.properties["count"] -= len(instances(now)) - len(left)
            now.facts[INSTANCES] = left
            world.store.put(now)


def _add(pool: Record, there: list[int], more: int) -> None:
    """Adds machines. Their instance numbers differ modulo 1024, so that each node has its own IP address.

    Azure guarantees no order and can reuse numbers (Azure's page on instance ids).
    """
    number, taken = int(pool.facts.get(NEXT, max(there, default=-1) + 1)), {each % ADDRESSES_PER_POOL for each in there}
    added: list[int] = []
    while len(added) < more:
        if number % ADDRESSES_PER_POOL not in taken:
            added.append(number)
            taken.add(number % ADDRESSES_PER_POOL)
        number += 1
    pool.facts |= {INSTANCES: [*there, *added], NEXT: number}


def stopped(cluster: Record) -> bool:
    return bool(cluster.properties.get("powerState") == STOPPED)


def check_runs(cluster: Record, doing: str) -> None:
    """Raises ArmError if the cluster is stopped, with AKS's text (MicrosoftDocs/azure-docs#85161)."""
    if stopped(cluster):
        state = f"Provisioning State({cluster.state}) and Power State(Stopped)"
        raise conflict(f"managed cluster is in {state}, {doing} cannot be performed")


def boot(world: World, cluster: ResourceId) -> Mapping[str, str]:
    """Starts the control plane if it does not run, and sets the pools' nodes.

    Returns the reason for each missing node (key: the node's name).
    """
    record = world.store.get(cluster)
    if record and stopped(record):
        return {}
    world.backend.create(cluster.text)
    properties = record.properties if record else {}
    world.backend.set_storage(cluster.text, properties.get("storageProfile", {}))
    world.backend.set_admins(cluster.text, (properties.get("aadProfile") or {}).get("adminGroupObjectIDs") or [])
    return world.backend.set_nodes(cluster.text, node_objects(world, cluster))


def check_ready(refused: Mapping[str, str], pool: Record) -> None:
    """Raises ArmError if nodes of this pool are missing. The code is AKS's (Azure/AKS#1412)."""
    own = {name: why for name, why in refused.items() if name.startswith(f"aks-{pool.id.name}-")}
    if own:
        wanted = len(instances(pool))
        message = f"Not all nodes reached Ready state. Expected: {wanted}, Actual: {wanted - len(own)}. "
        raise bad_request(message + next(iter(own.values())), code="NodesNotReady")


def check_allocated(world: World, pool: Record) -> None:
    """Raises ArmError if a changing pool has fewer machines than its count."""
    if pool.busy and pool.state != "Deleting" and len(instances(pool)) < int(pool.properties["count"]):
        if subnets.drops_traffic(world, pool.properties):
            raise faults.node_setup_failure(_NO_INTERNET)
        raise faults.allocation_failure(world, pool)


def node_objects(world: World, cluster: ResourceId) -> list[Node]:
    record = world.store.get(cluster)
    if record is None:
        return []
    pools = of_cluster(world, cluster)
    return [node for pool in pools for node in _nodes(world, record, pool, instances(pool))]


def template(world: World, cluster: Record, pool: Record) -> Node:
    return _nodes(world, cluster, pool, [int(pool.facts.get(NEXT, int(pool.properties["count"])))])[0]


def _nodes(world: World, cluster: Record, pool: Record, numbers: list[int]) -> list[Node]:
    properties = pool.properties
    version = world.subscription.kubernetes(properties["orchestratorVersion"]) or properties["orchestratorVersion"]
    shape = nodes.Pool(
        id=pool.id.text,
        name=pool.id.name,
        properties=properties,
        location=cluster.body["location"],
        node_group=cluster.properties["nodeResourceGroup"],
        kubernetes=version,
        index=int(pool.facts["index"]),
        instances=numbers,
        one_fabric=bool(pool.facts["one_fabric"]),
    )
    return nodes.manifests(shape, skus.sku(properties["vmSize"]))
