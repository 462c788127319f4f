"""The second of two nodes stays healthy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from config.data.scheduling import CONDITION_PREFIX
from config.schema.operators import NODE_TOOLS_NAMESPACE, NVIDIA_NAMESPACE
from k8s.objects import Object, condition
from operators.node_problem_detector.conditions import condition_type, conditions
from tests.support.world import Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.long]
WAIT_S = 180
"""Two runs of the slowest check, with a reserve."""
AT_ONCE = {
    "GPUXidCritical": ("xid", "--device", "0", "--code", "48"),
    "GPUXidWarning": ("xid", "--device", "1", "--code", "31"),
    "GPUMemoryErrors": ("ecc", "--device", "2"),
    "GPURowRemapFailed": ("remap", "--device", "3"),
    "NVLinkInactive": ("nvlink", "--device", "4"),
    "GPUTooHot": ("thermal", "--device", "5"),
    "InfiniBandDown": ("hca", "--device", "mlx5_0"),
    "InfiniBandFlapping": ("flapping", "--device", "mlx5_1"),
    "InfiniBandSlow": ("link", "--device", "mlx5_2", "--gbps", "100"),
}
NEED_ALL_GPUS = ("GPUMemoryErrors", "GPURowRemapFailed", "NVLinkInactive", "GPUTooHot")
WELL = dict.fromkeys(conditions(), "False")


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    made = new_stack("conditions", workloads=None, operators={"nodeProblemDetector": {"enabled": True}})
    made.up()
    return made


@pytest.fixture(scope="module")
def sick(stack: Stack) -> str:
    return names(gpu_nodes(stack.kube))[0]


@pytest.fixture(scope="module")
def well(stack: Stack) -> str:
    return names(gpu_nodes(stack.kube))[1]


def states(stack: Stack, node: str) -> dict[str, str]:
    found = stack.kube.get("v1", "Node", node)["status"]["conditions"]
    return {
        each["type"].removeprefix(CONDITION_PREFIX): each["status"]
        for each in found
        if each["type"].startswith(CONDITION_PREFIX)
    }


def wait_for(stack: Stack, node: str, wanted: dict[str, str], why: str) -> None:
    eventually(lambda: wanted.items() <= states(stack, node).items(), f"{why}: {wanted}", WAIT_S)


def is_detector(pod: Object, node: str) -> bool:
    return bool(pod["spec"].get("nodeName") == node and pod["metadata"]["name"].startswith("node-problem-detector-"))


def node_condition(stack: Stack, node: str, name: str) -> Object:
    return condition(stack.kube.get("v1", "Node", node), condition_type(name))


def events(stack: Stack, node: str) -> list[Object]:
    found = stack.kube.list("v1", "Event", "default")
    return [each for each in found if each["involvedObject"].get("name") == node]


def test_every_condition_is_false_once_drivers_run(stack: Stack, sick: str, well: str) -> None:
    for node in (sick, well):
        eventually(partial(lambda node: states(stack, node) == WELL, node), "all conditions are False", 600)


def test_each_fault_sets_its_condition_with_a_message_that_names_the_device(stack: Stack, sick: str) -> None:
    for fault in AT_ONCE.values():
        stack.world.simulator("fault", fault[0], "--node", sick, *fault[1:])
    wait_for(stack, sick, dict.fromkeys(AT_ONCE, "True"), "each fault is detected")
    assert node_condition(stack, sick, "GPUTooHot")["message"] == "GPUs that are too hot: 5"
    assert node_condition(stack, sick, "GPUTooHot")["reason"] == "GPUTooHot"
    assert node_condition(stack, sick, "InfiniBandSlow")["message"] == "mlx5_2 runs at 100 of 400 Gb/s"


def test_each_condition_has_an_event_of_its_node(stack: Stack, sick: str) -> None:
    assert set(AT_ONCE) <= {each["reason"] for each in events(stack, sick) if "ai-on-aks/" in each["message"]}


def test_the_other_node_stays_healthy(stack: Stack, well: str) -> None:
    assert states(stack, well) == WELL


def test_diagnosis_of_the_platform_reports_them(stack: Stack, sick: str) -> None:
    assert f"GPUTooHot (GPUs that are too hot: 5) on node {sick}" in stack.diagnose()


def test_a_reboot_repairs_only_faults_that_a_gpu_reset_repairs(stack: Stack, sick: str) -> None:
    stack.world.simulator("reboot", sick)
    wait_for(stack, sick, {"GPUMemoryErrors": "False", "GPUXidWarning": "False"}, "repaired")
    stay = set(AT_ONCE) - {"GPUMemoryErrors", "GPUXidWarning"}
    wait_for(stack, sick, dict.fromkeys(stay, "True"), "not repaired")


def test_each_condition_is_cleared_when_its_fault_is_repaired(stack: Stack, sick: str) -> None:
    stack.world.simulator("heal")
    wait_for(stack, sick, {**WELL, "InfiniBandFlapping": "True"}, "flapping is counted for some hours")
    assert node_condition(stack, sick, "GPUTooHot")["reason"] == "NoGPUTooHot"
    (pod,) = (each for each in stack.kube.list("v1", "Pod", NODE_TOOLS_NAMESPACE) if is_detector(each, sick))
    stack.kube.delete("v1", "Pod", pod["metadata"]["name"], NODE_TOOLS_NAMESPACE)
    wait_for(stack, sick, WELL, "a new pod starts to count again")


def test_with_a_lost_gpu_conditions_of_all_gpus_are_unknown(stack: Stack, sick: str) -> None:
    stack.world.simulator("fault", "gpu", "--node", sick, "--device", "6")
    wait_for(stack, sick, {"GPUMissing": "True", "GPUXidCritical": "True"}, "a GPU is lost")
    wait_for(stack, sick, dict.fromkeys(NEED_ALL_GPUS, "Unknown"), "these need all GPUs")
    stack.world.simulator("heal")
    wait_for(stack, sick, WELL, "all conditions are False again")


def runs(stack: Stack, operator: str) -> bool:
    """A Deployment's status omits terminating pods, which still act."""
    pods = stack.kube.list("v1", "Pod", NVIDIA_NAMESPACE)
    owners = [owner for pod in pods for owner in pod["metadata"].get("ownerReferences", [])]
    return any(owner["kind"] == "ReplicaSet" and owner["name"].startswith(f"{operator}-") for owner in owners)


def without(stack: Stack, operator: str, daemon_set: Callable[[Object], bool]) -> None:
    """Stops the driver's operator first, so that it does not reinstall the driver."""
    stack.kube.patch("apps/v1", "Deployment", operator, NVIDIA_NAMESPACE, {"spec": {"replicas": 0}})
    eventually(lambda: not runs(stack, operator), "the operator is stopped", 60)
    (found,) = filter(daemon_set, stack.kube.list("apps/v1", "DaemonSet", NVIDIA_NAMESPACE))
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": "true"}}}}}
    stack.kube.patch("apps/v1", "DaemonSet", found["metadata"]["name"], NVIDIA_NAMESPACE, nowhere)


def back(stack: Stack, operator: str) -> None:
    stack.kube.patch("apps/v1", "Deployment", operator, NVIDIA_NAMESPACE, {"spec": {"replicas": 1}})


def test_without_the_gpu_driver_gpu_conditions_are_unknown(stack: Stack, sick: str) -> None:
    without(stack, "gpu-operator", lambda each: each["metadata"]["name"] == "nvidia-driver-daemonset")
    wait_for(stack, sick, {"GPUDriverMissing": "True", "GPUMissing": "Unknown", "OFEDMissing": "False"}, "no driver")
    back(stack, "gpu-operator")
    wait_for(stack, sick, WELL, "all conditions are False again")


def test_missing_ofed_sets_a_condition(stack: Stack, sick: str) -> None:
    without(stack, "network-operator", lambda each: each["metadata"]["name"].startswith("mofed-"))
    wait_for(stack, sick, {"OFEDMissing": "True"}, "no OFED")
    back(stack, "network-operator")
    wait_for(stack, sick, WELL, "all conditions are False again")
