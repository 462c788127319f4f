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


# -- a new node --------------------------------------------------------------------------------------------------------


def test_creates_one_file_system_of_all_local_disks(tmp_path: Path) -> None:
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


def test_creates_no_array_for_one_disk(node: Node) -> None:
    node.change(nvme=node.hardware.nvme[:1])
    code, log = set_up(node)
    assert code == 0
    assert "ready: /dev/nvme0n1 (1 disks)" in log
    assert "filesystem" in node.disk("nvme0n1")


# -- a used node -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disks", [1, DISKS])
@pytest.mark.parametrize("restart", ["pod", "node"])
def test_keeps_an_existing_file_system(node: Node, disks: int, restart: str) -> None:
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


def test_keeps_ext4_after_a_change_of_the_setting(node: Node) -> None:
    assert set_up(node, FILESYSTEM="ext4")[0] == 0
    assert set_up(node, FILESYSTEM="xfs")[0] == 0
    assert node.disk("md127")["filesystem"]["type"] == "ext4"


def test_uses_an_array_that_the_node_assembled_under_another_name(node: Node) -> None:
    set_up(node)
    node.reboot()
    node.run(POD, SETUP | {"command": ["sh", "-c", "mdadm --assemble --homehost=any /dev/md/x /dev/nvme*n1"]})
    assert set_up(node)[0] == 0
    assert len(mounts(node)) == 2


LEFTOVERS: dict[str, dict[str, str]] = {
    "an incomplete array": {"nvme0n1": raid(), "nvme1n1": raid(number=1)},
    "an array with a replaced disk": {"nvme0n1": raid(), "nvme2n1": raid(number=2)},
    "a file system of one disk": {"nvme2n1": '{"filesystem": {"type": "xfs", "label": "nvme-scratch", "uuid": "f"}}'},
}


@pytest.mark.parametrize("leftover", LEFTOVERS)
def test_recreates_its_own_incomplete_array(node: Node, leftover: str) -> None:
    for disk, content in LEFTOVERS[leftover].items():
        (node.root / "dev" / disk).write_text(content)
    code, log = set_up(node)
    assert code == 0
    assert f"creating a RAID 0 of {DISKS} disks" in log
    assert "ready: /dev/md127" in log


def test_continues_after_a_kill_before_formatting(node: Node) -> None:
    create = "mdadm --create /dev/md/nvme-scratch --run --homehost=any --name=nvme-scratch --level=0"
    node.run(POD, SETUP | {"command": ["sh", "-c", f"{create} --raid-devices={DISKS} /dev/nvme*n1"]})
    code, log = set_up(node)
    assert code == 0
    assert "creating" not in log
    assert "formatting /dev/md127" in log


@pytest.mark.parametrize("started_by_the_node", [False, True])
def test_reports_a_lost_disk_and_overwrites_nothing(node: Node, started_by_the_node: bool) -> None:
    set_up(node)
    node.reboot()
    node.change(nvme=node.hardware.nvme[:-1])
    if started_by_the_node:
        node.run(POD, SETUP | {"command": ["sh", "-c", "mdadm --assemble --homehost=any /dev/md/x /dev/nvme*n1"]})
    before = node.disks()
    code, log = set_up(node)
    assert code == 1
    assert f"the scratch array has {DISKS} disks, but this node only has {DISKS - 1}" in log
    assert "Replace the node" in log
    assert node.disks() == before


def test_reports_a_disk_lost_from_a_running_array(node: Node) -> None:
    set_up(node)
    node.change(nvme=node.hardware.nvme[:-1])
    code, log = set_up(node)
    assert code == 1
    assert "/dev/md127 has lost a disk, and with it all data (RAID 0). Replace the node" in log


# -- wrong pod specs ---------------------------------------------------------------------------------------------------


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
def test_rejects_a_wrong_pod_spec(node: Node, wrong: str) -> None:
    changes, texts = WRONG[wrong]
    before = node.disks()
    code, log = node.run(POD, SETUP | changes)
    assert code != 0
    assert [text for text in texts if text not in log] == []
    assert node.disks() == before or "volumeMounts" in changes


def test_rejects_a_node_without_nvme_with_the_fix(tmp_path: Path) -> None:
    assert skus.sku(NO_NVME).nvme is None
    code, log = set_up(Node(tmp_path, sku=NO_NVME))
    assert code == 1
    assert "no disk of model 'Microsoft NVMe Direct Disk': remove the label local-nvme-scratch from its pool" in log
