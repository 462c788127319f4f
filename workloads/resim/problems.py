"""Checks of resimulation's options and placement, before deployment."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.blobfuse import has_folder, profiles
from config.data.near import hint, near
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, path_text, remove_command, set_command
from config.schema.storage import Account
from config.schema.workload import Candidate
from workloads.resim import metaseq
from workloads.resim.options import NAME, ResimOptions

_OPTIONS: Path = ("workloadOptions", NAME)
_READ, _WRITE = "rl", "racwdlmp"
"""Permissions for inputs and for outputs, which are written to a temporary path and renamed."""


def problems(options: ResimOptions, candidate: Candidate) -> Iterator[Problem]:
    yield from _other_pools(options, candidate)
    if options.metaseq:
        yield from metaseq.problems(options.metaseq, candidate)
    for key, name, needed in (
        ("inputContainer", options.input_container, _READ),
        ("outputContainer", options.output_container, _WRITE),
    ):
        account = candidate.storage.by_container().get(name)
        if account is None:
            yield _missing(candidate, key, name, needed)
        else:
            yield from _permissions(account, name, key, needed)
            yield from _outlives(account, name, options.hours)
            yield from _one_folder(account, name)
    yield from _flat(candidate, options.output_container)


def _other_pools(options: ResimOptions, candidate: Candidate) -> Iterator[Problem]:
    for index, key in enumerate(options.other_pools):
        where: Path = (*_OPTIONS, "otherPools", index)
        rest = [each for each in candidate.pools if each != candidate.pool_key and each not in options.other_pools]
        allowed = ", ".join(rest) or "none: the stack has no other pool"
        likely = [each for each in near(key, rest) if each in rest]
        fix = set_command(where, likely[0]) if likely else remove_command(where)
        if key not in candidate.pools:
            yield Problem(where, f"is {key!r}, not a pool of this stack{hint(likely)}", allowed, fix)
        elif key == candidate.pool_key:
            yield Problem(where, f"is {key}, which is already the workload's pool", allowed, fix)
        elif (gpus := candidate.pools[key].gpus) < options.gpus:
            what = f"is {key}, but its nodes have {gpus} GPUs, and a scenario needs {options.gpus}"
            yield Problem(where, what, allowed, fix)


def _missing(candidate: Candidate, key: str, name: str, needed: str) -> Problem:
    there = candidate.storage.by_container()
    likely = near(name, there)
    new = (*candidate.storage.next_account().path_of(name), "permissions")
    fix = set_command((*_OPTIONS, key), likely[0]) if likely else set_command(new, needed)
    what = f"is {name}, a container that the platform does not have{hint(likely)}"
    allowed = f"a container of the platform ({', '.join(there) or 'none is set'})"
    return Problem((*_OPTIONS, key), what, allowed, fix, lacking=("storage", "containers"))


def _permissions(account: Account, name: str, key: str, needed: str) -> Iterator[Problem]:
    container = account.settings.containers[name]
    given = container.permissions
    if missing := [letter for letter in needed if letter not in given]:
        where: Path = (*account.path_of(name), "permissions")
        better = "".join(letter for letter in _WRITE if letter in needed or letter in given)
        what = f"is {given}, but {key} of workload {NAME} also needs {''.join(missing)}"
        # Read permissions do not widen access, because all mounts need them.
        widens = "permissions" in container.model_fields_set and not {*missing} <= {*_READ}
        fix = by_hand(where) if widens else set_command(where, better)
        yield Problem(where, what, f"all of {needed}", fix)


def _outlives(account: Account, name: str, hours: int) -> Iterator[Problem]:
    """Yields a problem if even a new SAS expires before a batch ends. `submit` checks the SAS that exists."""
    container = account.settings.containers[name]
    if account.settings.auth == "identity" or hours < container.days * 24:
        return
    where: Path = (*_OPTIONS, "hours")
    what = f"is {hours}, but the SAS of container {name} is only valid for {container.days} days"
    most = container.days * 24 - 1
    allowed = (
        f"1 to {most}, or {path_text((*account.path_of(name), 'days'))} up to {container.most_days}, "
        f"or {path_text((*account.path, 'auth'))} identity"
    )
    yield Problem(where, what, allowed, set_command(where, most))


def _one_folder(account: Account, name: str) -> Iterator[Problem]:
    """Yields a problem if mounts on a node would share a folder for cached blocks.

    With `auth: identity`, each pod has its own mount (nodeserver.go, NodePublishVolume). Each mount empties the folder
    when it starts and ends, and cannot start while another mount writes there (azure-storage-fuse 2.5.4,
    block_cache.go, Configure: "temp directory not empty").
    """
    profile = account.settings.containers[name].profile
    if account.settings.auth == "identity" and has_folder(profile):
        where: Path = (*account.path_of(name), "profile")
        auth = path_text((*account.path, "auth"))
        what = f"is {profile}, but with {auth} identity the pods of a node would share the folder of cached blocks"
        others = [each for each in profiles() if not has_folder(each)]
        yield Problem(where, what, f"{' or '.join(others)}, or {auth} sas", set_command(where, others[0]))


def _flat(candidate: Candidate, name: str) -> Iterator[Problem]:
    """Yields a problem for an account without a hierarchical namespace. There, blobfuse2 renames a folder blob by blob,
    so that an interruption can leave half an output.
    """
    account = candidate.storage.by_container().get(name)
    if account and not account.settings.hierarchical_namespace:
        where: Path = (*account.path, "hierarchicalNamespace")
        what = f"is false, but workload {NAME} must rename folders of outputs atomically ({name})"
        allowed = "true (this creates another account), or an outputContainer in an account with this setting"
        yield Problem(where, what, allowed, set_command(where, True))
