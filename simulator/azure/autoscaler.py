"""The cluster autoscaler of AKS: pools that ask for it get nodes because pods wait, and lose those that stay empty.

It reckons as upstream's does: with a node as the pool would make it, whose GPUs the VM size tells and whose other
devices a tag does. Ten minutes of patience are half a minute here. Nodes go from the last one on, and only empty ones:
pods that upstream would move elsewhere stay where they are.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import httpx

from config.facts import skus
from config.facts.scheduling import AGENT_POOL_LABEL
from diagnosis.cluster import Object, condition, has_ended
from diagnosis.nodes import GPU, allocatable, chosen, requested, untolerated
from simulator.azure import quota
from simulator.azure.errors import ArmError
from simulator.azure.operations import Operations
from simulator.azure.store import Record
from simulator.azure.types.agent_pool.life import node_objects, of_cluster
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.world import World
from simulator.kube import events
from simulator.kube.client import ApiError, KubeClient
from simulator.kube.quantity import value

UNNEEDED_S = 30.0
"""How long a node is empty before it goes; on AKS 10 minutes (scale-down-unneeded-time)."""
_BACKOFF_S = 30.0  # after Azure has refused; upstream's begins at 5 minutes
_TICK_S = 2.0
_TEMPLATE = "k8s.io_cluster-autoscaler_node-template_resources_"
_SOURCE = {"component": "cluster-autoscaler"}
_log = logging.getLogger(__name__)


def wanted_nodes(nodes: Iterable[Object], pods: Sequence[Object], waiting: list[Object]) -> int:
    """How many of a pool's nodes are in use or waited for, counted to the last one of these.

    `nodes` are those that it has, then those that it could get, as `_whole` gives them. Takes from `waiting` what goes
    there, first to nodes that are there.
    """
    used = 0
    for number, node in enumerate(nodes, 1):
        held = [pod for pod in pods if _is_on(pod, node)]
        placed = _fill(node, held, waiting)
        waiting[:] = [pod for pod in waiting if not any(pod is each for each in placed)]
        if placed or not all(map(_comes_with_nodes, held)):
            used = number
    return used


def is_waiting(pod: Object) -> bool:
    """Whether a scheduler has found no node for it: upstream's rule (cluster-autoscaler/utils/kubernetes/listers.go).

    Volcano gives those of a gang that would find one another reason (docs/design/scheduling-reason.md): they do not
    count, and their nodes come for the others, which lack them.
    """
    placed = condition(pod, "PodScheduled")
    unschedulable = placed.get("status") == "False" and placed.get("reason") == "Unschedulable"
    return unschedulable and not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")


class Autoscaler:
    """Looks at all clusters of a subscription every two seconds until `stop`."""

    def __init__(self, world: World, operations: Operations, client: Callable[[str], KubeClient | None]) -> None:
        """`client` gives that of a cluster, by its id, where it runs."""
        self._world, self._operations, self._client = world, operations, client
        self._empty: dict[str, float] = {}
        """Since when a pool has had nodes that nobody needs, by its key."""
        self._pause: dict[str, float] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="autoscaler", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_S):
            for cluster in self._world.store.all(clusters.TYPE):
                try:
                    self._look(cluster)
                except (ApiError, httpx.HTTPError):  # the API server restarts: the next tick
                    continue
                except Exception:  # noqa: BLE001 - one cluster's fault must not stop the others; the daemon's log has it
                    _log.exception("autoscaler of %s", cluster.id.name)

    def _look(self, cluster: Record) -> None:
        scaled = [pool for pool in of_cluster(self._world, cluster.id) if _is_scaled(pool)]
        kube = self._client(cluster.id.text) if scaled and not cluster.busy else None
        if kube is None:
            return
        nodes, pods = kube.list("v1", "Node"), kube.list("v1", "Pod")
        waiting = [pod for pod in pods if is_waiting(pod)]
        most = {pool.id.key: int(pool.properties["maxCount"]) for pool in scaled}
        made = node_objects(self._world, cluster.id, most)
        for pool in scaled:
            there = {node["metadata"]["name"]: node for node in nodes if _belongs(node, pool)}
            if len(there) == pool.properties["count"] and time.monotonic() >= self._pause.get(pool.id.key, 0):
                before = list(waiting)
                own = [there.get(node["metadata"]["name"], node) for node in made if _belongs(node, pool)]
                needed = wanted_nodes([_whole(pool, node) for node in own], pods, waiting)
                wanted = max(needed, int(pool.properties["minCount"]))
                if self._scale(pool, wanted):
                    _tell(kube, pool, wanted, [pod for pod in before if pod not in waiting])

    def _scale(self, pool: Record, wanted: int) -> bool:
        """Whether the pool grows."""
        now, key, count = time.monotonic(), pool.id.key, int(pool.properties["count"])
        if wanted >= count:
            self._empty.pop(key, None)
            return wanted > count and self._set(pool, wanted)
        if now - self._empty.setdefault(key, now) >= UNNEEDED_S:
            self._empty.pop(key)
            self._set(pool, wanted)
        return False

    def _set(self, pool: Record, count: int) -> bool:
        """Begins to change the count; False where Azure refuses it, or something else has begun."""
        store = self._world.store
        with store.lock:
            now = store.get(pool.id)
            if now is None or now.body != pool.body:
                return False
            sku = skus.sku(now.properties["vmSize"])
            now.properties["count"] = count
            try:
                quota.check(self._world, now.id, now.facts["location"], sku, now.properties)
            except ArmError as error:
                _log.warning("autoscaler: pool %s stays at %s: %s", now.id.name, pool.properties["count"], error)
                self._pause[pool.id.key] = time.monotonic() + _BACKOFF_S
                return False
            now.state = "Updating"
            store.put(now)
        self._operations.start(pool.id)
        return True


def _is_scaled(pool: Record) -> bool:
    properties = pool.properties
    runs = properties.get("powerState", {}).get("code") != "Stopped"
    return bool(properties.get("enableAutoScaling")) and runs and not pool.busy


def _belongs(node: Object, pool: Record) -> bool:
    return bool(node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL) == pool.id.name)


def _is_on(pod: Object, node: Object) -> bool:
    return pod["spec"].get("nodeName") == node["metadata"]["name"] and not has_ended(pod)


def _comes_with_nodes(pod: Object) -> bool:
    return any(owner["kind"] in ("DaemonSet", "Node") for owner in pod["metadata"].get("ownerReferences", []))


def _whole(pool: Record, node: Object) -> Object:
    """The node with the devices that it is to offer, once it is ready and their drivers run."""
    sku = skus.sku(pool.properties["vmSize"])
    tags = pool.properties.get("tags") or {}
    devices = {
        name.removeprefix(_TEMPLATE).replace("_", "/", 1): count for name, count in tags.items() if _TEMPLATE in name
    }
    if sku.gpu_vendor == "nvidia":
        devices[GPU] = str(sku.gpus)
    whole = copy.deepcopy(node)
    whole["status"]["allocatable"] |= {name: count for name, count in devices.items() if not allocatable(node, name)}
    taints = node["spec"].get("taints") or []
    whole["spec"]["taints"] = [taint for taint in taints if taint["key"] != "node.kubernetes.io/not-ready"]
    return whole


def _fill(node: Object, held: Iterable[Object], waiting: Iterable[Object]) -> list[Object]:
    """Those of the waiting pods that the node has room for, beside what it holds."""
    free = {name: value(amount) for name, amount in node["status"]["allocatable"].items()}
    placed: list[Object] = []
    for pod in held:
        free = {name: amount - _asked(pod).get(name, 0) for name, amount in free.items()}
    for pod in waiting:
        asked = _asked(pod)
        if _may_run(pod, node) and all(amount <= free.get(name, 0) for name, amount in asked.items()):
            free = {name: amount - asked.get(name, 0) for name, amount in free.items()}
            placed.append(pod)
    return placed


def _asked(pod: Object) -> dict[str, Fraction]:
    total = {name: Fraction(count) for name, count in requested(pod).items()}
    for container in pod["spec"]["containers"]:
        asked = container.get("resources", {}).get("requests", {})
        for name in asked.keys() & {"cpu", "memory"}:
            total[name] = total.get(name, Fraction(0)) + value(asked[name])
    return total


def _may_run(pod: Object, node: Object) -> bool:
    return chosen(node, pod) and not untolerated(node, pod["spec"]) and not node["spec"].get("unschedulable")


def _tell(kube: KubeClient, pool: Record, wanted: int, pods: Iterable[Object]) -> None:
    count, most = pool.properties["count"], pool.properties["maxCount"]
    text = f"pod triggered scale-up: [{{{pool.id.name} {count}->{wanted} (max: {most})}}]"
    for pod in pods:
        events.record(kube, {"apiVersion": "v1", "kind": "Pod", **pod}, "Normal", "TriggeredScaleUp", text, _SOURCE)
