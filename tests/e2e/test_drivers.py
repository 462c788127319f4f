from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from k8s.objects import Object
from tests.e2e.policies import CLUSTER_POLICY, NIC_POLICY, offers_gpus, policy_is_ready
from tests.support.manifests import manifest
from tests.support.pages import PAGES
from tests.support.sizes import H100
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, names, wait_for_end

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
NVIDIA = "nvidia-operator"
OFED, GPU_DRIVER = "nvidia.com/ofed-driver", "app=nvidia-driver-daemonset"
OFED_STATE = "nvidia.com/ofed-driver-upgrade-state"
WITHOUT_DEVICES = {"gpuOperator": {"values": {"devicePlugin": {"enabled": False}}}}
GPU = {"vmSku": H100}
ROLLS = "nodes keep the outdated driver until"
PINNED = {"nccl-allreduce": {"pool": "gpu"}, "health-check": {"pool": "gpu"}}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    config = {"workloads": "nccl-allreduce,health-check", "workloadOptions": PINNED, "vmSku": None, "nodeCount": None}
    return new_stack("drivers", **config, pools={"gpu": GPU}, operators=WITHOUT_DEVICES)


def driver_pods(stack: Stack, driver: str, pool: str = "gpu") -> dict[str, str]:
    nodes = names(stack.kube.list("v1", "Node", labels=f"ai-on-aks/pool={pool}"))
    pods = stack.kube.list("v1", "Pod", NVIDIA, labels=driver)
    return {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") in nodes}


def both_ready(stack: Stack) -> bool:
    return policy_is_ready(stack, *NIC_POLICY) and policy_is_ready(stack, *CLUSTER_POLICY)


def states_not_ready(stack: Stack) -> list[str]:
    status = stack.kube.get(*NIC_POLICY)["status"]
    return [part["name"] for part in status["appliedStates"] if part["state"] == "notReady"]


def occupy(stack: Stack, node: str) -> Callable[[], None]:
    """Starts a user's pod with GPUs and an emptyDir on the node. Returns a function that deletes it."""
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "image": "alpine", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "volumes": [{"name": "shm", "emptyDir": {}}],
        "tolerations": [{"operator": "Exists"}],
    }
    stack.kube.create(manifest("v1", "Pod", "busy", "default", spec=spec))

    def leave() -> None:
        stack.kube.delete("v1", "Pod", "busy", "default")

    return leave


def cordoned(stack: Stack) -> list[str]:
    return names(node for node in gpu_nodes(stack.kube) if node["spec"].get("unschedulable"))


def health_check_pods(stack: Stack) -> list[Object]:
    return stack.kube.list("v1", "Pod", "ai", labels="batch.kubernetes.io/job-name=health-check")


@contextlib.contextmanager
def roll_of_the_page(stack: Stack, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    page = next(page for page in PAGES if page.name == "drivers.md").read_text("utf-8")
    block = re.search(r"^    roll\(\) \{.*?^    for node in .*?$", page, re.MULTILINE | re.DOTALL)
    assert block
    command = ["bash", "-eu", "-o", "pipefail", "-c", block[0]]
    environment = {**stack.world.environment, "KUBECONFIG": str(stack.world.kubeconfig(stack.name))}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_jobs_wait_until_nodes_offer_gpus(stack: Stack) -> None:
    stack.up()
    eventually(lambda: len(health_check_pods(stack)) == 2, "the health check has its pods")
    before = [stack.kube.get("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai"), *health_check_pods(stack)]
    assert job_phase(stack.kube) == "Pending"
    assert not [pod["metadata"]["name"] for pod in health_check_pods(stack) if pod["spec"].get("nodeName")]
    stack.set(operators=None)
    stack.up()
    eventually(partial(offers_gpus, stack), "the nodes offer GPUs")
    assert wait_for_end(stack.kube) == "Completed"
    eventually(lambda: all(p["status"]["phase"] == "Succeeded" for p in health_check_pods(stack)), "checks succeed")
    after = [stack.kube.get("batch.volcano.sh/v1alpha1", "Job", "nccl-allreduce", "ai"), *health_check_pods(stack)]
    assert {obj["metadata"]["uid"] for obj in after} == {obj["metadata"]["uid"] for obj in before}
    eventually(partial(both_ready, stack), "both policies are ready")


def test_a_new_spot_pool_and_a_new_taint_keep_running_drivers(stack: Stack) -> None:
    before = driver_pods(stack, OFED), driver_pods(stack, GPU_DRIVER)
    assert all(len(pods) == 2 for pods in before)
    pools: dict[str, Any] = {"gpu": GPU, "spot": {**GPU, "count": 1, "spot": True}}
    stack.set(pools=pools)
    assert ROLLS not in stack.up()
    eventually(lambda: len(driver_pods(stack, OFED, "spot")) == 1, "the new node gets OFED")
    eventually(partial(both_ready, stack), "both policies are ready with the Spot pool")
    stack.set(pools={**pools, "gpu": {**GPU, "taints": ["sku=gpu:NoSchedule", "team=a:NoSchedule"]}})
    assert ROLLS not in stack.up()
    assert wait_for_end(stack.kube) == "Completed"
    eventually(partial(both_ready, stack), "both policies are ready with the taint")
    assert (driver_pods(stack, OFED), driver_pods(stack, GPU_DRIVER)) == before


def test_another_ofed_version_waits_for_the_user_to_roll_the_nodes(stack: Stack, tmp_path: Path) -> None:
    before = driver_pods(stack, OFED)
    stack.set(operators={"networkOperator": {"ofedVersion": "doca3.2.0-25.10-1.2.8.0-2"}})
    assert f"OFED changes (version): {ROLLS} you roll out the new driver" in stack.pulumi("preview")
    stack.up()
    eventually(lambda: states_not_ready(stack) == ["state-OFED"], "OFED is outdated")
    assert driver_pods(stack, OFED) == before
    assert re.search(r"3 pods \(mofed-\S+ on node \S+, \.\.\.\) are old", stack.diagnose())
    stack.up("--expect-no-changes")
    node = min(before)
    leave = occupy(stack, node)
    with roll_of_the_page(stack, tmp_path / "log") as rolling:
        eventually(lambda: node in cordoned(stack), "the node with a job is cordoned")
        assert driver_pods(stack, OFED)[node] == before[node]
        assert cordoned(stack) == [node]  # other nodes are done or wait
        leave()
        assert rolling.wait(300) == 0, (tmp_path / "log").read_text()
    assert not set(driver_pods(stack, OFED).values()) & set(before.values())
    assert cordoned(stack) == []
    eventually(partial(both_ready, stack), "both policies are ready")


def test_with_when_idle_the_operators_roll_both_drivers_after_a_users_pod(stack: Stack) -> None:
    before = driver_pods(stack, OFED), driver_pods(stack, GPU_DRIVER)
    node = min(before[0])
    leave = occupy(stack, node)
    driver = {"values": {"driver": {"version": "590.48.01"}}}
    stack.set(operators={"driverUpgrades": "when-idle", "gpuOperator": driver})
    preview = stack.pulumi("preview")
    for changed in ("OFED", "the GPU driver"):
        assert f"{changed} changes (driverUpgrades, version): {ROLLS} the operator rolls out the new driver" in preview
    stack.up()

    def state() -> str:
        labels = stack.kube.get("v1", "Node", node)["metadata"]["labels"]
        return str(labels.get(OFED_STATE, ""))

    eventually(lambda: state() == "wait-for-jobs-required", "OFED's upgrade waits for the pod")
    assert stack.kube.find("v1", "Pod", "busy", "default")
    changed = "cordoned by NVIDIA's operators, which upgrade DOCA OFED (wait-for-jobs-required)"
    assert f"{changed}; they wait for pod default/busy to end on node {node}" in stack.diagnose()
    assert driver_pods(stack, OFED)[node] == before[0][node]
    assert driver_pods(stack, GPU_DRIVER)[node] == before[1][node]
    leave()
    eventually(partial(both_ready, stack), "both policies are ready", 300)
    eventually(lambda: cordoned(stack) == [], "no node is cordoned")
    for old, label in zip(before, (OFED, GPU_DRIVER), strict=True):
        assert not set(driver_pods(stack, label).values()) & set(old.values())
