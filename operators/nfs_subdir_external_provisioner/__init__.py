"""nfs-subdir-external-provisioner: each claim of its StorageClass is a folder on an existing NFS server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ON_SYSTEM_POOL
from config.data.storage_classes import aks_classes
from config.problems.errors import Problem
from config.problems.fixes import Path, path_text, remove_command, say
from config.schema.base import EMPTY_IS_UNSET, may_be, unfit
from config.schema.operators import ChartSettings, Installation, key_of
from config.schema.storage import SHARED_CLASS, ClassName
from operators._lib.release import Values, release

CLASS = "nfs-client-pokprod"
PROVISIONER = "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner"
"""The names of class and provisioner in project-codeflare/mlbatch."""
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
"""The chart does not quote the server in YAML, where a text that begins with a digit may be a number."""
Export = Annotated[
    str,
    StringConstraints(pattern=rf"^/({_FOLDER}(/{_FOLDER})*)?$", max_length=255),
    may_be("the path of a folder on that server, as in /exports/ai"),
    Field(examples=["/exports/ai"]),
]
NAME = "nfs-subdir-external-provisioner"
NAMESPACE = "nfs-provisioner"
RELEASE = "pokprod"
"""The release's name in project-codeflare/mlbatch."""


def _require_unused(name: str) -> str:
    if name in aks_classes().all:
        raise unfit(f"is {name}, which AKS creates", CLASS)
    if name == SHARED_CLASS:
        raise unfit(f"is {name}, the name of the class that storage.sharedFiles=nfs creates", CLASS)
    return name


class NfsProvisionerSettings(ChartSettings):
    """Settings of the NFS provisioner. It is off by default, because it needs an NFS server."""

    enabled: bool = False
    """Whether the stack installs it."""
    server: Annotated[Server | None, EMPTY_IS_UNSET] = None
    """The NFS server, by name or IPv4 address, which all nodes must reach. Required if enabled. Existing volumes keep
    their server.
    """
    path: Annotated[Export | None, EMPTY_IS_UNSET] = None
    """The folder on the server that contains the folders of all volumes. Required if enabled."""
    storage_class: Annotated[
        ClassName, may_be(f"the name of a new StorageClass, as in {CLASS}"), AfterValidator(_require_unused)
    ] = CLASS
    """The StorageClass that it creates. Shared files use it unless `storage.sharedFiles` or `storage.sharedClass` is
    set.
    """
    provisioner: Annotated[
        str,
        StringConstraints(pattern=rf"^{_LABEL}(\.{_LABEL})*/[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?$"),
        may_be(f"a name with a domain before it, as in {PROVISIONER}"),
    ] = PROVISIONER
    """The name of the provisioner in that class. A class cannot change it, so another name needs another class."""

    @property
    def shared_class(self) -> str | None:
        return self.storage_class


class NfsProvisioner(Installed[NfsProvisionerSettings]):
    def create(self, context: InstallContext, settings: NfsProvisionerSettings) -> None:
        made = release(NAME, context, parent=self, values=values(settings), user_values=settings.values, called=RELEASE)
        self.followed = self.provisioners = [made]


def own_values(settings: NfsProvisionerSettings) -> dict[tuple[str, str], str | None]:
    return {
        ("nfs", "server"): settings.server,
        ("nfs", "path"): settings.path,
        ("storageClass", "name"): settings.storage_class,
        ("storageClass", "provisionerName"): settings.provisioner,
    }


def values(settings: NfsProvisionerSettings) -> Values:
    """Returns values of the chart.

    By the chart's default, the folder of a deleted claim is renamed to `archived-<folder>`, so no files are lost. This
    cannot change later, because a class's parameters are immutable.
    """
    made: Values = {**ON_SYSTEM_POOL}
    for (part, key), value in own_values(settings).items():
        made.setdefault(part, {})[key] = value
    return made


_PATH: Path = ("operators", key_of(NAME))
_KEYS = {"server": "server", "path": "path", "name": "storageClass", "provisionerName": "provisioner"}
_EXAMPLES = {"server": "10.1.0.4", "path": "/exports/ai"}


class _NfsProvisioner(Operator[NfsProvisionerSettings]):
    name = NAME
    title = "the NFS provisioner"
    summary = "Creates volumes on an existing NFS server, with a StorageClass for shared files."
    namespace = NAMESPACE
    level = "baseline"
    settings = NfsProvisionerSettings
    component = NfsProvisioner

    def problems(self, installation: Installation) -> Iterator[Problem]:
        own = installation.stack.operators.of(self)
        if not own.enabled:
            return
        for key, example in _EXAMPLES.items():
            if getattr(own, key) is None:
                path: Path = (*_PATH, key)
                command = f"pulumi config set --path {path_text(path)} {example}"
                how = f"set it to the {key} of your NFS share, as in: {command}"
                what = f"is not set, but {self.title} needs an NFS server"
                yield Problem(path, what, f"the {key} of an NFS share, as in {example}", say(how), shows_value=False)
        for value in own_values(own):
            if installation.value(self, *value) is not None:
                path = (*_PATH, "values", *value)
                setting = path_text((*_PATH, _KEYS[value[-1]]))
                yield Problem(path, f"duplicates {setting}", f"no value; use {setting}", remove_command(path))
        if installation.value(self, "storageClass", "create") is False:
            path = (*_PATH, "values", "storageClass", "create")
            what = f"is false, so the class {own.storage_class} would not exist"
            yield Problem(path, what, "true", remove_command(path))


OPERATOR = _NfsProvisioner()
