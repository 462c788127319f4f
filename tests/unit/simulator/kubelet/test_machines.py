from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from config.data.skus import sku
from k8s.objects import Object
from simulator.kubelet import folders
from simulator.kubelet.machines import Machines
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import ImageProgram
from simulator.kubelet.status import ended_by_reboot
from simulator.sandbox import machine
from simulator.world.hardware import NodeHardware, node_hardware

NODE: Object = {"metadata": {"name": "n1", "uid": "u1"}}
MARK = "run/mellanox/drivers/.driver-ready"
PROGRAMS = (ImageProgram("doca-driver", leaves=MARK),)
HARDWARE = node_hardware(sku("Standard_ND96isr_H100_v5"), "n1")


def driver(*, ready: bool) -> Object:
    conditions = [{"type": "Ready", "status": str(ready)}]
    spec = {"nodeName": "n1", "containers": [{"name": "ofed", "image": "nvcr.io/nvidia/mellanox/doca-driver:1"}]}
    return {"metadata": {"name": "mofed", "uid": "p1"}, "spec": spec, "status": {"conditions": conditions}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return folders.of_machine(tmp_path, NODE)


@pytest.fixture
def machines(tmp_path: Path) -> Callable[[NodeHardware], Machines]:
    catalogue = PodCatalogue(PROGRAMS, lambda image: None)
    return lambda hardware: Machines(tmp_path, lambda node: hardware, catalogue)


def test_removes_the_file_of_a_driver_deleted_while_the_simulator_was_stopped(
    machines: Callable[[NodeHardware], Machines], root: Path
) -> None:
    machines(HARDWARE).sync({"n1": NODE}, [driver(ready=True)])
    machines(HARDWARE).sync({"n1": NODE}, [])
    assert not (root / MARK).exists()


def test_reports_a_boot_once_and_logs_it_below_older_errors(tmp_path: Path, root: Path) -> None:
    found = [HARDWARE]
    machines = Machines(tmp_path, lambda node: found[0], PodCatalogue((), lambda image: None))
    assert machines.sync({"n1": NODE}, []) == set()
    with (root / machine.KERNEL_LOG).open("a") as log:
        log.write("2026-11-26T00:00:00.000000+00:00 n1 kernel: NVRM: Xid (PCI:0001:00:00): 48, pid=7, x\n")
    found[0] = replace(HARDWARE, booted=4102444800.0)
    assert [machines.sync({"n1": NODE}, []) for _ in range(2)] == [{"n1"}, set()]
    logged = [line.split(" kernel: ")[1][:13] for line in (root / machine.KERNEL_LOG).read_text().splitlines()]
    assert logged == ["Linux version", "NVRM: Xid (PC", "Linux version"]


def test_a_reboot_fails_the_running_containers_of_a_pod() -> None:
    running = {"name": "main", "ready": True, "state": {"running": {}}}
    ended = {"name": "done", "ready": False, "state": {"terminated": {"exitCode": 0}}}
    pod = driver(ready=True) | {"status": {"containerStatuses": [running, ended]}}
    status = ended_by_reboot(pod)["status"]
    assert status["phase"] == "Failed"
    first, second = status["containerStatuses"]
    assert (first["state"]["terminated"]["exitCode"], first["state"]["terminated"]["reason"]) == (
        137,
        "ContainerStatusUnknown",
    )
    assert second == ended
