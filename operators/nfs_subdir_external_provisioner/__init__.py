"""The NFS provisioner: shared files on an NFS server that is there, a folder for each claim."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi

from components.operators import Installed, Operator, Site
from config.problems.errors import Problem
from config.problems.fixes import Path, path_text, remove_command, say
from config.schema.operators import Installation, key_of
from operators.nfs_subdir_external_provisioner.component import NAME, NAMESPACE, NfsProvisioner, own_values
from operators.nfs_subdir_external_provisioner.settings import NfsProvisionerSettings

_PATH: Path = ("operators", key_of(NAME))
_KEYS = {"server": "server", "path": "path", "name": "storageClass", "provisionerName": "provisioner"}
"""What its settings are called here, by the last part of their paths among the chart's values."""
_EXAMPLES = {"server": "10.1.0.4", "path": "/exports/ai"}


class _NfsProvisioner(Operator[NfsProvisionerSettings]):
    name = NAME
    title = "the NFS provisioner"
    summary = "Makes volumes on an NFS server that is there, with a StorageClass for shared files."
    namespace = NAMESPACE
    level = "baseline"
    settings = NfsProvisionerSettings

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """No server, no path, and values that have a setting, by which others know them."""
        own = installation.stack.operators.of(self)
        if not own.enabled:
            return
        for key, example in _EXAMPLES.items():
            if getattr(own, key) is None:
                path: Path = (*_PATH, key)
                how = f"set it to your server's, as in: pulumi config set --path {path_text(path)} {example}"
                what = f"is not set, and {self.title} has no server of its own"
                yield Problem(path, what, f"that of an NFS server, as in {example}", say(how), shows_value=False)
        for value in own_values(own):
            if installation.value(self, *value) is not None:
                path = (*_PATH, "values", *value)
                setting = path_text((*_PATH, _KEYS[value[-1]]))
                yield Problem(path, f"is what {setting} is for", f"nothing, and {setting}", remove_command(path))
        if installation.value(self, "storageClass", "create") is False:
            path = (*_PATH, "values", "storageClass", "create")
            what = f"is false, and so nothing would make {own.storage_class}"
            yield Problem(path, what, "true", remove_command(path))

    def install(self, site: Site, settings: NfsProvisionerSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NfsProvisioner(self.name, site, settings, opts)


OPERATOR = _NfsProvisioner()
