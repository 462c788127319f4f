"""nfs-subdir-external-provisioner: each claim of its StorageClass is a folder on an NFS server that is there."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from operators._release import Values, release
from operators.nfs_subdir_external_provisioner.settings import NfsProvisionerSettings

NAME = "nfs-subdir-external-provisioner"
NAMESPACE = "nfs-provisioner"
RELEASE = "pokprod"
"""As seed 004 calls it."""


class NfsProvisioner(Installed):
    """The release, with the StorageClass."""

    def __init__(
        self, name: str, site: Site, settings: NfsProvisionerSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        made = release(NAME, site, parent=self, values=values(settings), user_values=settings.values, called=RELEASE)
        self.followed = self.provisioners = [made]
        self.register_outputs({})


def own_values(settings: NfsProvisionerSettings) -> dict[tuple[str, str], str | None]:
    """Values of the chart that have a setting, by their paths."""
    return {
        ("nfs", "server"): settings.server,
        ("nfs", "path"): settings.path,
        ("storageClass", "name"): settings.storage_class,
        ("storageClass", "provisionerName"): settings.provisioner,
    }


def values(settings: NfsProvisionerSettings) -> Values:
    """Values of the chart: it runs on the system pool.

    What becomes of the folder of a claim that is gone stays as the chart has it: it is kept, as `archived-<folder>`.
    Nobody loses files by it, and Kubernetes lets no class change that later (its parameters are immutable).
    """
    made: Values = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
    for (part, key), value in own_values(settings).items():
        made.setdefault(part, {})[key] = value
    return made
