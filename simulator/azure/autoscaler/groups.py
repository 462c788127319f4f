"""Pools as the autoscaler sees them, and what it asks of Azure for them (cluster-autoscaler/cloudprovider/azure)."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

from config.data import skus
from config.data.scheduling import AGENT_POOL_LABEL, GPU_RESOURCE
from k8s.objects import Object, condition
from k8s.resources import allocatable
from simulator.azure import faults, quota
from simulator.azure.arm_world import World
from simulator.azure.operations import Operations
from simulator.azure.store import Record
from simulator.azure.types.agent_pool import life, nodes

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
"""Taint of a node that goes (cluster-autoscaler/utils/taints)."""
_TEMPLATE = "k8s.io_cluster-autoscaler_node-template_resources_"
GPU_LABEL = "kubernetes.azure.com/accelerator"
"""Label of nodes with GPUs (cluster-autoscaler/cloudprovider/azure/azure_cloud_provider.go)."""


@dataclass(frozen=True)
class Group:
    """A pool that is scaled, with its registered nodes."""

    pool: Record
    nodes: tuple[Object, ...]
    template: Object
    """A node as the pool would make one, with the devices that its drivers will offer."""
    starting: Set[str]
    """Names of new nodes that are not ready yet, of all pools."""

    @property
    def id(self) -> str:
        """What the priority expander's patterns are held to: the name of the scale set."""
        return nodes.scale_set(self.pool.id.text, self.pool.id.name)

    @property
    def target(self) -> int:
        return int(self.pool.properties["count"])

    @property
    def least(self) -> int:
        return int(self.pool.properties["minCount"])

    @property
    def most(self) -> int:
        return int(self.pool.properties["maxCount"])

    @property
    def started(self) -> list[Object]:
        """Nodes that are or have been ready, or have taken too long to become so."""
        return [node for node in self.nodes if node["metadata"]["name"] not in self.starting]

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(map(is_ready, self.nodes))

    @property
    def upcoming(self) -> int:
        """Nodes that are requested and have not started yet, registered or not (clusterstate.go, GetUpcomingNodes)."""
        return max(self.target - len(self.started), 0)

    @property
    def failed(self) -> bool:
        """Whether Azure has found fewer machines than were asked for, and looks no more."""
        return not self.pool.busy and len(life.instances(self.pool)) < self.target


def is_scaled(pool: Record) -> bool:
    properties = pool.properties
    return bool(properties.get("enableAutoScaling")) and properties.get("powerState", {}).get("code") != "Stopped"


def groups(world: World, cluster: Record, found: Iterable[Object], starting: Set[str]) -> list[Group]:
    """Returns the autoscaled pools of a cluster; `starting` are the nodes that are new and not ready."""
    there = list(found)
    scaled = [pool for pool in life.of_cluster(world, cluster.id) if is_scaled(pool)]
    return [
        Group(
            pool,
            tuple(node for node in there if node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL) == pool.id.name),
            _whole(pool, life.template(world, cluster, pool)),
            starting,
        )
        for pool in scaled
    ]


def _whole(pool: Record, node: Object) -> Object:
    """Returns the node with the devices that its drivers will offer.

    The VM size gives the GPUs; tags of the pool give other devices.
    """
    sku = skus.sku(pool.properties["vmSize"])
    tags = pool.properties.get("tags") or {}
    devices = {
        name.removeprefix(_TEMPLATE).replace("_", "/", 1): count for name, count in tags.items() if _TEMPLATE in name
    }
    if sku.gpu_vendor == "nvidia":
        devices[GPU_RESOURCE] = str(sku.gpus)
    made = copy.deepcopy(node)
    lacking = {name: count for name, count in devices.items() if not allocatable(node, name)}
    made["status"]["allocatable"] = made["status"].get("allocatable", {}) | lacking
    return made


def is_ready(node: Object) -> bool:
    """Returns whether the autoscaler counts a node as ready, which needs GPUs if it is labelled as having some."""
    return condition(node, "Ready").get("status") == "True" and not lacks_gpus(node)


def lacks_gpus(node: Object) -> bool:
    """Returns whether a GPU node offers no GPUs, such as one whose driver is being built.

    Source: cluster-autoscaler/processors/customresources/gpu_processor.go.
    """
    return GPU_LABEL in node["metadata"].get("labels", {}) and not allocatable(node, GPU_RESOURCE)


def increase(world: World, operations: Operations, group: Group, count: int) -> bool:
    """Asks for so many nodes in all; False where something else goes on there. Raises ArmError where Azure refuses.

    Azure refuses at once if quota is short or requests are too many. A lack of machines shows later (`Group.failed`).
    """
    with world.store.lock:
        now = _idle(world, group.pool)
        if now is None or now.properties["count"] >= count:
            return False
        faults.check_rate(world, "PUT")
        now.properties["count"] = count
        size = skus.sku(now.properties["vmSize"])
        quota.check(world, now.id, now.facts["location"], size, now.properties, compute=True)
        _begin(world, operations, now)
    return True


def give_up(world: World, operations: Operations, group: Group) -> bool:
    """Asks no more for the machines that Azure has not found."""
    with world.store.lock:
        if now := _idle(world, group.pool):
            now.properties["count"] = len(life.instances(now))
            _begin(world, operations, now)
    return now is not None


def delete(world: World, operations: Operations, group: Group, names: Collection[str]) -> bool:
    """Has these nodes' machines deleted, and no others."""
    with world.store.lock:
        if _idle(world, group.pool) is None:
            return False
        numbers = {number for name, (_, number) in life.by_node([group.pool]).items() if name in names}
        life.remove(world, group.pool, numbers)
        if now := world.store.get(group.pool.id):
            _begin(world, operations, now)
    return True


def _idle(world: World, pool: Record) -> Record | None:
    """The pool as it is now; None while ARM changes it or its cluster."""
    now, parent = world.store.get(pool.id), pool.id.parent
    cluster = world.store.get(parent) if parent else None
    busy = now is None or now.busy or cluster is None or cluster.busy
    return None if busy else now


def _begin(world: World, operations: Operations, pool: Record) -> None:
    """Finds machines for the pool and starts their nodes.

    The autoscaler changes the scale set (azure_scale_set.go), not the pool in ARM: the pool's state stays as it is, so
    that ARM refuses no update meanwhile.
    """
    world.store.put(pool)
    life.allocate(world, pool, lambda seconds: None)
    operations.start(pool.id)
