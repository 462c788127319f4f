"""Names of a stack's resources in Azure: stable, and checked for what ARM allows before anything is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from config.problems.errors import Problem
from config.problems.fixes import run, set_command

MAX_NODE_RESOURCE_GROUP = 80
"""AKS: characters of the node resource group's name."""
MAX_DNS_PREFIX = 54
MAX_DNS_LABEL = 63
WORKLOAD_NAMESPACE = "ai"
"""Of workloads that a platform's own stack runs; those of another stack are in a namespace named after that."""
_NODES = "-nodes"
_RESOURCE_GROUP = re.compile(r"[A-Za-z0-9_().-]*[A-Za-z0-9_()-]")


@dataclass(frozen=True)
class StackName:
    """A stack's full name."""

    organization: str
    project: str
    name: str

    def __str__(self) -> str:
        return f"{self.organization}/{self.project}/{self.name}"

    def beside(self, other: StackName) -> str:
        """As `pulumi -s` takes it where `other` is deployed from: the bare name of a stack of the same project."""
        return self.name if (self.organization, self.project) == (other.organization, other.project) else str(self)


@dataclass(frozen=True)
class Names:
    """Names derived from the project and the stack; `chosen_group` takes the place of the derived resource group."""

    project: str
    stack: str
    chosen_group: str | None = None

    @property
    def cluster(self) -> str:
        """The AKS cluster."""
        return re.sub(r"[^a-z0-9-]+", "-", f"{self.project}-{self.stack}".lower()).strip("-")

    @property
    def resource_group(self) -> str:
        """The resource group of everything."""
        return self.chosen_group or self.cluster

    @property
    def node_resource_group(self) -> str:
        """The resource group that AKS makes for its virtual machines."""
        return self.resource_group + _NODES

    @property
    def dns_prefix(self) -> str:
        """The first part of the API server's host name."""
        return self.cluster


def name_problems(names: Names) -> Iterator[Problem]:
    """What is wrong with names once they are derived."""
    if len(names.dns_prefix) > MAX_DNS_PREFIX:
        room = MAX_DNS_PREFIX - len(names.project) - 1
        yield Problem(
            (),
            f"the stack's name makes the cluster's name {names.cluster!r}, {len(names.cluster)} characters long",
            f"a stack name of at most {room} characters (the API server's DNS prefix has {MAX_DNS_PREFIX} at most)",
            run(f"pulumi stack rename {names.stack[:room].rstrip('-._')}"),
        )
    yield from _resource_group_problems(names)


def _resource_group_problems(names: Names) -> Iterator[Problem]:
    path = ("cluster", "resourceGroup")
    group = names.chosen_group
    if group is None:
        return
    room = MAX_NODE_RESOURCE_GROUP - len(_NODES)
    if not _RESOURCE_GROUP.fullmatch(group) or len(group) > room:
        better = re.sub(r"[^A-Za-z0-9_().]+", "-", group)[:room].strip("-.") or names.cluster
        yield Problem(
            path,
            f"is {group!r}, not a name that ARM takes",
            f"at most {room} letters, digits and ( ) _ - . with no dot at the end (the nodes' group adds {_NODES})",
            set_command(path, better),
        )


def namespace_problems(stack: str, of_operators: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with a stack's name as that of the namespace of its workloads."""
    taken = (WORKLOAD_NAMESPACE, "default", *of_operators)
    better = re.sub(r"[^a-z0-9]+", "-", stack.lower()).strip("-")[:MAX_DNS_LABEL].rstrip("-")
    if stack in taken or stack.startswith("kube-"):
        what = f"the stack is named {stack!r}, and so would its namespace be, but the platform has one of that name"
        yield Problem((), what, f"any name but kube-*, {', '.join(taken)}", run(f"pulumi stack rename my-{better}"))
    elif stack != better:
        what = f"the stack is named {stack!r}, which Kubernetes refuses as the name of its namespace"
        allowed = f"at most {MAX_DNS_LABEL} lower-case letters, digits and hyphens, a letter or digit at both ends"
        yield Problem((), what, allowed, run(f"pulumi stack rename {better or 'my-stack'}"))
