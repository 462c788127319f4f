"""The life of pools: which a cluster has, the machines that Azure finds for them, and the nodes that these become."""

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
"""Of a pool's facts: the numbers of its machines in the scale set, and from where on new ones are numbered."""
STOPPED = {"code": "Stopped"}
_NO_WAY_OUT = 50
"""The exit code of a node's set-up that does not reach mcr.microsoft.com (Azure/AgentBaker, cse_helpers.sh)."""
ALLOCATION_S = 3.0
"""How long machines are looked for in vain; on Azure minutes."""


def of_cluster(world: World, cluster: ResourceId) -> list[Record]:
    """The pools of a cluster, in the order in which they were made, without those being deleted."""
    pools = [pool for pool in world.store.within(cluster) if pool.id.type.lower() == TYPE.lower()]
    return sorted((pool for pool in pools if pool.state != "Deleting"), key=lambda pool: int(pool.facts["index"]))


def instances(pool: Record) -> list[int]:
    """Its machines: fewer than its count where Azure had no more.

    Of a count that becomes less those with the highest numbers go, as by scale sets' default policy (Azure's page on
    scale-in policies; that it balances zones first is not simulated).
    """
    return sorted(pool.facts.get(INSTANCES, ()))[: int(pool.properties["count"])]


def by_node(pools: Iterable[Record]) -> dict[str, tuple[Record, int]]:
    """The pool and the number in its scale set of all machines, by the names of their nodes."""
    return {
        nodes.node_name(nodes.scale_set(pool.id.text, pool.id.name), number): (pool, number)
        for pool in pools
        for number in instances(pool)
    }


def allocate(world: World, pool: Record, pause: Callable[[float], object]) -> None:
    """Finds machines for a pool that changes: as many as there are, and the last ones are looked for a while.

    Holds nothing back meanwhile: other pools go on, and the pool itself can be deleted.
    """
    with world.store.lock:
        now = world.store.get(pool.id)
        if now is None:
            return
        there = instances(now)
        more = int(now.properties["count"]) - len(there)
        nowhere = subnets.leads_nowhere(world, now.properties)
        left = 0 if nowhere else faults.machines_left(world, now, len(there), spot_machines(world, now))
        _add(now, there, more if left is None else min(more, left))
        world.store.put(now)
    if left is not None and left < more:
        pause(ALLOCATION_S)


def spot_machines(world: World, pool: Record) -> int:
    """How many Spot machines of its size there are in its region, in all pools."""
    alike = [
        other
        for other in world.store.all(TYPE)
        if other.properties.get("scaleSetPriority") == "Spot"
        and other.properties["vmSize"] == pool.properties["vmSize"]
        and other.facts.get("location") == pool.facts.get("location")
    ]
    return sum(len(instances(other)) for other in alike)


def remove(world: World, pool: Record, numbers: Collection[int]) -> None:
    """Takes machines out of the pool's scale set, which has so many fewer then. The nodes go with an operation."""
    with world.store.lock:
        if now := world.store.get(pool.id):
            left = [number for number in instances(now) if number not in numbers]
            now.properties["count"] -= len(instances(now)) - len(left)
            now.facts[INSTANCES] = left
            world.store.put(now)


def _add(pool: Record, there: list[int], more: int) -> None:
    """New numbers, none of them used before: an address is its node's alone, and each has one for each 1024 numbers.

    Azure promises no order, and may use numbers again (its page on instance ids).
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
    """Whether `az aks stop` has stopped it."""
    return bool(cluster.properties.get("powerState") == STOPPED)


def check_runs(cluster: Record, doing: str) -> None:
    """Raises ArmError for a cluster that is stopped, with AKS's words (MicrosoftDocs/azure-docs#85161)."""
    if stopped(cluster):
        state = f"Provisioning State({cluster.state}) and Power State(Stopped)"
        raise conflict(f"managed cluster is in {state}, {doing} cannot be performed")


def boot(world: World, cluster: ResourceId) -> Mapping[str, str]:
    """Runs the control plane with the nodes that the pools ask for; what runs already stays.

    Returns why nodes are not there, by their names.
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
    """Raises ArmError where nodes of this pool are not there. The code is AKS's (Azure/AKS#1412)."""
    own = {name: why for name, why in refused.items() if name.startswith(f"aks-{pool.id.name}-")}
    if own:
        wanted = len(instances(pool))
        message = f"Not all nodes reached Ready state. Expected: {wanted}, Actual: {wanted - len(own)}. "
        raise bad_request(message + next(iter(own.values())), code="NodesNotReady")


def check_allocated(world: World, pool: Record) -> None:
    """Raises ArmError for a pool that changes where Azure had fewer machines than it asks for."""
    if pool.busy and pool.state != "Deleting" and len(instances(pool)) < int(pool.properties["count"]):
        if subnets.leads_nowhere(world, pool.properties):
            raise faults.node_setup_failure(_NO_WAY_OUT)
        raise faults.allocation_failure(world, pool)


def node_objects(world: World, cluster: ResourceId) -> list[Node]:
    """All Node objects that the pools of a cluster ask for."""
    record = world.store.get(cluster)
    if record is None:
        return []
    pools = of_cluster(world, cluster)
    return [node for pool in pools for node in _nodes(world, record, pool, instances(pool))]


def template(world: World, cluster: Record, pool: Record) -> Node:
    """A node as the pool would make one."""
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
