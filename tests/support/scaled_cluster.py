"""A simulated cluster with an autoscaler. Simulated Azure creates nodes; the test sets the time."""

from __future__ import annotations

import random
from typing import Any

import yaml

from config.data import skus
from k8s.objects import Object
from simulator.azure.autoscaler.profile import PACE, START_UP_PACE
from simulator.azure.autoscaler.scaler import Scaler
from simulator.azure.ids import parse_id
from simulator.kube.client import ApiError
from tests.support.arm import CLUSTER, Arm, pool_body, pool_path
from tests.support.fake_kube import FakeKube

RDMA_TAG = {"k8s.io_cluster-autoscaler_node-template_resources_nvidia.com_mlnxnics": "8"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
READY = {"type": "Ready", "status": "True"}
TEN_MINUTES, START_UP = 600 / PACE, 900 / START_UP_PACE
QUIET = (TEN_MINUTES, 1, TEN_MINUTES, 1)
"""Delays between scans after which an unneeded node is deleted."""


def pod(name: str, node: str = "", owner: str = "Job", labels: dict[str, str] | None = None, **devices: Any) -> Object:
    """Returns a pod for any GPU pool, pending or on `node`. `devices` has short names of NVIDIA's."""
    limits = {f"nvidia.com/{device}": str(count) for device, count in devices.items()}
    owners = [{"kind": owner, "name": "x"}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ai", "uid": name, "ownerReferences": owners, "labels": labels or {}},
        "spec": {
            "nodeSelector": {"ai-on-aks/gpu": "true"},
            "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
            "containers": [{"name": "main", "resources": {"limits": limits, "requests": {"cpu": "2"} | limits}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
    }


class EvictingKube(FakeKube):
    """Respects PodDisruptionBudgets."""

    def raw(self, method: str, path: str, **named: Any) -> Object:
        if not path.endswith("/eviction"):
            return super().raw(method, path, **named)
        namespace, name = path.split("/")[4], path.split("/")[6]
        for budget in self.list("policy/v1", "PodDisruptionBudget"):
            if not budget["status"]["disruptionsAllowed"]:
                raise ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's budget.")
        self.delete("v1", "Pod", name, namespace)
        return {}


class ScaledCluster:
    """`look` runs a scan, some seconds after the last, and its operations in Azure."""

    def __init__(self, arm: Arm) -> None:
        self.arm, self.kube, self.now, self.slow = arm, EvictingKube(), 1000.0, False
        self.scaler = self.another()

    def another(self) -> Scaler:
        """Returns an autoscaler without state, as after a restart."""
        server, clock = self.arm.server, lambda: self.now
        return Scaler(server.world, server.operations, self.kube.as_client(), clock, random.Random(0))  # noqa: S311 - repeatable

    def look(self, later: float = 0) -> None:
        self.now += later
        self.arm.done()
        self.sync()
        record = self.arm.server.world.store.get(parse_id(CLUSTER))
        assert record
        self.scaler.look(record, self.kube.list("v1", "Node"), self.kube.list("v1", "Pod"))
        self.arm.done()
        self.sync()

    def looks(self, *later: float) -> None:
        for each in later:
            self.look(each)

    def sync(self) -> None:
        """Creates ready nodes for new machines and deletes others. Nodes have no devices while drivers are `slow`."""
        made = {node["metadata"]["name"]: node for node in self.arm.backend.nodes[CLUSTER]}
        for name in {node["metadata"]["name"] for node in self.kube.list("v1", "Node")} - made.keys():
            self.kube.delete("v1", "Node", name)
        for name, node in made.items():
            if not self.kube.find("v1", "Node", name):
                self.kube.create({**node, "status": {**node["status"], "conditions": [READY]}})
                if not self.slow:
                    self.drivers(name)

    def drivers(self, name: str) -> None:
        node = self.kube.find("v1", "Node", name)
        size = skus.sku(node["metadata"]["labels"]["node.kubernetes.io/instance-type"]) if node else None
        if size and size.gpus:
            devices = {"nvidia.com/gpu": size.gpus} | ({"nvidia.com/mlnxnics": 8} if size.infiniband else {})
            offered = {device: str(count) for device, count in devices.items()}
            self.kube.patch("v1", "Node", name, None, {"status": {"allocatable": offered}})

    def add(self, *pods: Object) -> None:
        for each in pods:
            self.kube.create(each)

    def profile(self, **settings: Any) -> None:
        """Underscores in names stand for hyphens."""
        store = self.arm.server.world.store
        record = store.get(parse_id(CLUSTER))
        assert record
        record.properties["autoScalerProfile"] = {name.replace("_", "-"): each for name, each in settings.items()}
        store.put(record)

    def set_version(self, version: str) -> None:
        record = self.arm.server.world.store.get(parse_id(CLUSTER))
        assert record
        record.properties["kubernetesVersion"] = version
        self.arm.server.world.store.put(record)

    def nodes(self, pool: str = "gpu") -> list[str]:
        return [name for name in self.arm.node_names() if name.startswith(f"aks-{pool}-")]

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.kube.list("v1", "Event") if event["reason"] == reason]


def make_pool(scaled: ScaledCluster, name: str = "gpu", **properties: Any) -> None:
    given = {"count": 0, "enableAutoScaling": True, "minCount": 0, "maxCount": 2, "tags": RDMA_TAG} | properties
    answer = scaled.arm.put(pool_path(name), pool_body(**given))
    assert answer.status_code == 201, answer.text
    scaled.arm.done()


def autoscaler_status(scaled: ScaledCluster) -> Object:
    found = scaled.kube.find("v1", "ConfigMap", "cluster-autoscaler-status", "kube-system")
    assert found
    read: Object = yaml.safe_load(found["data"]["status"])
    return read
