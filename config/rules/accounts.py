"""Several storage accounts (`storage.accounts`): keys of one that is not there, and names that two of them have."""

from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, by_hand, path_text, say
from config.schema.models import StackFile
from config.schema.storage import Account, AccountSettings, StorageSettings


def account_problems(stack: StackFile) -> Iterator[Problem]:
    """All of them."""
    yield from _of_no_account(stack)
    yield from _containers_of_two(stack.storage)
    yield from _names_of_two(stack.storage)


def _of_no_account(stack: StackFile) -> Iterator[Problem]:
    """Yields keys of the account of `storage` where only other accounts have containers, and may be meant.

    `protect` also protects the cluster if claims keep files in it.
    """
    storage = stack.storage
    if storage.containers or not storage.accounts:
        return
    of_all = {"containers", "protect"}
    for name, field in AccountSettings.model_fields.items():
        if name in storage.model_fields_set - of_all:
            key = str(field.alias)
            what = "is of the account with storage.containers, of which there are none"
            allowed = f"no value, or storage.containers; for other accounts: storage.accounts.<key>.{key}"
            yield Problem(("storage", key), what, allowed, _handed_on(storage, name, key))


def _handed_on(storage: StorageSettings, name: str, key: str) -> Fix:
    """Sets the key for each account that has it not, but for a name, which one alone can have."""
    lacking = [account for account, each in sorted(storage.accounts.items()) if name not in each.model_fields_set]
    value = getattr(storage, name)
    edits = [Edit(("storage", "accounts", account, key), value) for account in lacking if name != "account_name"]
    return Fix((*edits, Edit(("storage", key))))


def _containers_of_two(storage: StorageSettings) -> Iterator[Problem]:
    """Workloads name a container, and no account; so do its volumes."""
    first: dict[str, Account] = {}
    for account in storage.all_accounts():
        for name in account.settings.containers:
            other = first.setdefault(name, account)
            if other is not account:
                path = account.path_of(name)
                what = f"has the name of {path_text(other.path_of(name))}, and workloads name containers alone"
                fix = say("rename the new one in the stack file: `pulumi up` deletes the data of one that is renamed")
                yield Problem(path, what, "a name that no other container of the stack has", fix)


def _names_of_two(storage: StorageSettings) -> Iterator[Problem]:
    first: dict[str, Account] = {}
    for account in storage.all_accounts():
        name, path = account.settings.account_name, (*account.path, "accountName")
        if name and (other := first.setdefault(name, account)) is not account:
            what = f"is {name!r}, as is {path_text((*other.path, 'accountName'))}"
            yield Problem(path, what, "a name that nobody else in Azure has", by_hand(path))
