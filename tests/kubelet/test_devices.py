"""What the device manager gives to pods, and when it takes it back."""

from __future__ import annotations

from config.skus import catalogue
from simulator.kubelet.devices import GPU, DeviceManager
from simulator.world.hardware import node_hardware
from tests.kubelet.pods import Object

HCA = "nvidia.com/mlnxnics"
NODE = "aks-gpu-1-vmss000000"
HARDWARE = node_hardware(catalogue()["Standard_ND96isr_H100_v5"], NODE)


def pod(uid: str, count: int = 8, phase: str = "Pending") -> Object:
    container = {"name": "main", "resources": {"limits": {GPU: str(count), HCA: str(count)}}}
    return {
        "metadata": {"uid": uid},
        "spec": {"nodeName": NODE, "containers": [container]},
        "status": {"phase": phase},
    }


def allocate(devices: DeviceManager, wants: Object) -> tuple[list[int], int]:
    """The GPUs that a pod gets, and how many HCAs."""
    given = devices.allocate(wants, HARDWARE, lambda name: name == HCA)
    return given["gpus"], len(given["hcas"])


def test_two_pods_share_no_device_and_each_keeps_its_own() -> None:
    there = [pod("a", 4), pod("b", 4)]
    devices = DeviceManager(lambda: there)
    assert [allocate(devices, one) for one in (*there, *there)] == [([0, 1, 2, 3], 4), ([4, 5, 6, 7], 4)] * 2


def test_a_pod_gets_at_once_what_one_that_ended_held() -> None:
    """The scheduler binds it as soon as it sees that end: before the kubelet has looked at anything else."""
    there = [pod("a")]
    devices = DeviceManager(lambda: there)
    assert allocate(devices, there[0]) == (list(range(8)), 8)
    there[:] = [pod("a", phase="Succeeded"), pod("b")]
    assert allocate(devices, there[1]) == (list(range(8)), 8)
    assert set(devices.held()) == {"b"}


def test_what_a_deleted_pod_held_is_free() -> None:
    there = [pod("a")]
    devices = DeviceManager(lambda: there)
    allocate(devices, there[0])
    there.clear()
    assert devices.held() == {}
