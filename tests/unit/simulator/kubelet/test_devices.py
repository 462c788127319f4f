from __future__ import annotations

import re
from dataclasses import replace

import pytest

from config.data.scheduling import GPU_RESOURCE
from config.data.skus import catalogue
from k8s.objects import Object
from simulator.kubelet.admission import Admission
from simulator.kubelet.devices import DeviceManager, Unavailable, plugin_resources, status_patch
from simulator.kubelet.events import EventRecorder
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.fake_kube import FakeKube

HCA = "nvidia.com/mlnxnics"
NODE = "aks-gpu-1-vmss000000"
HARDWARE = node_hardware(catalogue()["Standard_ND96isr_H100_v5"], NODE)


def pod(uid: str, count: int = 8, phase: str = "Pending") -> Object:
    container = {"name": "main", "resources": {"limits": {GPU_RESOURCE: str(count), HCA: str(count)}}}
    return {
        "metadata": {"uid": uid},
        "spec": {"nodeName": NODE, "containers": [container]},
        "status": {"phase": phase},
    }


def allocate(devices: DeviceManager, wants: Object) -> tuple[list[int], int]:
    given = devices.allocate(wants, HARDWARE, {GPU_RESOURCE: 8, HCA: 8})
    return given["gpus"], len(given["hcas"])


def test_each_pod_keeps_its_own_devices() -> None:
    there = [pod("a", 4), pod("b", 4)]
    devices = DeviceManager(lambda: there)
    assert [allocate(devices, one) for one in (*there, *there)] == [([0, 1, 2, 3], 4), ([4, 5, 6, 7], 4)] * 2


def test_allocates_time_slices_from_the_least_used_gpu() -> None:
    there = [pod(uid, 1) for uid in "abcdef"]
    devices, two = DeviceManager(lambda: there), replace(HARDWARE, gpus=HARDWARE.gpus[:2])
    given = [devices.allocate(one, two, {GPU_RESOURCE: 4})["gpus"] for one in there[:4]]
    assert given == [[0], [1], [0], [1]]
    with pytest.raises(Unavailable, match="Requested: 1, Available: 0"):
        devices.allocate(there[4], two, {GPU_RESOURCE: 4})
    there.pop(1)
    assert devices.allocate(there[4], two, {GPU_RESOURCE: 4})["gpus"] == [1]


def test_allocates_the_devices_of_an_ended_pod_immediately() -> None:
    """The scheduler may bind the next pod before the kubelet syncs."""
    there = [pod("a")]
    devices = DeviceManager(lambda: there)
    assert allocate(devices, there[0]) == (list(range(8)), 8)
    there[:] = [pod("a", phase="Succeeded"), pod("b")]
    assert allocate(devices, there[1]) == (list(range(8)), 8)
    assert set(devices.held()) == {"b"}


# -- devices lost between scheduling and start -------------------------------------------------------------------------


def broken(gpu: int) -> NodeHardware:
    return replace(HARDWARE, gpus=tuple(replace(each, healthy=each.index != gpu) for each in HARDWARE.gpus))


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        (
            {GPU_RESOURCE: 7, HCA: 8},
            f"requested number of devices unavailable for {GPU_RESOURCE}. Requested: 8, Available: 7",
        ),
        ({GPU_RESOURCE: 0, HCA: 8}, f"no healthy devices present; cannot allocate unhealthy devices {GPU_RESOURCE}"),
        ({GPU_RESOURCE: 8, HCA: 0}, f"no healthy devices present; cannot allocate unhealthy devices {HCA}"),
    ],
)
def test_a_pod_gets_all_of_its_devices_or_none(offered: dict[str, int], message: str) -> None:
    late = pod("late")
    devices = DeviceManager(lambda: [late])
    with pytest.raises(Unavailable, match=f"^{re.escape(message)}$"):
        devices.allocate(late, broken(5), offered)
    assert devices.held() == {}


def test_a_lost_device_in_use_counts_once() -> None:
    there = [pod("a", 4), pod("b", 4)]
    devices = DeviceManager(lambda: there)
    allocate(devices, there[0])
    with pytest.raises(Unavailable, match="Requested: 4, Available: 3"):
        devices.allocate(there[1], broken(5), {GPU_RESOURCE: 7, HCA: 8})
    assert devices.allocate(there[1], broken(0), {GPU_RESOURCE: 7, HCA: 8})["gpus"] == [4, 5, 6, 7]


def test_ignores_a_resource_without_a_plugin() -> None:
    assert DeviceManager(list).allocate(pod("a"), HARDWARE, {})["gpus"] == []


def states(*steps: tuple[float, dict[str, int], int]) -> list[str]:
    """Each step has time, offered GPUs, and GPUs that existed once. Returns capacity and allocatable GPUs."""
    there: Object = {"metadata": {"name": NODE}, "status": {}}
    found = []
    for now, offered, listed in steps:
        if patch := status_patch(there, offered, {GPU_RESOURCE: listed}, now):
            there = {"metadata": {"name": NODE, **patch["metadata"]}, "status": patch["status"]}
            assert status_patch(there, offered, {GPU_RESOURCE: listed}, now) is None
        assert plugin_resources(there) == {GPU_RESOURCE: offered.get(GPU_RESOURCE, 0)}
        found.append("/".join(there["status"][kind][GPU_RESOURCE] for kind in ("capacity", "allocatable")))
    return found


GPUS, SEVEN, NONE = {GPU_RESOURCE: 8}, {GPU_RESOURCE: 7}, dict[str, int]()


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        ([(1, GPUS, 8), (2, SEVEN, 8), (3, NONE, 8), (4, SEVEN, 8)], ["8/8", "8/7", "8/0", "7/7"]),
        ([(1, SEVEN, 8), (2, SEVEN, 8), (3, GPUS, 8)], ["7/7", "7/7", "8/8"]),
        ([(1, GPUS, 8), (2, {GPU_RESOURCE: 0}, 8), (3, GPUS, 8)], ["8/8", "8/0", "8/8"]),
        ([(100, GPUS, 8), (200, NONE, 8), (500, NONE, 8), (501, NONE, 8), (901, GPUS, 8)],
         ["8/8", "8/0", "8/0", "0/0", "8/8"]),
        ([(1, GPUS, 8), (2, {GPU_RESOURCE: 32}, 32), (3, GPUS, 8)], ["8/8", "32/32", "8/8"]),
    ],
    ids=["lost until the plugin restarts", "lost before", "lists none", "gone for five minutes", "other slices"],
)  # fmt: skip
def test_capacity_and_allocatable_follow_the_plugin(
    steps: list[tuple[float, dict[str, int], int]], counts: list[str]
) -> None:
    assert states(*steps) == counts


def test_a_lost_device_does_not_count_after_a_reboot() -> None:
    amounts: Object = {"status": {"capacity": {GPU_RESOURCE: "8"}, "allocatable": {GPU_RESOURCE: "7"}}}
    there: Object = {"metadata": {"name": NODE, "annotations": {"simulator/device-plugins": GPU_RESOURCE}}, **amounts}
    assert status_patch(there, SEVEN, GPUS) is None
    patch = status_patch(there, SEVEN, GPUS, booted=True)
    assert patch
    assert patch["status"] == {"capacity": {GPU_RESOURCE: "7"}, "allocatable": {GPU_RESOURCE: "7"}}


def test_keeps_resources_of_other_writers() -> None:
    """NFD writes extended resources into the status itself."""
    amounts = {"feature.node.kubernetes.io/sockets": "2", "hugepages-2Mi": "0"}
    there: Object = {"metadata": {"name": NODE}, "status": {"capacity": amounts, "allocatable": amounts}}
    assert status_patch(there, {}) is None
    patch = status_patch(there, GPUS)
    assert patch
    assert patch["status"] == {"capacity": {GPU_RESOURCE: "8"}, "allocatable": {GPU_RESOURCE: "8"}}


def test_a_running_pod_keeps_its_devices_over_a_restart_of_the_simulator() -> None:
    running = pod("a", phase="Running")
    given = DeviceManager(lambda: [running]).allocate(running, broken(5), {GPU_RESOURCE: 7, HCA: 8}, runs=True)
    assert given["gpus"] == list(range(8))


def test_rejects_a_pod_without_enough_devices_for_good() -> None:
    message = f"Allocate failed due to requested number of devices unavailable for {GPU_RESOURCE}. "
    message += "Requested: 8, Available: 7"
    message += ", which is unexpected"
    late = pod("late")
    late |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", "namespace": "ai", "uid": "late"}}
    kube, offered = FakeKube(late), {GPU_RESOURCE: 7, HCA: 8}
    devices = DeviceManager(lambda: [late])
    admission = Admission(
        kube.as_client(), lambda given, _: devices.allocate(given, HARDWARE, offered), EventRecorder(kube.as_client())
    )
    assert not admission.admits(late, {})
    found = kube.objects["Pod", "ai", "late"]["status"]
    assert {key: found[key] for key in ("phase", "reason", "message")} == {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": f"Pod was rejected: {message}",
    }
    (event,) = kube.list("v1", "Event", "ai")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "UnexpectedAdmissionError", message)
    offered[GPU_RESOURCE] = 8  # final, even before the kubelet sees the pod as failed
    assert not admission.admits(late, {})


def test_an_admitted_pod_stays_admitted() -> None:
    there = pod("a")
    offered = {GPU_RESOURCE: 8, HCA: 8}
    devices = DeviceManager(lambda: [there])
    kube = FakeKube().as_client()
    admission = Admission(kube, lambda given, _: devices.allocate(given, HARDWARE, offered), EventRecorder(kube))
    assert admission.admits(there, {})
    offered[GPU_RESOURCE] = 0
    assert admission.admits(there, {})


def test_writes_counts_in_the_api_servers_form() -> None:
    """A count of 1000, returned as 1k, would otherwise be patched again."""
    there: Object = {"metadata": {"name": NODE}, "status": {}}
    patch = status_patch(there, {"rdma/shared": 1000})
    assert patch is not None
    there = {"metadata": {"name": NODE, **patch["metadata"]}, "status": patch["status"]}
    assert there["status"]["allocatable"] == {"rdma/shared": "1k"}
    assert status_patch(there, {"rdma/shared": 1000}) is None
