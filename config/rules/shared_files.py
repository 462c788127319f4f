"""What shared files are kept on (`storage.sharedFiles`), and whether the network allows it."""

from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.models import StackFile
from config.schema.regions import in_public_cloud
from config.schema.workload import Ground

PATH: Path = ("storage", "sharedFiles")


def shared_files_problems(stack: StackFile) -> Iterator[Problem]:
    """NFS has no login: who may mount a share, its network alone says (Azure's page on NFS file shares)."""
    chosen, network = stack.storage.shared_files, stack.network
    if chosen == "nfs" and not (network.own or network.private):
        what = "is nfs, which is reached from a network of one's own alone, and nodes are in AKS's"
        allowed = "smb, or network.addressSpace or network.id beside it"
        yield Problem(PATH, what, allowed, remove_command(PATH), lacking=("network",))
    elif chosen == "nfs" and not network.private and not in_public_cloud(stack.location):
        what = f"is nfs, and this program knows the private zones of Azure's public cloud only, not {stack.location}'s"
        yield Problem(PATH, what, "smb, or a region of the public cloud", remove_command(PATH))
    elif chosen == "smb" and network.private:
        what = "is smb, files in an account with a public address, and network.private lets data have none"
        yield Problem(PATH, what, "nfs or none, or network.private false", set_command(PATH, "nfs"))


def without_shared_files(ground: Ground, workload: str) -> Iterator[Problem]:
    """Of a workload that has some, on a platform that has none for it."""
    if ground.shared_files == "none":
        what = f"is none, and workload {workload} has shared files"
        others = (set_command(PATH, "smb"),)
        yield Problem(PATH, what, f"nfs or smb, or a stack without {workload}", set_command(PATH, "nfs"), others=others)
