"""Settings of the NFS provisioner."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from config.facts.storage_classes import aks_classes
from config.schema.base import EMPTY_IS_UNSET, may_be, unfit
from config.schema.operators import ChartSettings
from config.schema.storage import SHARED_CLASS, ClassName

CLASS = "nfs-client-pokprod"
PROVISIONER = "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner"
"""As seed 004 has them."""
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_FOLDER = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
Server = Annotated[
    str,
    StringConstraints(
        pattern=rf"^([a-z]([a-z0-9-]*[a-z0-9])?(\.{_LABEL})*|\d{{1,3}}(\.\d{{1,3}}){{3}})$", max_length=253
    ),
    may_be("the name or the IPv4 address of an NFS server, as in 10.1.0.4"),
    Field(examples=["10.1.0.4"]),
]
"""The chart has it in YAML without quotation marks, where what begins with a digit may be a number."""
Export = Annotated[
    str,
    StringConstraints(pattern=rf"^/({_FOLDER}(/{_FOLDER})*)?$", max_length=255),
    may_be("the path of a folder on that server, as in /exports/ai"),
    Field(examples=["/exports/ai"]),
]


def _is_free(name: str) -> str:
    """Refuses a class of others."""
    if name in aks_classes().all:
        raise unfit(f"is {name}, AKS's own", CLASS)
    if name == SHARED_CLASS:
        raise unfit(f"is {name}, the class of storage.sharedFiles nfs", CLASS)
    return name


class NfsProvisionerSettings(ChartSettings):
    """It is off unless it is asked for: it needs an NFS server."""

    enabled: bool = False
    """Whether the stack has it."""
    server: Annotated[Server | None, EMPTY_IS_UNSET] = None
    """The NFS server, by name or IPv4 address, which all nodes must reach; needed where it is on. Volumes that are
    there keep theirs.
    """
    path: Annotated[Export | None, EMPTY_IS_UNSET] = None
    """The folder on the server in which each volume is a folder; needed where it is on."""
    storage_class: Annotated[
        ClassName, may_be(f"the name of a new StorageClass, as in {CLASS}"), AfterValidator(_is_free)
    ] = CLASS
    """The StorageClass that it makes; shared files are of it, unless `storage.sharedFiles` or `storage.sharedClass` is
    set.
    """
    provisioner: Annotated[
        str,
        StringConstraints(pattern=rf"^{_LABEL}(\.{_LABEL})*/[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?$"),
        may_be(f"a name with a domain before it, as in {PROVISIONER}"),
    ] = PROVISIONER
    """By what name it answers for that class. Kubernetes lets no class change it: another needs another class, too."""

    @property
    def shared_class(self) -> str | None:
        """The class that it makes."""
        return self.storage_class
