"""Containers that are mounted by identity (`auth` of their account): what is a SAS' own, what no role gives, and old
drivers.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.facts.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, path_text, remove_command, say, set_command
from config.schema.models import StackFile
from config.schema.storage import FIRST_ROTATION, Account


def identity_problems(stack: StackFile) -> Iterator[Problem]:
    """All of them; that of a driver's chart is for its operator to say."""
    storage = stack.storage
    for account in storage.by_identity():
        yield from _of_sas(account)
        yield from _of_no_role(account)
    mounted = [account for account in storage.by_identity() if account.settings.containers]
    if mounted and storage.driver == "addon":
        yield from _old_addon(stack.cluster.kubernetes_version, _auth(mounted[0]))


def _auth(account: Account) -> str:
    """The key that says so."""
    return path_text((*account.path, "auth"))


def _of_sas(account: Account) -> Iterator[Problem]:
    auth = _auth(account)
    instead = f"no value, or {auth} sas"
    if account.settings.rotation != FIRST_ROTATION:
        path: Path = (*account.path, "rotation")
        yield Problem(path, f"issues new SAS, but {auth} is identity", instead, remove_command(path))
    for name, container in account.settings.containers.items():
        given = {key: key in container.model_fields_set for key in ("sas", "days")} | {"upload": container.upload}
        for key in (key for key, is_set in given.items() if is_set):
            where = (*account.path_of(name), key)
            what = f"is of a SAS, but {auth} is identity, which has none"
            yield Problem(where, what, instead, remove_command(where))


def _of_no_role(account: Account) -> Iterator[Problem]:
    both = "racwdlmp" if account.settings.hierarchical_namespace else "racwdl"
    for name, container in account.settings.containers.items():
        if not container.fits_a_role:
            path, auth = (*account.path_of(name), "permissions"), _auth(account)
            what = f"is {container.permissions}, but a role that lets write ({auth} identity) lets delete too"
            how = f"decide what mounts may do there: rl to read, {both} to write and delete"
            yield Problem(path, what, f"rl, or with both w and d; or {auth} sas", say(how))


def _old_addon(kubernetes: str, auth: str) -> Iterator[Problem]:
    """An older driver takes no notice of what is asked, and looks for the account's key."""
    facts = versions()
    since = facts.identity_mounts
    if since.lacks_addon(kubernetes):
        path = ("cluster", "kubernetesVersion")
        what = f"is {kubernetes!r}, whose blob CSI driver cannot mount by identity ({auth})"
        allowed = f"{since.addon} or newer, whose driver is {since.driver} at least, or storage.driver chart"
        yield Problem(path, what, allowed, set_command(path, facts.kubernetes.default))
