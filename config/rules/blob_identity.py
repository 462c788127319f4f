"""Containers that are mounted by identity (`storage.auth`): what is a SAS' own, what no role gives, and old drivers."""

from __future__ import annotations

from collections.abc import Iterator

from config.facts.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.models import StackFile
from config.schema.storage import FIRST_ROTATION, ContainerSettings

_STORAGE: Path = ("storage",)
_INSTEAD = "nothing, or storage.auth sas"


def identity_problems(stack: StackFile) -> Iterator[Problem]:
    """All of them; that of a driver's chart is for its operator to say."""
    storage = stack.storage
    if storage.auth != "identity":
        return
    if storage.rotation != FIRST_ROTATION:
        path = (*_STORAGE, "rotation")
        yield Problem(path, "issues new SAS, but storage.auth is identity", _INSTEAD, remove_command(path))
    for name, container in storage.containers.items():
        where = (*_STORAGE, "containers", name)
        yield from _of_sas(container, where)
        yield from _of_no_role(container, where, hierarchical_namespace=storage.hierarchical_namespace)
    if storage.needs("addon"):
        yield from _old_addon(stack.cluster.kubernetes_version)


def _of_sas(container: ContainerSettings, where: Path) -> Iterator[Problem]:
    given = {"sas": "sas" in container.model_fields_set, "days": "days" in container.model_fields_set}
    for key, is_set in (given | {"upload": container.upload}).items():
        if is_set:
            what = "is of a SAS, but storage.auth is identity, which has none"
            yield Problem((*where, key), what, _INSTEAD, remove_command((*where, key)))


def _of_no_role(container: ContainerSettings, where: Path, *, hierarchical_namespace: bool) -> Iterator[Problem]:
    if not container.fits_a_role:
        path, better = (*where, "permissions"), "racwdlmp" if hierarchical_namespace else "racwdl"
        what = f"is {container.permissions}, but a role that lets write (storage.auth identity) lets delete too"
        yield Problem(path, what, "rl, or with both w and d; or storage.auth sas", set_command(path, better))


def _old_addon(kubernetes: str) -> Iterator[Problem]:
    """An older driver takes no notice of what is asked, and looks for the account's key."""
    facts = versions()
    since = facts.identity_mounts
    if since.lacks_addon(kubernetes):
        path = ("cluster", "kubernetesVersion")
        what = f"is {kubernetes!r}, whose blob CSI driver cannot mount by identity (storage.auth)"
        allowed = f"{since.addon} or newer, whose driver is {since.driver} at least, or storage.driver chart"
        yield Problem(path, what, allowed, set_command(path, facts.kubernetes.default))
