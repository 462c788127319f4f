"""The script of docker/local-nvme-scratch in a sandbox: on new, used and broken nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from config.data import skus
from k8s.objects import Object
from tests.unit.simulator.sandbox.node import Node
from tests.unit.simulator.sandbox.nvme import DISKS, POD, SETUP, mounts, raid, set_up, small_node

WITNESS = POD["containers"][0]
NO_NVME = "Standard_NC4as_T4_v3"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return small_node(tmp_path)


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


def test_the_file_system_can_be_ext4_and_is_kept_though_the_setting_changed(node: Node) -> None:
    assert set_up(node, FILESYSTEM="ext4")[0] == 0
    assert set_up(node, FILESYSTEM="xfs")[0] == 0
    assert node.disk("md127")["filesystem"]["type"] == "ext4"


def test_an_array_that_the_node_started_by_itself_under_another_name_is_used(node: Node) -> None:
    set_up(node)
    node.reboot()
    node.run(POD, SETUP | {"command": ["sh", "-c", "mdadm --assemble --homehost=any /dev/md/x /dev/nvme*n1"]})
    assert set_up(node)[0] == 0
    assert len(mounts(node)) == 2


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


# -- wrong surroundings ------------------------------------------------------------------------------------------------


def _mounts_that(change: Callable[[Object], Object | None]) -> Object:
    return {"volumeMounts": [new for entry in SETUP["volumeMounts"] if (new := change(entry))]}


WRONG: dict[str, tuple[Object, list[str]]] = {
    "another file system": (
        {"env": [*SETUP["env"], {"name": "FILESYSTEM", "value": "zfs"}]},
        ["FILESYSTEM is 'zfs'; allowed: xfs, ext4"],
    ),
    "a mount that stays in the container": (
        _mounts_that(lambda entry: entry | {"mountPropagation": "None"}),
        ["the host does not see the mount", "mountPropagation Bidirectional"],
    ),
    "no table of the host's mounts": (
        _mounts_that(lambda entry: None if entry["name"] == "proc" else entry),
        ["mount the host's /proc at /host/proc"],
    ),
    "no privilege, so that no disk can be opened": ({"securityContext": {}}, []),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_surroundings_are_told(node: Node, wrong: str) -> None:
    changes, told = WRONG[wrong]
    before = node.disks()
    code, log = node.run(POD, SETUP | changes)
    assert code != 0
    assert [text for text in told if text not in log] == []
    assert node.disks() == before or "volumeMounts" in changes


def test_a_node_without_nvme_is_told_what_to_do(tmp_path: Path) -> None:
    assert skus.sku(NO_NVME).nvme is None
    code, log = set_up(Node(tmp_path, sku=NO_NVME))
    assert code == 1
    assert "no disk of model 'Microsoft NVMe Direct Disk': take the label local-nvme-scratch off its pool" in log
