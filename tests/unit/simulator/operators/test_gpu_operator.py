from __future__ import annotations

from typing import Any

import pytest
import yaml

from config.data import skus
from simulator.host.paths import ROOT
from simulator.operators.gpu_operator import gates, gfd, mig
from simulator.operators.gpu_operator.controller import Controller
from simulator.operators.gpu_operator.daemonsets import OPERANDS
from simulator.operators.gpu_operator.nodes import DEPLOY_DRIVER, GPU_PRESENT, wanted_labels
from simulator.operators.gpu_operator.sharing import MIG_ANNOTATION, Sharing
from simulator.operators.network_operator.daemonsets import OS_LABEL, OS_VERSION_LABEL
from simulator.world.hardware import node_hardware
from tests.support.fake_kube import Context, FakeKube, node, pod, roll_out
from tests.support.sizes import H100, T4

A100 = "Standard_NC48ads_A100_v4"
NFD_LABELS = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    OS_LABEL: "ubuntu",
    OS_VERSION_LABEL: "24.04",
}
CHART = ROOT / "simulator" / "charts" / "gpu-operator"
TOLERATION = {"key": "sku", "operator": "Exists"}
DRIVER = pod("driver", {"app": gates.DRIVER_APP})
TOOLKIT = pod("toolkit", {"app": gates.TOOLKIT_APP})
PLUGIN = pod("plugin", {"app": gates.DEVICE_PLUGIN_APP})
OFED = pod("ofed", {"nvidia.com/ofed-driver": ""})


def policy(**changes: Any) -> dict[str, Any]:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    fields = ("daemonsets", "mig", *(operand.field for operand in OPERANDS))
    spec = {field: dict(values[field]) | changes.get(field, {}) for field in fields}
    for field in ("validator", "nodeStatusExporter"):
        spec[field]["version"] = "v26.7.0"
    metadata = {"name": "cluster-policy", "creationTimestamp": "2026-11-21T12:00:00Z"}
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


def step(kube: FakeKube) -> Context:
    ctx = Context(kube)
    Controller(ctx.as_pod_context()).step()
    return ctx


def daemonsets(kube: FakeKube) -> dict[str, dict[str, Any]]:
    return {key[2]: obj for key, obj in kube.objects.items() if key[0] == "DaemonSet"}


def status(kube: FakeKube) -> dict[str, Any]:
    found: dict[str, Any] = kube.objects[("ClusterPolicy", "", "cluster-policy")]["status"]
    return found


def test_the_policy_is_ready_when_all_its_daemonsets_are() -> None:
    kube = FakeKube(node("n", H100, labels=NFD_LABELS), policy())
    step(kube)
    assert status(kube)["state"] == "notReady"
    assert "state-driver" in status(kube)["conditions"][1]["message"]
    for name in daemonsets(kube):
        roll_out(kube, name, 1)
    step(kube)
    assert status(kube)["state"] == "ready"
    assert status(kube)["conditions"][0]["reason"] == "Reconciled"


def test_the_policy_is_ready_without_gpu_nodes() -> None:
    kube = FakeKube(node("n", "Standard_D4ads_v5"), policy())
    step(kube)
    assert status(kube)["state"] == "ready"
    assert status(kube)["conditions"][0]["reason"] == "NFDLabelsMissing"
    assert not daemonsets(kube)


def test_each_operand_has_its_own_label_and_the_policys_tolerations() -> None:
    kube = FakeKube(node("n", H100, labels=NFD_LABELS), policy(daemonsets={"tolerations": [TOLERATION]}))
    step(kube)
    labels = kube.objects[("Node", "", "n")]["metadata"]["labels"]
    assert labels[GPU_PRESENT] == "true"
    for found in daemonsets(kube).values():
        spec = found["spec"]["template"]["spec"]
        assert spec["tolerations"] == [TOLERATION], "the policy's list replaces the operator's own"
        if found["metadata"]["name"] != "nvidia-mig-manager":  # labelled after GFD
            assert spec["nodeSelector"].items() <= labels.items()
    driver = daemonsets(kube)["nvidia-driver-daemonset"]["spec"]
    assert driver["updateStrategy"] == {"type": "OnDelete"}
    assert driver["template"]["spec"]["containers"][0]["image"] == "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04"


def test_deletes_disabled_operands() -> None:
    kube = FakeKube(node("n", H100, labels=NFD_LABELS), policy())
    step(kube)
    kube.objects[("ClusterPolicy", "", "cluster-policy")]["spec"]["dcgmExporter"]["enabled"] = False
    step(kube)
    assert "nvidia-dcgm-exporter" not in daemonsets(kube)


def test_rdma_adds_the_peermem_container() -> None:
    kube = FakeKube(node("n", H100, labels=NFD_LABELS), policy(driver={"rdma": {"enabled": True}}))
    step(kube)
    containers = daemonsets(kube)["nvidia-driver-daemonset"]["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["nvidia-driver-ctr", "nvidia-peermem-ctr"]


def test_the_policy_names_missing_labels_of_nfd() -> None:
    kube = FakeKube(node("n", H100, labels={"feature.node.kubernetes.io/pci-10de.present": "true"}), policy())
    step(kube)
    assert status(kube)["state"] == "notReady"
    assert OS_LABEL in status(kube)["conditions"][1]["message"]


def test_ignores_all_but_the_oldest_policy() -> None:
    younger = policy()
    younger["metadata"] = {"name": "younger", "creationTimestamp": "2026-11-21T13:00:00Z"}
    kube = FakeKube(policy(), younger)
    step(kube)
    assert kube.objects[("ClusterPolicy", "", "younger")]["status"]["state"] == "ignored"


def test_removes_labels_of_a_node_without_gpus_or_operands() -> None:
    had = {GPU_PRESENT: "true", DEPLOY_DRIVER: "true"}
    assert wanted_labels(had) == {GPU_PRESENT: "false", DEPLOY_DRIVER: None}
    opted_out = wanted_labels(had | NFD_LABELS | {"nvidia.com/gpu.deploy.operands": "false"})
    assert opted_out[DEPLOY_DRIVER] is None
    assert DEPLOY_DRIVER not in wanted_labels(NFD_LABELS | {DEPLOY_DRIVER: "pre-installed"})


def gate_context(sku: str, pods: list[dict[str, Any]], *, host_driver: bool = False, **env: str) -> Context:
    where = node("n", sku, host_driver=host_driver)
    return Context(FakeKube(where), where, environment=env, neighbours=pods)


@pytest.mark.parametrize(
    ("sku", "pods", "rdma", "waits"),
    [(H100, [], "true", True), (H100, [], "", False), (H100, [OFED], "true", False), (T4, [], "true", True)],
    ids=["RDMA", "no RDMA", "OFED is ready", "a T4 has an accelerated networking function"],
)
def test_the_driver_waits_for_ofed_only_with_rdma(sku: str, pods: list[dict[str, Any]], rdma: str, waits: bool) -> None:
    ctx = gate_context(sku, pods, GPU_DIRECT_RDMA_ENABLED=rdma).as_pod_context()
    assert ("waiting for MOFED" in (gates.driver_gate(ctx) or "")) is waits


def test_a_driver_in_the_node_image_disables_the_operators_driver() -> None:
    ctx = gate_context(H100, [], host_driver=True)
    assert "pre-installed" in (gates.driver_gate(ctx.as_pod_context()) or "")
    labels = ctx.kube_.objects[("Node", "", "n")]["metadata"]["labels"]
    assert labels[DEPLOY_DRIVER] == "pre-installed"
    kube = FakeKube(node("n", H100, labels=NFD_LABELS | labels), policy())
    controller = Controller(Context(kube).as_pod_context())
    controller.step()
    controller.step()
    events = [obj for key, obj in kube.objects.items() if key[0] == "Event"]
    assert [event["reason"] for event in events] == ["DriverPreInstalled"]


def test_gates_open_in_the_order_driver_toolkit_plugin_validator() -> None:
    order = (gates.toolkit_gate, gates.device_plugin_gate, gates.validator_gate)
    for pods, open_gates in (
        ([], 0),
        ([DRIVER], 1),
        ([DRIVER, TOOLKIT], 2),
        ([DRIVER, TOOLKIT, PLUGIN], 3),
    ):
        ctx = gate_context(H100, pods).as_pod_context()
        assert sum(gate(ctx) is None for gate in order) == open_gates


def test_gfd_describes_the_gpus() -> None:
    labels = gfd.labels(node_hardware(skus.sku(H100), "n"), "595.91.07", "single", Sharing())
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["nvidia.com/mig.capable"] == "true"
    assert labels["nvidia.com/cuda.driver-version.full"] == "595.91.07"
    assert gfd.labels(node_hardware(skus.sku("Standard_D4ads_v5"), "n"), "", "single", Sharing()) == {}


@pytest.mark.parametrize(
    ("shared", "product", "count", "replicas"),
    [
        (Sharing(replicas=2), "NVIDIA-A100-80GB-PCIe-SHARED", "2", "2"),
        (Sharing("nvidia.com/gpu.shared", 2), "NVIDIA-A100-80GB-PCIe", "2", "2"),
        (Sharing(partition="1g.10gb", partitions=7), "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", "14", "1"),
    ],
)
def test_gfd_labels_shared_gpus(shared: Sharing, product: str, count: str, replicas: str) -> None:
    labels = gfd.labels(node_hardware(skus.sku(A100), "n"), "", "single", shared)
    assert labels["nvidia.com/gpu.product"] == product
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]) == (count, replicas)


def test_gfd_reads_the_device_plugins_configuration() -> None:
    kube = FakeKube(node("n", T4, labels=NFD_LABELS), policy(devicePlugin={"config": {"name": "c", "default": "d"}}))
    step(kube)
    for name in ("gpu-feature-discovery", "nvidia-device-plugin-daemonset"):
        spec = daemonsets(kube)[name]["spec"]["template"]["spec"]
        assert spec["volumes"] == [{"name": "configs", "configMap": {"name": "c"}}]
        assert {"name": "DEFAULT_CONFIG", "value": "d"} in spec["containers"][0]["env"]


def states(sku: str, profile: str, **env: str) -> tuple[list[str], str]:
    """Returns the MIG manager's states after each step, and the final partitions."""
    kube = FakeKube(node("n", sku, labels={"nvidia.com/mig.config": profile}))
    ctx = Context(kube, kube.objects[("Node", "", "n")], environment=env)
    found = []
    for _ in range(3):
        mig.step(ctx.as_pod_context())
        found.append(metadata(kube)["labels"]["nvidia.com/mig.config.state"])
    return found, metadata(kube)["annotations"].get(MIG_ANNOTATION, "")


def metadata(kube: FakeKube) -> dict[str, Any]:
    found: dict[str, Any] = kube.objects[("Node", "", "n")]["metadata"]
    return found


def test_the_mig_manager_reboots_an_a100_only_with_reboot_enabled() -> None:
    may = {"WITH_REBOOT": "true"}
    assert states(A100, "all-1g.10gb", **may) == (["rebooting", "success", "success"], "all-1g.10gb")
    assert states(A100, "all-1g.10gb") == (["failed"] * 3, "")
    assert states(H100, "all-1g.10gb") == (["pending", "success", "success"], "all-1g.10gb"), "Hopper needs no reset"


def test_the_mig_manager_fails_for_partitions_that_the_gpu_lacks() -> None:
    assert states(A100, "all-1g.5gb", WITH_REBOOT="true") == (["failed"] * 3, "")
    assert states(T4, "all-1g.10gb", WITH_REBOOT="true") == (["failed"] * 3, "")
