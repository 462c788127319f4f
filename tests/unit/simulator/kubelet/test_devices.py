"""What the device manager gives to pods, and when it takes it back."""

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
    """The GPUs that a pod gets, and how many HCAs."""
    given = devices.allocate(wants, HARDWARE, {GPU_RESOURCE: 8, HCA: 8})
    return given["gpus"], len(given["hcas"])


def test_two_pods_share_no_device_and_each_keeps_its_own() -> None:
    there = [pod("a", 4), pod("b", 4)]
    devices = DeviceManager(lambda: there)
    assert [allocate(devices, one) for one in (*there, *there)] == [([0, 1, 2, 3], 4), ([4, 5, 6, 7], 4)] * 2


def test_slices_are_of_the_gpu_of_which_fewest_are_held_and_no_more_than_there_are() -> None:
    there = [pod(uid, 1) for uid in "abcdef"]
    devices, two = DeviceManager(lambda: there), replace(HARDWARE, gpus=HARDWARE.gpus[:2])
    given = [devices.allocate(one, two, {GPU_RESOURCE: 4})["gpus"] for one in there[:4]]
    assert given == [[0], [1], [0], [1]]
    with pytest.raises(Unavailable, match="Requested: 1, Available: 0"):
        devices.allocate(there[4], two, {GPU_RESOURCE: 4})
    there.pop(1)
    assert devices.allocate(there[4], two, {GPU_RESOURCE: 4})["gpus"] == [1]


def test_a_pod_gets_at_once_what_one_that_ended_held() -> None:
    """The scheduler binds it as soon as it sees that end: before the kubelet has looked at anything else."""
    there = [pod("a")]
    devices = DeviceManager(lambda: there)
    assert allocate(devices, there[0]) == (list(range(8)), 8)
    there[:] = [pod("a", phase="Succeeded"), pod("b")]
    assert allocate(devices, there[1]) == (list(range(8)), 8)
    assert set(devices.held()) == {"b"}


# -- devices that are gone between scheduling and start ----------------------------------------------------------------


def broken(gpu: int) -> NodeHardware:
    """A node of which one GPU has fallen off the bus."""
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


def test_what_is_in_use_is_not_available_and_a_broken_device_in_use_counts_once() -> None:
    there = [pod("a", 4), pod("b", 4)]
    devices = DeviceManager(lambda: there)
    allocate(devices, there[0])
    with pytest.raises(Unavailable, match="Requested: 4, Available: 3"):
        devices.allocate(there[1], broken(5), {GPU_RESOURCE: 7, HCA: 8})
    assert devices.allocate(there[1], broken(0), {GPU_RESOURCE: 7, HCA: 8})["gpus"] == [4, 5, 6, 7]


def test_a_resource_that_no_plugin_has_registered_is_let_pass() -> None:
    """`isDevicePluginResource`: what no device plugin is known for is no matter of the device manager."""
    assert DeviceManager(list).allocate(pod("a"), HARDWARE, {})["gpus"] == []


def states(*steps: tuple[float, dict[str, int], int]) -> list[str]:
    """Capacity and allocatable of GPUs after each step, in which plugins give so much, of GPUs that were once there."""
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


def test_a_node_leaves_what_others_wrote() -> None:
    """NFD writes the extended resources of its rules into a node's status itself."""
    amounts = {"feature.node.kubernetes.io/sockets": "2", "hugepages-2Mi": "0"}
    there: Object = {"metadata": {"name": NODE}, "status": {"capacity": amounts, "allocatable": amounts}}
    assert status_patch(there, {}) is None
    patch = status_patch(there, GPUS)
    assert patch
    assert patch["status"] == {"capacity": {GPU_RESOURCE: "8"}, "allocatable": {GPU_RESOURCE: "8"}}


def test_a_pod_that_runs_keeps_its_devices_when_the_simulator_starts_again() -> None:
    running = pod("a", phase="Running")
    given = DeviceManager(lambda: [running]).allocate(running, broken(5), {GPU_RESOURCE: 7, HCA: 8}, runs=True)
    assert given["gpus"] == list(range(8))


def test_the_node_refuses_such_a_pod_for_good_and_says_so() -> None:
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
    offered[GPU_RESOURCE] = 8  # the kubelet has made up its mind, even before it sees the pod as failed
    assert not admission.admits(late, {})


def test_a_pod_that_is_admitted_once_stays_so() -> None:
    there = pod("a")
    offered = {GPU_RESOURCE: 8, HCA: 8}
    devices = DeviceManager(lambda: [there])
    kube = FakeKube().as_client()
    admission = Admission(kube, lambda given, _: devices.allocate(given, HARDWARE, offered), EventRecorder(kube))
    assert admission.admits(there, {})
    offered[GPU_RESOURCE] = 0
    assert admission.admits(there, {})


def test_counts_are_written_as_the_api_server_keeps_them() -> None:
    """Else a thousand shares of an HCA, which it calls 1k, would be another change each time."""
    there: Object = {"metadata": {"name": NODE}, "status": {}}
    patch = status_patch(there, {"rdma/shared": 1000})
    assert patch is not None
    there = {"metadata": {"name": NODE, **patch["metadata"]}, "status": patch["status"]}
    assert there["status"]["allocatable"] == {"rdma/shared": "1k"}
    assert status_patch(there, {"rdma/shared": 1000}) is None
