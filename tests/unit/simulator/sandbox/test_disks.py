"""What a privileged container reaches when it mounts a node's /dev: simulated disks, and nothing of this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.data import skus
from operators.local_nvme_scratch import pod_spec
from simulator.sandbox import machine
from simulator.world.hardware import node_hardware
from tests.unit.simulator.sandbox.node import NAME, Node
from tests.unit.simulator.sandbox.tools import lent

POD = pod_spec("registry.test/local-nvme-scratch:1")
SETUP = POD["initContainers"][0]
ATTEMPTS = {
    "find a block device": (
        'find /dev -name null; test -n "$(find /dev /run/simulator/dev -type b)"',
        "^/dev/null$",  # so it can find
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
"""What a script tries, and what it is told then: not that the program is missing that it tries it with."""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def run(node: Node, script: str, **changes: object) -> tuple[int, str]:
    """A script in place of the init container's own, with all that it is allowed."""
    tools = (*lent("mknod"), *lent("mount", "/usr/bin/really-mount"))
    container = SETUP | {"command": ["bash", "-c", script], **changes}
    return node.run(POD, container, mounts=(*node.spec(POD, SETUP).mounts, *tools))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_machines_disks_are_out_of_reach(node: Node, attempt: str) -> None:
    script, told = ATTEMPTS[attempt]
    code, log = run(node, script)
    assert code != 0, f"it could {attempt}: {log}"
    assert re.search(told, log, re.MULTILINE), f"it did not try to {attempt}: {log}"


def test_its_devices_are_the_simulated_nodes(node: Node) -> None:
    _, log = run(node, "cd /dev; ls -d sd* nvme* vd* md* 2>/dev/null; cat /sys/block/nvme0n1/device/model")
    assert log.split("\n")[:10] == ["nvme0n1", *(f"nvme{index}n1" for index in range(1, 8)), "sda", "sda1"]
    assert "Microsoft NVMe Direct Disk" in log


def test_a_link_out_of_the_node_is_not_followed(node: Node, tmp_path: Path) -> None:
    """The simulator itself writes the node's files, outside the sandbox: a pod must not lead it elsewhere."""
    victim = tmp_path / "victim"
    links = ["/run/simulator/dev/nvme0n1", "/run/simulator/proc/1/mounts", "/sys/block/nvme1n1/size"]
    run(node, "; ".join(f"rm -f {link}; ln -s {victim} {link}" for link in links))
    assert (node.root / "dev/nvme0n1").is_symlink()
    machine.write(node.root, node.hardware)
    assert not victim.exists()
    assert not (node.root / "dev/nvme0n1").is_symlink()


def test_writing_again_leaves_what_pods_wrote(node: Node) -> None:
    run(node, "echo precious > /dev/nvme0n1; echo data > /mnt/file; echo '/dev/x /x' >> /run/simulator/proc/1/mounts")
    machine.write(node.root, node.hardware)
    assert (node.root / "dev/nvme0n1").read_text() == "precious\n"
    assert (node.root / "mnt/file").read_text() == "data\n"
    assert "/dev/x /x" in (node.root / machine.MOUNTS).read_text()


def test_the_bus_has_the_functions_that_the_node_has_now(node: Node) -> None:
    bus = node.root / "sys/bus/pci/devices"
    assert {path.name for path in bus.iterdir()} == {function.address for function in node.hardware.pci}
    gpu = bus / node.hardware.gpus[0].pci
    assert ((gpu / "vendor").read_text(), (gpu / "class").read_text()) == ("0x10de\n", "0x030200\n")
    node.change(pci=node.hardware.pci[1:])
    assert {path.name for path in bus.iterdir()} == {function.address for function in node.hardware.pci}


def test_every_size_has_its_disks() -> None:
    """Azure's pages of these sizes list 28 TiB in eight disks, and 16 TiB in four."""
    found = {name: node_hardware(size, NAME) for name, size in skus.catalogue().items()}
    disks = {name: [disk.sectors * 512 / 2**30 for disk in each.nvme] for name, each in found.items() if each.nvme}
    eight, four = [3584] * 8, [4096] * 4
    assert disks == {
        **{f"Standard_ND96isr_{gpu}_v5": eight for gpu in ("H100", "H200", "MI300X")},
        **{f"Standard_ND128isr{name}_v6": four for name in ("_NDR_GB200", "_GB300", "G5_GB300")},
    }
    assert not [name for name, each in found.items() if each.os_disk.name in {disk.name for disk in each.nvme}]
