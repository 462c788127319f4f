"""The script of docker/local-nvme-scratch in a sandbox: on new, used and broken nodes, next to disks of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.facts import skus
from operators.local_nvme_scratch.component import pod_spec
from simulator.sandbox import machine, sandbox
from simulator.world.hardware import LOCAL_DISK, NVME_OS_DISK, Disk
from tests.units.simulator.sandbox.node import Node

POD = pod_spec("registry.test/local-nvme-scratch:1")
SETUP, WITNESS = POD["initContainers"][0], POD["containers"][0]
NO_NVME = "Standard_NC4as_T4_v3"
DISKS = 3


@pytest.fixture(autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node of a few local disks: each costs a run ten processes."""
    made = Node(tmp_path)
    made.change(nvme=made.hardware.nvme[:DISKS])
    return made


def set_up(node: Node, **environment: str) -> tuple[int, str]:
    """Runs the pod's init container, as its manifest has it."""
    extra = [{"name": name, "value": value} for name, value in environment.items()]
    return node.run(POD, SETUP | {"env": [*SETUP["env"], *extra]})


def mounts(node: Node) -> list[str]:
    return (node.root / machine.MOUNTS).read_text().splitlines()


# -- a node as it comes ------------------------------------------------------------------------------------------------


def test_all_local_disks_become_one_file_system_mounted_on_the_node(tmp_path: Path) -> None:
    node = Node(tmp_path)
    code, log = set_up(node)
    assert code == 0
    assert "ready: /dev/md127 (8 disks) at /mnt/nvme/scratch" in log
    assert {node.disk(disk.name)["raid"]["uuid"] for disk in node.hardware.nvme} == {
        node.disk("nvme0n1")["raid"]["uuid"]
    }
    assert node.disk("md127")["filesystem"]["type"] == "xfs"
    assert mounts(node)[1:] == ["/dev/md127 /mnt/nvme xfs rw,noatime 0 0"]
    assert (node.root / "mnt/nvme/scratch").stat().st_mode & 0o7777 == 0o1777


def test_a_pod_is_ready_only_while_the_file_system_is_mounted(node: Node) -> None:
    probe = WITNESS | {"command": WITNESS["readinessProbe"]["exec"]["command"]}
    assert node.run(POD, probe)[0] != 0
    set_up(node)
    assert node.run(POD, probe)[0] == 0


def test_one_disk_needs_no_array(node: Node) -> None:
    node.change(nvme=node.hardware.nvme[:1])
    code, log = set_up(node)
    assert code == 0
    assert "ready: /dev/nvme0n1 (1 disks)" in log
    assert "filesystem" in node.disk("nvme0n1")


def test_the_file_system_can_be_ext4(node: Node) -> None:
    assert set_up(node, FILESYSTEM="ext4")[0] == 0
    assert node.disk("md127")["filesystem"]["type"] == "ext4"


# -- a used node -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disks", [1, DISKS])
@pytest.mark.parametrize("restart", ["pod", "node"])
def test_what_is_there_is_kept(node: Node, disks: int, restart: str) -> None:
    node.change(nvme=node.hardware.nvme[:disks])
    set_up(node)
    (node.root / "mnt/nvme/scratch/data").write_text("precious")
    if restart == "node":
        node.reboot()
        assert not (node.root / "mnt/nvme/scratch").exists()
    before = node.disks()
    code, log = set_up(node)
    assert code == 0
    assert "keeping the file system" in log
    assert (node.root / "mnt/nvme/scratch/data").read_text() == "precious"
    assert node.disks() == before
    assert len(mounts(node)) == 2


def test_another_file_system_is_kept_though_the_setting_changed(node: Node) -> None:
    set_up(node, FILESYSTEM="ext4")
    assert set_up(node, FILESYSTEM="xfs")[0] == 0
    assert node.disk("md127")["filesystem"]["type"] == "ext4"


def test_an_array_that_the_node_started_by_itself_under_another_name_is_used(node: Node) -> None:
    set_up(node)
    node.reboot()
    node.run(POD, SETUP | {"command": ["sh", "-c", "mdadm --assemble --homehost=any /dev/md/x /dev/nvme*n1"]})
    assert set_up(node)[0] == 0
    assert len(mounts(node)) == 2


def raid(**fields: Any) -> str:
    return json.dumps({"raid": {"name": "any:nvme-scratch", "uuid": "u", "devices": DISKS, "number": 0, **fields}})


OURS_BEFORE: dict[str, dict[str, str]] = {
    "an array that was never finished": {"nvme0n1": raid(), "nvme1n1": raid(number=1)},
    "an array of which a disk was replaced": {"nvme0n1": raid(), "nvme2n1": raid(number=2)},
    "a file system of one disk": {"nvme2n1": '{"filesystem": {"type": "xfs", "label": "nvme-scratch", "uuid": "f"}}'},
}


@pytest.mark.parametrize("leftover", OURS_BEFORE)
def test_what_it_made_itself_is_made_again(node: Node, leftover: str) -> None:
    for disk, content in OURS_BEFORE[leftover].items():
        (node.root / "dev" / disk).write_text(content)
    code, log = set_up(node)
    assert code == 0
    assert f"creating a RAID 0 of {DISKS} disks" in log
    assert "ready: /dev/md127" in log


def signatures(*types: str) -> str:
    return json.dumps({"signatures": types})


FOREIGN: dict[str, tuple[str, str]] = {
    "another array": (raid(name="localhost:nvme", devices=2), "linux_raid_member"),
    "ext4": ('{"filesystem": {"type": "ext4", "label": "data", "uuid": "f"}}', "ext4"),
    "xfs without a label": ('{"filesystem": {"type": "xfs", "label": "", "uuid": "f"}}', "xfs"),
    "a label of ours beside a partition table": (
        '{"filesystem": {"type": "xfs", "label": "nvme-scratch", "uuid": "f"}, "signatures": ["gpt", "PMBR"]}',
        "PMBR gpt",
    ),
    **{
        kind: (signatures(kind), kind)
        for kind in (
            "LVM2_member",
            "gpt",
            "dos",
            "ntfs",
            "crypto_LUKS",
            "zfs_member",
            "ceph_bluestore",
            "swap",
            "btrfs",
        )
    },
}


@pytest.mark.parametrize("disks", [1, DISKS])
@pytest.mark.parametrize("content", FOREIGN)
def test_a_signature_of_others_is_refused_by_name_with_the_command_that_gives_it_up(
    node: Node, content: str, disks: int
) -> None:
    node.change(nvme=node.hardware.nvme[:disks])
    last = f"nvme{disks - 1}n1"
    (node.root / "dev" / last).write_text(FOREIGN[content][0])
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert f"/dev/{last} has the signature of {FOREIGN[content][1]}: this script did not make that" in log
    assert f"chroot /host wipefs --all /dev/{last} (or, on all nodes: pulumi config set --path" in log
    assert node.disks() == before


@pytest.mark.parametrize("content", ["another array", "ext4", "LVM2_member"])
def test_it_is_wiped_where_the_stack_asks_for_it(node: Node, content: str) -> None:
    (node.root / "dev/nvme2n1").write_text(FOREIGN[content][0])
    code, log = set_up(node, WIPE_FOREIGN="true")
    assert code == 0
    assert f"wiping, as wipeForeign is true: /dev/nvme2n1 has the signature of {FOREIGN[content][1]}" in log
    assert "ready: /dev/md127" in log
    assert pod_spec("i", wipe_foreign=True)["initContainers"][0]["env"][1:] == [
        {"name": "WIPE_FOREIGN", "value": "true"}
    ]


def test_signatures_that_cannot_be_read_are_no_blank_disk(node: Node) -> None:
    broken = "mkdir /tmp/bin; printf '#!/bin/bash\necho input/output error >&2; exit 1\n' >/tmp/bin/wipefs"
    script = f"{broken}; chmod +x /tmp/bin/wipefs; PATH=/tmp/bin:$PATH local-nvme-scratch"
    before = node.disks()
    code, log = node.run(POD, SETUP | {"command": ["bash", "-c", script]})
    assert code == 1
    assert "the signatures on /dev/nvme0n1 cannot be read, it is left alone: input/output error" in log
    assert node.disks() == before


def test_a_start_that_was_killed_before_formatting_goes_on(node: Node) -> None:
    create = "mdadm --create /dev/md/nvme-scratch --run --homehost=any --name=nvme-scratch --level=0"
    node.run(POD, SETUP | {"command": ["sh", "-c", f"{create} --raid-devices={DISKS} /dev/nvme*n1"]})
    code, log = set_up(node)
    assert code == 0
    assert "creating" not in log
    assert "formatting /dev/md127" in log


@pytest.mark.parametrize("started_by_the_node", [False, True])
def test_a_lost_disk_is_told_and_nothing_is_overwritten(node: Node, started_by_the_node: bool) -> None:
    set_up(node)
    node.reboot()
    node.change(nvme=node.hardware.nvme[:-1])
    if started_by_the_node:
        node.run(POD, SETUP | {"command": ["sh", "-c", "mdadm --assemble --homehost=any /dev/md/x /dev/nvme*n1"]})
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert f"the scratch array has {DISKS} disks, of which this node shows {DISKS - 1}" in log
    assert "Replace the node" in log
    assert node.disks() == before


def test_a_disk_that_falls_off_a_running_array_is_told(node: Node) -> None:
    set_up(node)
    node.change(nvme=node.hardware.nvme[:-1])
    code, log = set_up(node)
    assert code == 1
    assert "/dev/md127 has lost a disk, and with it the data of RAID 0. Replace the node" in log


# -- other people's disks ----------------------------------------------------------------------------------------------


def with_partition(node: Node) -> None:
    (node.root / "sys/block/nvme2n1/nvme2n1p1").mkdir()


def mounted_elsewhere(node: Node) -> None:
    with (node.root / machine.MOUNTS).open("a") as table:
        table.write("/dev/nvme2n1 /var/lib/docker ext4 rw 0 0\n")


def in_another_array(node: Node) -> None:
    (node.root / "dev/nvme2n1").write_text(raid(name="host:data", devices=1))
    (node.root / "sys/block/nvme2n1/holders/md0").mkdir()


def in_a_volume_group(node: Node) -> None:
    (node.root / "sys/block/nvme2n1/holders/dm-0").mkdir()


REFUSED: dict[str, tuple[Callable[[Node], None], str]] = {
    "a partition": (with_partition, "/dev/nvme2n1 has partitions: nvme2n1p1"),
    "a mount elsewhere": (mounted_elsewhere, "/dev/nvme2n1 is mounted at /var/lib/docker"),
    "another array": (in_another_array, "/dev/nvme2n1 is part of /dev/md0, which is not the scratch array"),
    "a volume group": (in_a_volume_group, "/dev/nvme2n1 is part of /dev/dm-0"),
}


@pytest.mark.parametrize("use", REFUSED)
def test_a_disk_in_use_is_left_alone(node: Node, use: str) -> None:
    prepare, message = REFUSED[use]
    prepare(node)
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert message in log
    assert "it is left alone" in log
    assert node.disks() == before
    assert not (node.root / "mnt/nvme/scratch").exists()


def test_a_mount_of_somebody_else_is_left_alone(node: Node) -> None:
    with (node.root / machine.MOUNTS).open("a") as table:
        table.write("/dev/sdb1 /mnt/nvme ext4 rw 0 0\n")
    code, log = set_up(node)
    assert code == 1
    assert "/dev/sdb1 is mounted at /mnt/nvme, where /dev/md127 should be" in log


@pytest.mark.parametrize("os_disk", [Disk("sda", "Virtual Disk", 1), Disk("nvme8n1", NVME_OS_DISK, 1, "c008:00:00.0")])
def test_the_os_disk_is_never_touched(node: Node, os_disk: Disk) -> None:
    node.change(os_disk=os_disk)
    (node.root / "dev" / os_disk.name).write_text('{"raid": {"name": "any:nvme-scratch", "uuid": "u", "devices": 9}}')
    before = node.disks()[os_disk.name]
    assert set_up(node)[0] == 0
    assert node.disks()[os_disk.name] == before
    assert not list((node.root / "sys/block" / os_disk.name / "holders").iterdir())


def test_newer_vm_families_have_their_os_disk_on_nvme_too(tmp_path: Path) -> None:
    """A GB200 node: its OS disk is nvme0n1, and only its model tells it from the local ones."""
    node = Node(tmp_path, sku="Standard_ND128isr_NDR_GB200_v6")
    assert (node.hardware.os_disk.name, node.hardware.os_disk.model) == ("nvme0n1", NVME_OS_DISK)
    code, log = set_up(node)
    assert code == 0
    assert "creating a RAID 0 of 4 disks: nvme1n1 nvme2n1 nvme3n1 nvme4n1" in log
    assert node.disks()["nvme0n1"] == ""


def test_both_versions_of_azures_local_disks_are_known_and_no_other(node: Node) -> None:
    known = [Disk("nvme0n1", LOCAL_DISK, 1), Disk("nvme1n1", f"{LOCAL_DISK} v2", 1)]
    node.change(nvme=(*known, Disk("nvme2n1", "Someone's NVMe Disk", 1)))
    _, log = set_up(node)
    assert "creating a RAID 0 of 2 disks: nvme0n1 nvme1n1\n" in log


# -- wrong surroundings ------------------------------------------------------------------------------------------------


def test_a_node_without_nvme_is_told_what_to_do(tmp_path: Path) -> None:
    assert skus.sku(NO_NVME).nvme is None
    code, log = set_up(Node(tmp_path, sku=NO_NVME))
    assert code == 1
    assert "no disk of model 'Microsoft NVMe Direct Disk': take the label local-nvme-scratch off its pool" in log


def test_an_unknown_file_system_is_refused_before_anything_is_done(node: Node) -> None:
    before = node.disks()
    code, log = set_up(node, FILESYSTEM="zfs")
    assert code == 1
    assert "FILESYSTEM is 'zfs'; allowed: xfs, ext4" in log
    assert node.disks() == before


def test_a_mount_that_stays_in_the_container_is_found_out(node: Node) -> None:
    private = [entry | {"mountPropagation": "None"} for entry in SETUP["volumeMounts"]]
    code, log = node.run(POD, SETUP | {"volumeMounts": private})
    assert code == 1
    assert "the host does not see the mount" in log
    assert "mountPropagation Bidirectional" in log


def test_without_the_hosts_table_of_mounts_nothing_is_done(node: Node) -> None:
    some = [entry for entry in SETUP["volumeMounts"] if entry["name"] != "proc"]
    code, log = node.run(POD, SETUP | {"volumeMounts": some})
    assert code == 1
    assert "mount the host's /proc at /host/proc" in log


def test_without_privilege_no_disk_can_be_opened(node: Node) -> None:
    code, _ = node.run(POD, SETUP | {"securityContext": {}})
    assert code != 0
    assert set(node.disks().values()) == {""}
