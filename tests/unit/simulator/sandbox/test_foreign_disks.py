from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from operators.local_nvme_scratch import pod_spec
from simulator.sandbox import machine
from simulator.world.hardware import LOCAL_DISK, NVME_OS_DISK, Disk
from tests.unit.simulator.sandbox.node import Node
from tests.unit.simulator.sandbox.nvme import DISKS, POD, SETUP, raid, set_up, small_node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return small_node(tmp_path)


def signatures(*types: str) -> str:
    return json.dumps({"signatures": types})


FOREIGN: dict[str, tuple[str, str]] = {
    "another array": (raid(name="localhost:nvme", devices=2), "linux_raid_member"),
    "ext4": ('{"filesystem": {"type": "ext4", "label": "data", "uuid": "f"}}', "ext4"),
    "xfs without a label": ('{"filesystem": {"type": "xfs", "label": "", "uuid": "f"}}', "xfs"),
    "our label and a partition table": (
        '{"filesystem": {"type": "xfs", "label": "nvme-scratch", "uuid": "f"}, "signatures": ["gpt", "PMBR"]}',
        "PMBR gpt",
    ),
    "LVM2_member": (signatures("LVM2_member"), "LVM2_member"),
}


@pytest.mark.parametrize(
    ("content", "disks"), [*((content, DISKS) for content in FOREIGN), ("another array", 1), ("ext4", 1)]
)
def test_rejects_a_foreign_signature_with_the_command_that_wipes_it(node: Node, content: str, disks: int) -> None:
    node.change(nvme=node.hardware.nvme[:disks])
    last = f"nvme{disks - 1}n1"
    (node.root / "dev" / last).write_text(FOREIGN[content][0])
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert f"/dev/{last} has the signature of {FOREIGN[content][1]}: this script did not create it" in log
    assert f"chroot /host wipefs --all /dev/{last} (or on all nodes: pulumi config set --path" in log
    assert node.disks() == before


@pytest.mark.parametrize("content", ["another array", "ext4", "LVM2_member"])
def test_wipes_a_foreign_signature_if_wipe_foreign_is_set(node: Node, content: str) -> None:
    (node.root / "dev/nvme2n1").write_text(FOREIGN[content][0])
    code, log = set_up(node, WIPE_FOREIGN="true")
    assert code == 0
    assert f"wiping, because wipeForeign is true: /dev/nvme2n1 has the signature of {FOREIGN[content][1]}" in log
    assert "ready: /dev/md127" in log
    assert pod_spec("i", wipe_foreign=True)["initContainers"][0]["env"][1:] == [
        {"name": "WIPE_FOREIGN", "value": "true"}
    ]


def test_rejects_a_disk_with_unreadable_signatures(node: Node) -> None:
    broken = "mkdir /tmp/bin; printf '#!/bin/bash\necho input/output error >&2; exit 1\n' >/tmp/bin/wipefs"
    script = f"{broken}; chmod +x /tmp/bin/wipefs; PATH=/tmp/bin:$PATH local-nvme-scratch"
    before = node.disks()
    code, log = node.run(POD, SETUP | {"command": ["bash", "-c", script]})
    assert code == 1
    assert "the signatures on /dev/nvme0n1 cannot be read: input/output error. Nothing was changed" in log
    assert node.disks() == before


def in_another_array(node: Node) -> None:
    (node.root / "dev/nvme2n1").write_text(raid(name="host:data", devices=1))
    (node.root / "sys/block/nvme2n1/holders/md0").mkdir()


def mounted(device: str, place: str) -> Callable[[Node], object]:
    def act(node: Node) -> None:
        with (node.root / machine.MOUNTS).open("a") as table:
            table.write(f"/dev/{device} {place} ext4 rw 0 0\n")

    return act


REFUSED: dict[str, tuple[Callable[[Node], object], str]] = {
    "a partition": (
        lambda node: (node.root / "sys/block/nvme2n1/nvme2n1p1").mkdir(),
        "/dev/nvme2n1 has partitions: nvme2n1p1",
    ),
    "a mount elsewhere": (mounted("nvme2n1", "/var/lib/docker"), "/dev/nvme2n1 is mounted at /var/lib/docker"),
    "another array": (in_another_array, "/dev/nvme2n1 is part of /dev/md0, which is not the scratch array"),
    "a volume group": (
        lambda node: (node.root / "sys/block/nvme2n1/holders/dm-0").mkdir(),
        "/dev/nvme2n1 is part of /dev/dm-0",
    ),
}


@pytest.mark.parametrize("use", REFUSED)
def test_rejects_a_disk_in_use(node: Node, use: str) -> None:
    prepare, message = REFUSED[use]
    prepare(node)
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert message in log
    assert "nothing was changed" in log.lower()
    assert node.disks() == before
    assert not (node.root / "mnt/nvme/scratch").exists()


def test_rejects_a_foreign_mount_at_its_mount_point(node: Node) -> None:
    mounted("sdb1", "/mnt/nvme")(node)
    code, log = set_up(node)
    assert code == 1
    assert "/dev/sdb1 is mounted at /mnt/nvme instead of /dev/md127" in log


@pytest.mark.parametrize("os_disk", [Disk("sda", "Virtual Disk", 1), Disk("nvme8n1", NVME_OS_DISK, 1, "c008:00:00.0")])
def test_does_not_change_the_os_disk(node: Node, os_disk: Disk) -> None:
    node.change(os_disk=os_disk)
    (node.root / "dev" / os_disk.name).write_text('{"raid": {"name": "any:nvme-scratch", "uuid": "u", "devices": 9}}')
    before = node.disks()[os_disk.name]
    assert set_up(node)[0] == 0
    assert node.disks()[os_disk.name] == before
    assert not list((node.root / "sys/block" / os_disk.name / "holders").iterdir())


def test_recognizes_an_os_disk_on_nvme(tmp_path: Path) -> None:
    """A GB200 node's OS disk is nvme0n1. Only its model differs from local disks."""
    node = Node(tmp_path, sku="Standard_ND128isr_NDR_GB200_v6")
    assert (node.hardware.os_disk.name, node.hardware.os_disk.model) == ("nvme0n1", NVME_OS_DISK)
    code, log = set_up(node)
    assert code == 0
    assert "creating a RAID 0 of 4 disks: nvme1n1 nvme2n1 nvme3n1 nvme4n1" in log
    assert node.disks()["nvme0n1"] == ""


def test_uses_only_azures_models_of_local_disks(node: Node) -> None:
    known = [Disk("nvme0n1", LOCAL_DISK, 1), Disk("nvme1n1", f"{LOCAL_DISK} v2", 1)]
    node.change(nvme=(*known, Disk("nvme2n1", "Someone's NVMe Disk", 1)))
    _, log = set_up(node)
    assert "creating a RAID 0 of 2 disks: nvme0n1 nvme1n1\n" in log
