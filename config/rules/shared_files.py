"""What shared files are kept on (`storage.sharedFiles`, `storage.sharedClass`), and whether the network allows it."""

from __future__ import annotations

from collections.abc import Iterator

from config.facts.near import mistyped
from config.facts.storage_classes import aks_classes
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, either_by_hand, remove_command, say
from config.schema.models import StackFile
from config.schema.regions import in_public_cloud
from config.schema.storage import SHARED_CLASS
from config.schema.workload import Ground

PATH: Path = ("storage", "sharedFiles")
CLASS: Path = ("storage", "sharedClass")
_PUBLIC = "files in an account with a public address, and network.private lets data have none"


def shared_files_problems(stack: StackFile) -> Iterator[Problem]:
    """NFS has no login: who may mount a share, its network alone says (Azure's page on NFS file shares)."""
    chosen, network = stack.storage.shared_files, stack.network
    if chosen == "nfs" and not (network.own or network.private):
        what = "is nfs, which is reached from a network of one's own alone, and nodes are in AKS's"
        allowed = "smb, or network.addressSpace or network.id beside it"
        yield Problem(PATH, what, allowed, by_hand(PATH), lacking=("network",))
    elif chosen == "nfs" and not network.private and not in_public_cloud(stack.location):
        what = f"is nfs, and this program knows the private zones of Azure's public cloud only, not {stack.location}'s"
        yield Problem(PATH, what, "smb, or a region of the public cloud", by_hand(PATH))
    elif chosen == "smb" and network.private:
        yield Problem(PATH, f"is smb, {_PUBLIC}", "nfs or none, or network.private false", by_hand(PATH))
    if stack.storage.shared_class:
        yield from _of_class(stack, stack.storage.shared_class)


def _of_class(stack: StackFile, name: str) -> Iterator[Problem]:
    """A class that another key speaks against, that the network does not allow, or that is not there."""
    chosen, brought = stack.storage.shared_files, stack.operators.shared_class
    if chosen:
        what = f"is {name}, and storage.sharedFiles is {chosen}: shared files are kept on one of them"
        fix = say("keep the one that has your files in the stack file, and remove the other")
        yield Problem(CLASS, what, "one of the two", fix)
    elif name == SHARED_CLASS:
        what = f"is {name}, the class that storage.sharedFiles nfs makes"
        yield Problem(CLASS, what, "no value, or another class", remove_command(CLASS))
    elif name in aks_classes().files and stack.network.private:
        how = either_by_hand(CLASS, "set it to a class of private files")
        allowed = "storage.sharedFiles nfs, a class of private files, or network.private false"
        yield Problem(CLASS, f"is {name}, {_PUBLIC}", allowed, how)
    elif brought and mistyped(name, [brought]):
        what = f"is {name}, and the one that is made here is {brought}"
        yield Problem(CLASS, what, f"no value, or {brought}", remove_command(CLASS))


def without_shared_files(ground: Ground, workload: str) -> Iterator[Problem]:
    """Of a workload that has some, on a platform that has none for it."""
    if ground.shared_files == "none":
        what = f"is none, and workload {workload} has shared files"
        yield Problem(PATH, what, f"nfs or smb, or a stack without {workload}", by_hand(PATH))
