"""Rules of ARM and Kubernetes for names derived from the stack's name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from config.problems.errors import Problem
from config.problems.fixes import Fix, by_hand, run, set_command
from config.schema.names import (
    MAX_DNS_LABEL,
    MAX_DNS_PREFIX,
    MAX_NODE_RESOURCE_GROUP,
    NODES_SUFFIX,
    WORKLOAD_NAMESPACE,
    Names,
)

_LONGEST_JOB = 47
"""The longest name of a RayJob in characters (KubeRay 1.6.2, controllers/ray/utils/constant.go, MaxRayJobNameLength).
It fits a PyTorchJob, too, with the suffix -worker-999 in the names of pods.
"""
_TAKEN = (WORKLOAD_NAMESPACE, "default")
_RESOURCE_GROUP = re.compile(r"[A-Za-z0-9_().-]*[A-Za-z0-9_()-]")


def name_problems(names: Names) -> Iterator[Problem]:
    if len(names.dns_prefix) > MAX_DNS_PREFIX:
        limit = MAX_DNS_PREFIX - len(names.project) - 1
        yield Problem(
            (),
            f"the cluster's name {names.cluster!r} contains the stack's name and has {len(names.cluster)} characters",
            f"a stack name of at most {limit} characters (the API server's DNS prefix has {MAX_DNS_PREFIX} at most)",
            _renamed(names.stack, names.stack[:limit].rstrip("-._")),
        )
    yield from _resource_group_problems(names)


def _resource_group_problems(names: Names) -> Iterator[Problem]:
    path = ("cluster", "resourceGroup")
    group = names.chosen_group
    if group is None:
        return
    limit = MAX_NODE_RESOURCE_GROUP - len(NODES_SUFFIX)
    if not _RESOURCE_GROUP.fullmatch(group) or len(group) > limit:
        better = re.sub(r"[^A-Za-z0-9_().]+", "-", group)[:limit].strip("-.") or names.cluster
        yield Problem(
            path,
            f"is {group!r}, not a valid name of a resource group",
            f"at most {limit} characters: letters, digits, ( ) _ - . but no dot at the end (the nodes' group has the "
            f"same name with {NODES_SUFFIX})",
            by_hand(path) if better.isdigit() else set_command(path, better),  # Pulumi would read digits as a number
        )


def namespace_of(name: str) -> str:
    """Returns the closest valid namespace name; empty if no character is valid."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_DNS_LABEL].rstrip("-")


def is_taken(name: str, of_operators: Iterable[str]) -> bool:
    return name in (*_TAKEN, *of_operators) or name.startswith("kube-")


def namespace_problems(stack: str, of_operators: Iterable[str]) -> Iterator[Problem]:
    taken = (*_TAKEN, *of_operators)
    better = namespace_of(stack)
    if is_taken(stack, of_operators):
        what = f"the stack is named {stack!r}, but the platform already has a namespace of that name"
        yield Problem((), what, f"any name except kube-*, {', '.join(taken)}", _renamed(stack, f"my-{better}"))
    elif stack != better:
        what = f"the stack is named {stack!r}, which is not a valid name for its namespace"
        allowed = f"at most {MAX_DNS_LABEL} lower-case letters, digits and hyphens, with a letter or digit at both ends"
        yield Problem((), what, allowed, _renamed(stack, better or "my-stack"))


def job_name_problems(stack: str, workloads: Iterable[str]) -> Iterator[Problem]:
    """Yields an error if names of jobs in team namespaces cannot begin with the stack's name.

    Names of pods and Services must begin with a letter.
    """
    limit = _LONGEST_JOB - max((len(f"-{name}") for name in workloads), default=_LONGEST_JOB)
    if limit > 0 and (len(stack) > limit or not stack[:1].isalpha()):
        better = (stack if stack[:1].isalpha() else f"s-{namespace_of(stack)}")[:limit].rstrip("-")
        what = f"the stack is named {stack!r}, but the names of its jobs in the team's namespace begin with this name"
        yield Problem((), what, f"at most {limit} characters, the first a letter", _renamed(stack, better))


def _renamed(stack: str, better: str) -> Fix:
    """Returns the command that renames this stack; without `-s`, it would rename the selected stack."""
    return run(f"pulumi stack rename -s {shlex.quote(stack)} {better}")
