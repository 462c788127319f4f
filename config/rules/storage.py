"""Rules for storage: accounts (`storage.accounts`), mounts by identity (`auth`), and shared files (`sharedFiles`)."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.near import mistyped
from config.data.storage_classes import aks_classes
from config.data.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path, by_hand, either_by_hand, path_text, remove_command, say, set_command
from config.schema.models import StackFile
from config.schema.regions import in_public_cloud
from config.schema.storage import FIRST_ROTATION, SHARED_CLASS, Account, AccountSettings, StorageSettings
from config.schema.workload import Candidate

PATH: Path = ("storage", "sharedFiles")
CLASS: Path = ("storage", "sharedClass")
_PUBLIC = "which stores files in an account with a public address, but network.private is true"


def account_problems(stack: StackFile) -> Iterator[Problem]:
    yield from _unused_settings(stack)
    yield from _duplicate_containers(stack.storage)
    yield from _duplicate_names(stack.storage)


def _unused_settings(stack: StackFile) -> Iterator[Problem]:
    """Yields settings of `storage` itself if only `storage.accounts` have containers: the user may have meant those
    accounts.

    Skips `protect`, which also protects a cluster with claims that keep files.
    """
    storage = stack.storage
    if storage.containers or not storage.accounts:
        return
    of_all = {"containers", "protect"}
    for name, field in AccountSettings.model_fields.items():
        if name in storage.model_fields_set - of_all:
            key = str(field.alias)
            what = "applies to the account of storage.containers, which is not set"
            allowed = f"no value, or storage.containers; for other accounts: storage.accounts.<key>.{key}"
            yield Problem(("storage", key), what, allowed, _move_to_accounts(storage, name, key))


def _move_to_accounts(storage: StorageSettings, name: str, key: str) -> Fix:
    lacking = [account for account, each in sorted(storage.accounts.items()) if name not in each.model_fields_set]
    value = getattr(storage, name)
    edits = [Edit(("storage", "accounts", account, key), value) for account in lacking if name != "account_name"]
    return Fix((*edits, Edit(("storage", key))))


def _duplicate_containers(storage: StorageSettings) -> Iterator[Problem]:
    first: dict[str, Account] = {}
    for account in storage.all_accounts():
        for name in account.settings.containers:
            other = first.setdefault(name, account)
            if other is not account:
                path = account.path_of(name)
                what = (
                    f"has the same name as {path_text(other.path_of(name))}, but workloads find containers only by name"
                )
                fix = say(
                    "in the stack file, rename the container without data: "
                    "`pulumi up` deletes the data of a renamed container"
                )
                yield Problem(path, what, "a name that no other container of the stack has", fix)


def _duplicate_names(storage: StorageSettings) -> Iterator[Problem]:
    first: dict[str, Account] = {}
    for account in storage.all_accounts():
        name, path = account.settings.account_name, (*account.path, "accountName")
        if name and (other := first.setdefault(name, account)) is not account:
            what = f"is {name!r}, the same as {path_text((*other.path, 'accountName'))}"
            yield Problem(path, what, "a name that is unique in Azure", by_hand(path))


def identity_problems(stack: StackFile) -> Iterator[Problem]:
    storage = stack.storage
    for account in storage.by_identity():
        yield from _sas_settings(account)
        yield from _unsupported_permissions(account)
    mounted = [account for account in storage.by_identity() if account.settings.containers]
    if mounted and storage.driver == "addon":
        yield from _old_addon(stack.cluster.kubernetes_version, _auth(mounted[0]))


def _auth(account: Account) -> str:
    return path_text((*account.path, "auth"))


def _sas_settings(account: Account) -> Iterator[Problem]:
    auth = _auth(account)
    instead = f"no value, or {auth} sas"
    if account.settings.rotation != FIRST_ROTATION:
        path: Path = (*account.path, "rotation")
        yield Problem(path, f"issues new SAS, but {auth} is identity", instead, remove_command(path))
    for name, container in account.settings.containers.items():
        given = {key: key in container.model_fields_set for key in ("sas", "days")} | {"upload": container.upload}
        for key in (key for key, is_set in given.items() if is_set):
            where = (*account.path_of(name), key)
            what = f"is a setting of SAS, but {auth} is identity"
            yield Problem(where, what, instead, remove_command(where))


def _unsupported_permissions(account: Account) -> Iterator[Problem]:
    both = "racwdlmp" if account.settings.hierarchical_namespace else "racwdl"
    for name, container in account.settings.containers.items():
        if not container.fits_a_role:
            path, auth = (*account.path_of(name), "permissions"), _auth(account)
            what = f"is {container.permissions}, but roles that allow writing ({auth} identity) also allow deletion"
            how = f"set it to rl to read, or to {both} to write and delete"
            yield Problem(path, what, f"rl, or letters with both w and d; or {auth} sas", say(how))


def _old_addon(kubernetes: str, auth: str) -> Iterator[Problem]:
    """Yields an error if the add-on's driver is too old: it ignores `auth` and looks for the account's key."""
    facts = versions()
    since = facts.identity_mounts
    if since.lacks_addon(kubernetes):
        path = ("cluster", "kubernetesVersion")
        what = f"is {kubernetes!r}, and its blob CSI driver cannot mount by identity ({auth})"
        allowed = f"{since.addon} or newer (with driver {since.driver} or newer), or storage.driver chart"
        yield Problem(path, what, allowed, set_command(path, facts.kubernetes.default))


def shared_files_problems(stack: StackFile) -> Iterator[Problem]:
    """Yields problems of shared files. NFS has no login: only the network limits access (Azure's page on NFS)."""
    chosen, network = stack.storage.shared_files, stack.network
    if chosen == "nfs" and not (network.own or network.private):
        what = "is nfs, which needs a custom network, but nodes are in AKS's network"
        allowed = "smb, or also set network.addressSpace or network.id"
        yield Problem(PATH, what, allowed, by_hand(PATH), lacking=("network",))
    elif chosen == "nfs" and not network.private and not in_public_cloud(stack.location):
        what = f"is nfs, but this program knows private DNS zones only of the public cloud, not of {stack.location}"
        yield Problem(PATH, what, "smb, or a region of the public cloud", by_hand(PATH))
    elif chosen == "smb" and network.private:
        yield Problem(PATH, f"is smb, {_PUBLIC}", "nfs or none, or network.private false", by_hand(PATH))
    if stack.storage.shared_class:
        yield from _class_problems(stack, stack.storage.shared_class)


def _class_problems(stack: StackFile, name: str) -> Iterator[Problem]:
    chosen, brought = stack.storage.shared_files, stack.operators.shared_class
    if chosen:
        what = f"is {name}, but storage.sharedFiles is {chosen}: only one of them can store shared files"
        fix = say("in the stack file, keep the setting that has your files, and remove the other setting")
        yield Problem(CLASS, what, "one of the two", fix)
    elif name == SHARED_CLASS:
        what = f"is {name}, the name of the class that storage.sharedFiles=nfs creates"
        yield Problem(CLASS, what, "no value, or another class", remove_command(CLASS))
    elif name in aks_classes().files and stack.network.private:
        how = either_by_hand(CLASS, "set it to a class of private files")
        allowed = "storage.sharedFiles nfs, a class of private files, or network.private false"
        yield Problem(CLASS, f"is {name}, {_PUBLIC}", allowed, how)
    elif brought and mistyped(name, [brought]):
        what = f"is {name}, but the class that this stack creates is {brought}"
        yield Problem(CLASS, what, f"no value, or {brought}", remove_command(CLASS))


def without_shared_files(candidate: Candidate, workload: str) -> Iterator[Problem]:
    if candidate.shared_files == "none":
        what = f"is none, but workload {workload} needs shared files"
        yield Problem(PATH, what, f"nfs or smb, or a stack without {workload}", by_hand(PATH))
