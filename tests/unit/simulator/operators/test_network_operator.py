from __future__ import annotations

from typing import Any

import pytest

from operators.network_operator import policy_spec
from operators.network_operator.settings import NetworkOperatorSettings as Settings
from simulator.operators.network_operator import daemonsets as build
from simulator.operators.network_operator.controller import Controller
from simulator.operators.upgrade import TEMPLATE_GENERATION
from tests.support.fake_kube import Context, FakeKube, node, pod, roll_out
from tests.support.sizes import H100

NFD_LABELS = {
    build.NIC_LABEL: "true",
    build.OS_LABEL: "ubuntu",
    build.OS_VERSION_LABEL: "24.04",
    build.KERNEL_LABEL: "6.8.0-1030-azure",
}
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


def policy(spec: dict[str, Any] | None = None, name: str = "nic-cluster-policy") -> dict[str, Any]:
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": name},
        "spec": spec if spec is not None else policy_spec(Settings(), "manual", None),
    }


def gpu_node(name: str = "n", **labels: str) -> dict[str, Any]:
    made = node(name, H100, labels=NFD_LABELS | labels)
    made["spec"]["taints"] = [TAINT]
    return made


def daemonsets(kube: FakeKube) -> dict[str, dict[str, Any]]:
    return {key[2]: obj for key, obj in kube.objects.items() if key[0] == "DaemonSet"}


def step(kube: FakeKube) -> Context:
    ctx = Context(kube)
    Controller(ctx.as_pod_context()).step()
    return ctx


def status(kube: FakeKube, name: str = "nic-cluster-policy") -> dict[str, Any]:
    found: dict[str, Any] = kube.objects[("NicClusterPolicy", "", name)].get("status", {})
    return found


def state_of(kube: FakeKube, state: str) -> dict[str, Any]:
    return next(item for item in status(kube)["appliedStates"] if item["name"] == state)


def test_the_policy_is_ready_when_both_daemonsets_are() -> None:
    kube = FakeKube(gpu_node(), policy())
    step(kube)
    ofed = next(name for name in daemonsets(kube) if name.startswith("mofed-ubuntu24.04-"))
    assert daemonsets(kube).keys() == {ofed, "network-operator-sriov-device-plugin"}
    assert status(kube)["state"] == "notReady"
    for name in daemonsets(kube):
        roll_out(kube, name, 1)
    step(kube)
    assert status(kube)["state"] == "ready"
    assert state_of(kube, "state-OFED")["state"] == "ready"
    assert state_of(kube, "state-RDMA-device-plugin")["state"] == "ignore"


def test_the_ofed_daemonset_selects_nodes_and_image_by_os_and_kernel() -> None:
    spec = policy()["spec"]
    [group] = build.host_groups([gpu_node(), gpu_node("m")], spec["tolerations"])
    pod_spec = build.ofed_daemonset(spec, group, "ns")["spec"]["template"]["spec"]
    assert pod_spec["nodeSelector"] == NFD_LABELS
    assert pod_spec["containers"][0]["image"].endswith("-ubuntu24.04-amd64")
    assert build.GPU_TOLERATION in pod_spec["tolerations"]


def test_hosts_with_another_kernel_get_a_separate_daemonset() -> None:
    other = gpu_node("m", **{build.KERNEL_LABEL: "5.15.0-1098-azure"})
    assert len(build.host_groups([gpu_node(), other], policy()["spec"]["tolerations"])) == 2


@pytest.mark.parametrize(
    ("where", "change"),
    [(gpu_node(), {"tolerations": []}), (node("n", "Standard_D4ads_v5"), {})],
    ids=["without the toleration", "no node to serve"],
)
def test_the_policy_is_not_ready_without_a_node_for_the_driver(where: dict[str, Any], change: dict[str, Any]) -> None:
    kube = FakeKube(where, policy(policy()["spec"] | change))
    step(kube)
    assert not any(name.startswith("mofed") for name in daemonsets(kube))
    assert status(kube)["state"] == "notReady"


def test_the_wait_label_follows_the_ofed_pod() -> None:
    kube = FakeKube(gpu_node(), policy(), pod("mofed", {build.OFED_POD_LABEL: ""}, ready=False))
    step(kube)
    assert kube.objects[("Node", "", "n")]["metadata"]["labels"][build.WAIT_LABEL] == "true"
    kube.objects[("Pod", "nvidia-operator", "mofed")] = pod("mofed", {build.OFED_POD_LABEL: ""})
    step(kube)
    assert kube.objects[("Node", "", "n")]["metadata"]["labels"][build.WAIT_LABEL] == "false"


def test_nodes_do_not_wait_without_an_ofed_driver() -> None:
    spec = {key: value for key, value in policy()["spec"].items() if key != "ofedDriver"}
    kube = FakeKube(gpu_node(), node("plain", H100), policy(spec))
    step(kube)
    assert kube.objects[("Node", "", "n")]["metadata"]["labels"][build.WAIT_LABEL] == "false"
    assert build.WAIT_LABEL not in kube.objects[("Node", "", "plain")]["metadata"]["labels"]


def test_deletes_a_daemonset_that_the_policy_no_longer_has() -> None:
    kube = FakeKube(gpu_node(), policy())
    step(kube)
    del kube.objects[("NicClusterPolicy", "", "nic-cluster-policy")]["spec"]["sriovDevicePlugin"]
    step(kube)
    assert "network-operator-sriov-device-plugin" not in daemonsets(kube)


def test_ignores_a_policy_of_another_name() -> None:
    kube = FakeKube(gpu_node(), policy(name="mine"))
    step(kube)
    assert status(kube, "mine")["state"] == "ignore"
    assert "nic-cluster-policy" in status(kube, "mine")["reason"]
    assert not daemonsets(kube)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repository": ""}, "repository is required"),
        ({"version": ""}, "version is required"),
        ({"forcePrecompiled": True}, "precompiled"),
    ],
)
def test_the_state_of_an_invalid_driver_has_the_reason(change: dict[str, Any], message: str) -> None:
    spec = policy()["spec"]
    spec["ofedDriver"] = spec["ofedDriver"] | change
    kube = FakeKube(gpu_node(), policy(spec))
    step(kube)
    assert state_of(kube, "state-OFED")["state"] == "error"
    assert message in state_of(kube, "state-OFED")["message"]


def test_global_repository_and_version_are_defaults() -> None:
    common = {"global": {"repository": "mirror/nvidia", "version": "v1"}}
    assert build.image({"image": "doca-driver"}, common) == "mirror/nvidia/doca-driver:v1"
    assert build.image({"image": "x", "version": "sha256:ab", "repository": "r"}, common) == "r/x@sha256:ab"


def test_a_component_that_is_not_simulated_is_an_error() -> None:
    kube = FakeKube(gpu_node(), policy(policy()["spec"] | {"nvIpam": {}}))
    step(kube)
    assert "not simulated" in state_of(kube, "state-nv-ipam-cni")["message"]


def test_upgrades_an_older_driver_by_the_policy() -> None:
    spec = policy()["spec"]
    spec["ofedDriver"] = spec["ofedDriver"] | {"upgradePolicy": {"autoUpgrade": True}}
    kube = FakeKube(gpu_node(), policy(spec))
    step(kube)
    daemonset = next(obj for name, obj in daemonsets(kube).items() if name.startswith("mofed"))
    daemonset["metadata"]["annotations"] = {TEMPLATE_GENERATION: "2"}
    old = pod("mofed", {build.OFED_POD_LABEL: "", "pod-template-generation": "1"})
    old["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": daemonset["metadata"]["uid"]}]
    kube.create(old)
    for _ in range(3):
        step(kube)
    assert kube.objects[("Node", "", "n")]["spec"]["unschedulable"] is True
