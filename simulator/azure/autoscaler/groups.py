"""The node groups, and the autoscaler's requests to Azure (cluster-autoscaler/cloudprovider/azure)."""

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
"""The taint of nodes being removed (cluster-autoscaler/utils/taints)."""
_TEMPLATE = "k8s.io_cluster-autoscaler_node-template_resources_"
GPU_LABEL = "kubernetes.azure.com/accelerator"
"""The label of GPU nodes (cluster-autoscaler/cloudprovider/azure/azure_cloud_provider.go)."""


@dataclass(frozen=True)
class Group:
    """An autoscaled pool with its registered nodes."""

    pool: Record
    nodes: tuple[Object, ...]
    template: Object
    """A template of new nodes, with the devices that drivers will advertise."""
    starting: Set[str]
    """The names of new nodes (of all pools) that are not ready yet."""

    @property
    def id(self) -> str:
        """The scale set's name, which the priority expander's patterns match."""
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
        """Nodes that are ready, or that exceeded the start-up time."""
        return [node for node in self.nodes if node["metadata"]["name"] not in self.starting]

    @property
    def ready(self) -> int:
        return sum(map(is_ready, self.nodes))

    @property
    def upcoming(self) -> int:
        """Requested nodes that have not started (clusterstate.go, GetUpcomingNodes)."""
        return max(self.target - len(self.started), 0)

    @property
    def failed(self) -> bool:
        """Whether the last operation ended with fewer machines than requested."""
        return not self.pool.busy and len(life.instances(self.pool)) < self.target


def is_scaled(pool: Record) -> bool:
    properties = pool.properties
    return bool(properties.get("enableAutoScaling")) and properties.get("powerState", {}).get("code") != "Stopped"


def groups(world: World, cluster: Record, found: Iterable[Object], starting: Set[str]) -> list[Group]:
    there = list(found)
    scaled = [pool for pool in life.of_cluster(world, cluster.id) if is_scaled(pool)]
    return [
        Group(
            pool,
            tuple(node for node in there if node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL) == pool.id.name),
            _with_devices(pool, life.template(world, cluster, pool)),
            starting,
        )
        for pool in scaled
    ]


def _with_devices(pool: Record, node: Object) -> Object:
    """Adds the VM size's GPUs, and the devices in the pool's tags."""
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
    """Returns whether the node counts as ready. A node with the GPU label must also advertise GPUs."""
    return condition(node, "Ready").get("status") == "True" and not lacks_gpus(node)


def lacks_gpus(node: Object) -> bool:
    """Returns whether a GPU node advertises no GPUs, for example during a driver build.

    Source: cluster-autoscaler/processors/customresources/gpu_processor.go.
    """
    return GPU_LABEL in node["metadata"].get("labels", {}) and not allocatable(node, GPU_RESOURCE)


def increase(world: World, operations: Operations, group: Group, count: int) -> bool:
    """Sets a group's node count. Returns False if the pool is busy or already has this count or more.

    Raises ArmError for exceeded quota or throttling. If Azure lacks capacity, `Group.failed` becomes True later.
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
    """Reduces the node count to the number of allocated machines. Returns False if the pool is busy."""
    with world.store.lock:
        if now := _idle(world, group.pool):
            now.properties["count"] = len(life.instances(now))
            _begin(world, operations, now)
    return now is not None


def delete(world: World, operations: Operations, group: Group, names: Collection[str]) -> bool:
    with world.store.lock:
        if _idle(world, group.pool) is None:
            return False
        numbers = {number for name, (_, number) in life.by_node([group.pool]).items() if name in names}
        life.remove(world, group.pool, numbers)
        if now := world.store.get(group.pool.id):
            _begin(world, operations, now)
    return True


def _idle(world: World, pool: Record) -> Record | None:
    now, cluster = world.store.get(pool.id), world.store.get(pool.id.parent)
    busy = now is None or now.busy or cluster is None or cluster.busy
    return None if busy else now


def _begin(world: World, operations: Operations, pool: Record) -> None:
    """Changes the scale set. Keeps the pool's state in ARM, so that ARM still accepts updates (azure_scale_set.go)."""
    world.store.put(pool)
    life.allocate(world, pool, lambda seconds: None)
    operations.start(pool.id)
