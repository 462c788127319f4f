from __future__ import annotations

import re
from pathlib import Path

import pytest

from operators.local_nvme_scratch import pod_spec
from simulator.sandbox import machine
from tests.unit.simulator.sandbox.node import Node
from tests.unit.simulator.sandbox.tools import mounted_program

POD = pod_spec("registry.test/local-nvme-scratch:1")
SETUP = POD["initContainers"][0]
ATTEMPTS = {
    "find a block device": (
        'find /dev -name null; test -n "$(find /dev /run/simulator/dev -type b)"',
        "^/dev/null$",  # find works
    ),
    "make a block device": ("mknod /tmp/disk b 8 0 || mknod /dev/disk b 259 0", "/dev/disk: Operation not permitted"),
    "format a file beside the disks": (
        "mkfs.xfs -q -f -K -L x /dev/../etc/hosts || mkfs.xfs -q -f -K -L x /etc/hosts",
        "mkfs.xfs: cannot open /etc/hosts",
    ),
    "wipe a file beside the disks": (
        "wipefs --all /dev/null || wipefs --all /dev/../run/simulator/self.json",
        r"wipefs: error: cannot open /dev/\.\./run/simulator/self.json",
    ),
    "mount a file system really": ("really-mount -t tmpfs none /mnt", "/mnt: (permission denied|must be superuser)"),
    "reach the machine's own /sys": ("ls /sys/devices /sys/fs", "cannot access '/sys/devices'"),
    "see the machine's mounts": (
        "grep ext4 /host/proc/1/mounts; grep overlay /host/proc/1/mounts || ls /host/proc/2",
        "^/dev/sda1 / ext4(.|\n)* cannot access '/host/proc/2'",
    ),
}
"""Each attempt's script and expected error, which must not be a missing program."""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def run(node: Node, script: str, **changes: object) -> tuple[int, str]:
    tools = (*mounted_program("mknod"), *mounted_program("mount", "/usr/bin/really-mount"))
    container = SETUP | {"command": ["bash", "-c", script], **changes}
    return node.run(POD, container, mounts=(*node.spec(POD, SETUP).mounts, *tools))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_script_cannot_reach_the_machines_disks(node: Node, attempt: str) -> None:
    script, error = ATTEMPTS[attempt]
    code, log = run(node, script)
    assert code != 0, f"it could {attempt}: {log}"
    assert re.search(error, log, re.MULTILINE), f"it did not try to {attempt}: {log}"


def test_sees_the_devices_of_the_simulated_node(node: Node) -> None:
    _, log = run(node, "cd /dev; ls -d sd* nvme* vd* md* 2>/dev/null; cat /sys/block/nvme0n1/device/model")
    assert log.split("\n")[:10] == ["nvme0n1", *(f"nvme{index}n1" for index in range(1, 8)), "sda", "sda1"]
    assert "Microsoft NVMe Direct Disk" in log


def test_the_simulator_does_not_follow_links_of_a_pod(node: Node, tmp_path: Path) -> None:
    """The simulator writes the node's files outside of the sandbox."""
    victim = tmp_path / "victim"
    links = ["/run/simulator/dev/nvme0n1", "/run/simulator/proc/1/mounts", "/sys/block/nvme1n1/size"]
    run(node, "; ".join(f"rm -f {link}; ln -s {victim} {link}" for link in links))
    assert (node.root / "dev/nvme0n1").is_symlink()
    machine.write(node.root, node.hardware)
    assert not victim.exists()
    assert not (node.root / "dev/nvme0n1").is_symlink()


def test_a_second_write_keeps_data_of_pods(node: Node) -> None:
    run(node, "echo precious > /dev/nvme0n1; echo data > /mnt/file; echo '/dev/x /x' >> /run/simulator/proc/1/mounts")
    machine.write(node.root, node.hardware)
    assert (node.root / "dev/nvme0n1").read_text() == "precious\n"
    assert (node.root / "mnt/file").read_text() == "data\n"
    assert "/dev/x /x" in (node.root / machine.MOUNTS).read_text()


def test_the_pci_bus_has_the_current_functions(node: Node) -> None:
    bus = node.root / "sys/bus/pci/devices"
    assert {path.name for path in bus.iterdir()} == {function.address for function in node.hardware.pci}
    gpu = bus / node.hardware.gpus[0].pci
    assert ((gpu / "vendor").read_text(), (gpu / "class").read_text()) == ("0x10de\n", "0x030200\n")
    node.change(pci=node.hardware.pci[1:])
    assert {path.name for path in bus.iterdir()} == {function.address for function in node.hardware.pci}
