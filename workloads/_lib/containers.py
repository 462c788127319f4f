"""Checks that a workload's blob containers exist and allow the needed access."""

from __future__ import annotations

from collections.abc import Iterator

from config.data.blobfuse import largest_file, profiles, remembers
from config.data.near import alike, hint
from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, path_text, set_command
from config.schema.storage import Account
from config.schema.workload import Candidate

_READ = "rl"
_WRITE = "racwdl"
"""Permissions to write a checkpoint to a temporary name, rename it, and delete the oldest checkpoint."""
_WRITE_HIERARCHICAL = "racwdlmp"
"""The same permissions for a hierarchical namespace (ContainerSettings.permissions)."""
_SHARE = 10 * 2**30
"""The bytes of a checkpoint, or of one process's share, that a container must allow."""


def container_problems(
    workload: str, candidate: Candidate, key: str, name: str, *, writes: bool = False
) -> Iterator[Problem]:
    there = candidate.storage.by_container()
    account = there.get(name) or candidate.storage.next_account()
    needed = (_WRITE_HIERARCHICAL if account.settings.hierarchical_namespace else _WRITE) if writes else _READ
    option: Path = ("workloadOptions", workload, key)
    where: Path = (*account.path_of(name), "permissions")
    if name not in there:
        known = ", ".join(there) or "none is set"
        what = f"is {name}, a container that the platform does not have"
        likely = alike(name, there)
        fix = set_command(option, likely[0]) if likely else set_command(where, needed)
        allowed = f"a container of the platform ({known})"
        yield Problem(option, what + hint(likely), allowed, fix, lacking=("storage", "containers"))
        return
    container = account.settings.containers[name]
    permissions = container.permissions
    if missing := [letter for letter in needed if letter not in permissions]:
        better = "".join(letter for letter in _WRITE_HIERARCHICAL if letter in needed or letter in permissions)
        what = f"is {permissions}, but {key} of workload {workload} also needs {''.join(missing)}"
        allowed = f"all of {needed}"
        if needed == _WRITE_HIERARCHICAL:
            allowed += f", or {_WRITE} if {path_text((*account.path, 'hierarchicalNamespace'))} is false"
        # Read permissions do not widen access, because all mounts need them.
        widens = "permissions" in container.model_fields_set and not {*missing} <= {*_READ}
        fix = by_hand(where) if widens else set_command(where, better)
        yield Problem(where, what, allowed, fix)
    if writes:
        yield from _too_small(workload, account, key, name)


def _too_small(workload: str, account: Account, key: str, name: str) -> Iterator[Problem]:
    profile = account.settings.containers[name].profile
    if (most := largest_file(profile)) >= _SHARE:
        return
    where: Path = (*account.path_of(name), "profile")
    limit = f"is {profile}, which limits files to {most / 2**20:.0f} MiB"
    what = f"{limit}, but workload {workload} saves checkpoints there ({key})"
    usable = [each for each in profiles() if largest_file(each) >= _SHARE]
    best = next(each for each in usable if not remembers(each))  # also safe for several nodes
    yield Problem(where, what, ", ".join(usable), set_command(where, best))
