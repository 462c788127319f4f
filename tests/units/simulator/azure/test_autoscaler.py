"""The cluster autoscaler: nodes for pods that wait, and none for what comes with nodes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from diagnosis.cluster import Object
from simulator.azure import autoscaler
from simulator.azure.autoscaler import Autoscaler
from tests.support.arm import CLUSTER, Arm, pool_body, pool_path
from tests.support.waiting import eventually, eventually_equals

RDMA_TAG = {"k8s.io_cluster-autoscaler_node-template_resources_nvidia.com_mlnxnics": "8"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pod(name: str, node: str = "", owner: str = "Job", **devices: int) -> Object:
    limits = {f"nvidia.com/{device}": str(count) for device, count in devices.items()}
    placed = {"nodeName": node} if node else {}
    return {
        "metadata": {"name": name, "namespace": "ai", "uid": name, "ownerReferences": [{"kind": owner, "name": "x"}]},
        "spec": {
            "nodeSelector": {"agentpool": "gpu"},
            "tolerations": [{"key": "sku", "operator": "Exists"}],
            "containers": [{"name": "main", "resources": {"limits": limits, "requests": {"cpu": "4"} | limits}}],
            **placed,
        },
        "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
    }


class SimulatedNodes:
    """A cluster whose nodes are those that simulated Azure has made."""

    def __init__(self, arm: Arm) -> None:
        self.arm, self.pods = arm, list[Object]()
        self.events: list[Object] = []

    def list(self, _version: str, kind: str) -> list[Object]:
        return self.pods if kind == "Pod" else [dict(node) for node in self.arm.backend.nodes[CLUSTER]]

    def create(self, event: Object) -> None:
        self.events.append(event)


@pytest.fixture
def kube(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(autoscaler, "UNNEEDED_S", 0.5)
    monkeypatch.setattr(autoscaler, "_TICK_S", 0.05)
    found = SimulatedNodes(cluster)
    server: Any = cluster.server
    scaling = Autoscaler(server.world, server.operations, lambda _: found)  # type: ignore[arg-type, return-value]
    yield found
    scaling.stop()


def make(arm: Arm, **properties: Any) -> None:
    scaled = {"count": 0, "enableAutoScaling": True, "minCount": 0, "maxCount": 2, "nodeTaints": ["sku=gpu:NoSchedule"]}
    body = pool_body(**scaled | {"tags": RDMA_TAG} | properties)
    assert arm.put(pool_path(), body).status_code == 201
    arm.done()


def count(arm: Arm) -> int:
    return sum("-gpu-" in name for name in arm.node_names())


def test_nodes_come_because_pods_wait_and_go_when_they_have_ended(cluster: Arm, kube: SimulatedNodes) -> None:
    make(cluster)
    kube.pods = [pod("one", gpu=8, mlnxnics=8), pod("two", gpu=8, mlnxnics=8), pod("three", gpu=8, mlnxnics=8)]
    eventually_equals(lambda: count(cluster), 2, 10)
    assert cluster.get(pool_path())["properties"]["count"] == 2
    eventually(lambda: len(kube.events) == 2, "both pods are told", 10)
    assert {event["involvedObject"]["name"] for event in kube.events} == {"one", "two"}
    assert kube.events[0]["message"] == "pod triggered scale-up: [{gpu 0->2 (max: 2)}]"
    first, second = (name for name in cluster.node_names() if "-gpu-" in name)
    kube.pods = [pod("driver", first, "DaemonSet"), pod("driver", second, "DaemonSet"), pod("two", second, gpu=8)]
    time.sleep(1)
    assert count(cluster) == 2, "a pod runs on the last one"
    kube.pods = kube.pods[:2]
    eventually_equals(lambda: count(cluster), 0, 10)


def test_nodes_whose_devices_are_on_their_way_are_waited_for(cluster: Arm, kube: SimulatedNodes) -> None:
    make(cluster, count=1)
    kube.pods = [pod("one", gpu=8, mlnxnics=8)]
    time.sleep(1)
    assert count(cluster) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"nodeSelector": {"agentpool": "other"}},
        {"tolerations": []},
        {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "9"}}}]},
        {"containers": [{"name": "main", "resources": {"requests": {"cpu": "97"}}}]},
    ],
    ids=["another pool", "a taint", "more GPUs than a node has", "more CPU than a node has"],
)
def test_no_node_comes_for_a_pod_that_could_not_run_on_it(cluster: Arm, kube: SimulatedNodes, change: Object) -> None:
    make(cluster)
    waiting = pod("one", gpu=8)
    kube.pods = [waiting | {"spec": waiting["spec"] | change}]
    time.sleep(1)
    assert count(cluster) == 0


def test_a_pool_without_autoscaling_stays_as_it_is(cluster: Arm, kube: SimulatedNodes) -> None:
    make(cluster, count=1, enableAutoScaling=False, minCount=None, maxCount=None)
    kube.pods = [pod("one", gpu=8), pod("two", gpu=8)]
    time.sleep(1)
    assert count(cluster) == 1
