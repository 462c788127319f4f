from __future__ import annotations

import json

import pytest

from diagnosis import drivers
from diagnosis.cluster import NIC_POLICY, RESOURCE_SLICE, Kind
from diagnosis.report import platform
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.support.sizes import H100
from tests.unit.diagnosis import objects as make

GPU, HCA, SHARED = "nvidia.com/gpu", "nvidia.com/mlnxnics", "rdma/hca_shared_devices_a"


def sized(size: str, offers: Object, capacity: Object | None = None, **labels: str) -> tuple[Kind, Object]:
    kind, node = make.node("a")
    given = {f"nvidia.com/{key.replace('_', '.')}": value for key, value in labels.items()}
    node["metadata"]["labels"] |= {"node.kubernetes.io/instance-type": size, **given}
    node["status"] = {"allocatable": offers, "capacity": offers if capacity is None else capacity}
    return kind, node


def nic_policy(*entries: Object, shared: tuple[Object, ...] = ()) -> tuple[Kind, Object]:
    kind, policy = make.nic_policy()
    policy["spec"] = {"sriovDevicePlugin": {"config": json.dumps({"resourceList": entries})}} if entries else {}
    if shared:
        policy["spec"]["rdmaSharedDevicePlugin"] = {"config": json.dumps({"configList": shared})}
    return kind, policy


def found(*objects: tuple[Kind, Object]) -> list[str]:
    return [finding.why.partition(" on node")[0] for finding in platform(make.cluster(*objects)).findings]


@case_table(__file__, "sizes")
def test_compares_a_node_with_its_vm_size(node: Object, why: list[str]) -> None:
    reported = found(sized(**node))
    assert len(reported) == len(why)
    assert all(got.startswith(expected) for got, expected in zip(reported, why, strict=True))


ALL = {"resourcePrefix": "nvidia.com", "resourceName": "hostdev", "selectors": {"vendors": ["15b3"], "isRdma": True}}


@pytest.mark.parametrize(
    ("policy", "resource", "lost"),
    [
        (nic_policy(ALL), "nvidia.com/hostdev", True),
        (nic_policy(ALL), HCA, False),
        (nic_policy({**ALL, "selectors": [{"vendors": ["15b3"], "pfNames": ["ib0"]}]}), "nvidia.com/hostdev", False),
        (nic_policy(ALL, {**ALL, "resourceName": "other"}), "nvidia.com/hostdev", False),
        (nic_policy({"resourceName": "nic"}), "intel.com/nic", True),
        (nic_policy(shared=({"resourceName": "ib", "rdmaHcaMax": 7},)), "rdma/ib", False),
        (nic_policy(), "rdma/ib", True),
        ((NIC_POLICY, {"metadata": {"name": "p"}, "spec": {"sriovDevicePlugin": {"config": "{"}},
                       "status": {"state": "ready"}}), HCA, True),
    ],
)  # fmt: skip
def test_counts_hcas_under_the_resource_name_of_the_policy(
    policy: tuple[Kind, Object], resource: str, lost: bool
) -> None:
    assert found(policy, sized(H100, {resource: "7"})) == (
        [f"7 of 8 {resource} are offered: a device has failed"] * lost
    )


def test_reports_missing_gpus_once_the_device_plugin_is_ready() -> None:
    plugin = make.driver_pod("nvidia-device-plugin-daemonset", "a", ready=True)
    plugin[1]["metadata"]["labels"] |= make.PLUGIN_LABELS
    for node in (sized(H100, {}), sized(H100, {GPU: "0"}), sized(H100, {GPU: "0"}, {GPU: "8"})):
        assert found(node, plugin) == ["0 of 8 nvidia.com/gpu are offered, though the device plugin is ready"]
    assert found(sized(H100, {GPU: "0"})) == []


LATE = "are offered, though the node is older than 30 minutes"


@case_table(__file__, "old")
def test_reports_an_old_node_without_devices(offers: Object, made: str, labels: dict[str, str], why: list[str]) -> None:
    node = sized(H100, offers)
    node[1]["metadata"] |= {"creationTimestamp": made} if made else {}
    node[1]["metadata"]["labels"] |= {f"nvidia.com/{key}": value for key, value in labels.items()}
    hcas = nic_policy({**ALL, "resourceName": "mlnxnics"})
    assert sorted(found(node, make.cluster_policy(), hcas)) == sorted(f"0 of 8 {resource} {LATE}" for resource in why)


def test_does_not_expect_gpus_of_another_device_plugin() -> None:
    policy = make.cluster_policy()
    policy[1]["spec"] = {"devicePlugin": {"enabled": False}}
    assert found(sized(H100, {}), policy) == []


@pytest.mark.parametrize("offers", [{GPU: "0"}, {}])
@case_table(__file__, "without_operator")
def test_reports_an_old_gpu_node_without_a_gpu_operator(
    offers: Object, size: str, made: str, labels: dict[str, str], shown: bool
) -> None:
    node = sized(size, offers)
    node[1]["metadata"]["creationTimestamp"] = made
    node[1]["metadata"]["labels"] |= labels
    policy = make.cluster_policy()
    policy[1]["spec"] = {"devicePlugin": {"enabled": False}}
    why = f"0 of 8 {GPU} {LATE}: no ClusterPolicy of the GPU operator installs the device plugin"
    assert found(node) == found(node, policy) == ([why] if shown else [])
    claimed = {"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "a"}}
    assert found(node, (RESOURCE_SLICE, claimed)) == []
    node[1]["status"]["allocatable"] = node[1]["status"]["capacity"] = {f"{GPU}.shared": "8", GPU: "0"}
    assert found(node) == found(node, make.cluster_policy()) == []


def test_reports_what_blocks_the_setup_of_an_old_node() -> None:
    given = (sized(H100, {HCA: "8"}), make.cluster_policy(), *make.operators(gpu_plugin_tolerates=False))
    up = (make.driver_pod(name, "a", ready=True) for name in ("mofed-ubuntu24.04-ds", "nvidia-driver-daemonset"))
    (why,) = found(*given, *up)
    assert why.startswith(f"0 of 8 {GPU} {LATE}: the GPU device plugin does not run: DaemonSet")


@pytest.mark.parametrize(("offers", "why"), [("1k", "the node does not have more"), ("996", "a device has failed")])
def test_uses_the_capacity_of_a_resource_that_no_vm_size_has(offers: str, why: str) -> None:
    _, node = sized(H100, {GPU: "8", SHARED: offers}, {GPU: "8", SHARED: "1k"})
    assert drivers.not_offered(make.cluster(), node, SHARED, 2000).what.endswith(f", and 2000 requested: {why}")
