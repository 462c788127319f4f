from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.data import skus
from simulator.operators.device_plugins import (
    SHARED_CONFIG,
    SRIOV_CONFIG,
    PluginConfigError,
    extended_resources,
    sriov_pools,
)
from simulator.world.faults import Fault, FaultKind
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.case_files import case_table
from tests.support.fake_kube import node, pod
from tests.support.sizes import H100, T4

DRIVER = pod("driver", {"app": "nvidia-driver-daemonset"})
PLUGIN = pod("plugin", {"app": "nvidia-device-plugin-daemonset"})
OFED = pod("ofed", {"nvidia.com/ofed-driver": ""})
SRIOV = pod("sriov", {"app": "sriovdp"})
MLNXNICS = {
    "resourcePrefix": "nvidia.com",
    "resourceName": "mlnxnics",
    "selectors": {"vendors": ["15b3"], "linkTypes": ["infiniband"], "isRdma": True},
}


def hardware(sku: str = H100, *faults: Fault) -> NodeHardware:
    return node_hardware(skus.sku(sku), "n", faults)


A100 = hardware("Standard_NC48ads_A100_v4")


def offered(
    pods: list[dict[str, Any]],
    files: dict[str, Any] | None = None,
    hw: NodeHardware | None = None,
    *,
    host_driver: bool = False,
    labels: dict[str, str] | None = None,
) -> dict[str, int]:
    texts = {
        path: value.encode() if isinstance(value, str) else json.dumps(value).encode()
        for path, value in (files or {}).items()
    }
    where = node("n", H100, host_driver=host_driver, labels=labels)
    return extended_resources(where, pods, hw or hardware(), lambda _, path: texts.get(path))


UNREADY = pod("plugin", {"app": "nvidia-device-plugin-daemonset"}, ready=False)
SHARED = pod("shared", {"app": "rdma-shared-dp"})
INFINIBAND = {SRIOV_CONFIG: {"resourceList": [MLNXNICS]}}
SHARED_IB = {"resourceName": "shared_ib", "rdmaHcaMax": 63, "selectors": {"linkTypes": ["infiniband"]}}


@pytest.mark.parametrize(
    ("pods", "files", "on", "resources"),
    [
        ([DRIVER, PLUGIN], {}, hardware(), {"nvidia.com/gpu": 8}),
        ([DRIVER], {}, hardware(), {}),
        ([PLUGIN], {}, hardware(), {}),
        ([DRIVER, UNREADY], {}, hardware(), {}),
        ([DRIVER, PLUGIN], {}, hardware(H100, Fault("n", FaultKind.GPU, "3")), {"nvidia.com/gpu": 7}),
        ([OFED, SRIOV], INFINIBAND, hardware(), {"nvidia.com/mlnxnics": 8}),
        ([SRIOV], INFINIBAND, hardware(), {"nvidia.com/mlnxnics": 0}),
        ([OFED], INFINIBAND, hardware(), {}),
        ([OFED, SRIOV], INFINIBAND, hardware(H100, Fault("n", FaultKind.HCA, "mlx5_2")), {"nvidia.com/mlnxnics": 7}),
        ([OFED, SRIOV], INFINIBAND, hardware(T4), {"nvidia.com/mlnxnics": 0}),
        ([OFED, SHARED], {SHARED_CONFIG: {"configList": [SHARED_IB]}}, hardware(), {"rdma/shared_ib": 63}),
    ],
    ids=[
        "GPUs", "no device plugin", "no driver", "an unready plugin", "a lost GPU", "InfiniBand", "no OFED",
        "no SR-IOV plugin", "a down HCA", "a node without InfiniBand", "the shared plugin",
    ],
)  # fmt: skip
def test_a_node_offers_the_devices_of_its_ready_plugins(
    pods: list[dict[str, Any]], files: dict[str, Any], on: NodeHardware, resources: dict[str, int]
) -> None:
    assert offered(pods, files, on) == resources


def test_the_node_images_driver_is_sufficient() -> None:
    assert offered([PLUGIN], host_driver=True) == {"nvidia.com/gpu": 8}


def test_time_slicing_multiplies_gpus() -> None:
    plugin = pod("plugin", {"app": "nvidia-device-plugin-daemonset"})
    plugin["spec"]["containers"][0]["env"] = [{"name": "DEFAULT_CONFIG", "value": "plain"}]
    slices = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    files = {"/available-configs/plain": "version: v1", "/available-configs/four": slices}
    assert offered([DRIVER, plugin], files) == {"nvidia.com/gpu": 8}
    chosen = {"nvidia.com/device-plugin.config": "four"}
    assert offered([DRIVER, plugin], files, labels=chosen) == {"nvidia.com/gpu": 32}


@pytest.mark.parametrize("text", ["sharing: [", "sharing: 4", "sharing: {timeSlicing: {resources: [{replicas: 4}]}}"])
def test_an_invalid_sharing_configuration_offers_nothing(text: str) -> None:
    plugin = pod("plugin", {"app": "nvidia-device-plugin-daemonset"})
    plugin["spec"]["containers"][0]["env"] = [{"name": "DEFAULT_CONFIG", "value": "four"}]
    assert offered([DRIVER, plugin], {"/available-configs/four": text}) == {}


def test_partitions_count_as_gpus() -> None:
    plugin = pod("plugin", {"app": "nvidia-device-plugin-daemonset"})
    plugin["spec"]["containers"][0]["env"] = [{"name": "MIG_STRATEGY", "value": "single"}]
    where = node("n", "Standard_NC48ads_A100_v4")
    assert extended_resources(where, [DRIVER, plugin], A100, lambda *_: None) == {"nvidia.com/gpu": 2}
    where["metadata"]["annotations"]["simulator/mig"] = "all-1g.10gb"
    assert extended_resources(where, [DRIVER, plugin], A100, lambda *_: None) == {"nvidia.com/gpu": 14}


@case_table(__file__, "selectors")
def test_counts_devices_by_selectors(selectors: Any, count: int) -> None:
    files = {SRIOV_CONFIG: {"resourceList": [{"resourceName": "x", "selectors": selectors}]}}
    assert offered([OFED, SRIOV], files) == {"intel.com/x": count}


def test_a_device_belongs_to_the_first_matching_resource() -> None:
    both = {"resourceList": [MLNXNICS, {"resourceName": "all", "selectors": {"vendors": ["15b3"]}}]}
    assert offered([OFED, SRIOV], {SRIOV_CONFIG: both}) == {"nvidia.com/mlnxnics": 8, "intel.com/all": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "must be JSON"),
        (b"{}", "resourceList"),
        (b'{"resourceList": [{}]}', "no resourceName"),
        (b'{"resourceList": [{"resourceName": "x", "selectors": {"pfNames": ["ib0"]}}]}', "pfNames"),
        (b'{"resourceList": ["x"]}', "must be JSON with a list"),
        (b'{"resourceList": null}', "must be JSON with a list"),
        (b'{"resourceList": [{"resourceName": "x", "selectors": "15b3"}]}', "not lists of text"),
        (b'{"resourceList": [{"resourceName": "x", "selectors": {"vendors": 5555}}]}', "not lists of text"),
        (b'{"resourceList": [{"resourceName": "x", "rdmaHcaMax": "63"}]}', "rdmaHcaMax of x is not a number"),
    ],
)
def test_rejects_an_invalid_configuration_and_offers_nothing(text: bytes, message: str) -> None:
    with pytest.raises(PluginConfigError, match=message):
        sriov_pools(text)
    assert offered([OFED, SRIOV], {SRIOV_CONFIG: text.decode()}) == {}


_KEYS = st.sampled_from(
    ["resourceName", "resourcePrefix", "selectors", "vendors", "devices", "deviceIDs", "linkTypes", "isRdma"]
    + ["rdmaHcaMax", "sharing", "timeSlicing", "resources", "name", "replicas", "rename"]
)
_LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 100) | st.sampled_from(["nvidia.com/gpu", "15b3", "infiniband", ""])
)
_ANYTHING = st.recursive(
    _LEAVES, lambda each: st.lists(each, max_size=3) | st.dictionaries(_KEYS, each, max_size=4), max_leaves=12
)


@given(_ANYTHING)
def test_no_configuration_raises_another_error(content: Any) -> None:
    plugin = pod("plugin", {"app": "nvidia-device-plugin-daemonset"})
    plugin["spec"]["containers"][0]["env"] = [{"name": "DEFAULT_CONFIG", "value": "four"}]
    pods = [DRIVER, OFED, plugin, SRIOV, pod("shared", {"app": "rdma-shared-dp"})]
    for wrapped in (content, {"resourceList": content, "configList": content, "sharing": {"timeSlicing": content}}):
        text = json.dumps(wrapped)
        files = {SRIOV_CONFIG: text, SHARED_CONFIG: text, "/available-configs/four": text}
        assert all(isinstance(name, str) and count >= 0 for name, count in offered(pods, files).items())
