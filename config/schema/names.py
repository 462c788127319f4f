"""Names of a stack's resources in Azure, the same each time, and of those that are unique in all of Azure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MAX_NODE_RESOURCE_GROUP = 80
"""AKS: characters of the node resource group's name."""
MAX_DNS_PREFIX = 54
MAX_DNS_LABEL = 63
WORKLOAD_NAMESPACE = "ai"
"""Of workloads that a platform's own stack runs; those of another stack are in a namespace named after that."""
NODES_SUFFIX = "-nodes"
_DIGEST = 6


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
        return self.resource_group + NODES_SUFFIX

    @property
    def dns_prefix(self) -> str:
        """The first part of the API server's host name."""
        return self.cluster


def global_name(names: Names, subscription_id: str, limit: int, key: str = "") -> str:
    """Lower-case letters and digits of project and stack, and a digest of the subscription; `limit` characters at most.

    Stacks of one name in two subscriptions get two names, and so do stacks whose names differ only where they are cut.
    `key`, of letters and digits, tells several of one stack apart: stack devinput has another name than input of dev.
    """
    text = re.sub(r"[^a-z0-9]", "", f"{names.project}{names.stack}".lower())
    room = limit - _DIGEST - len(key)
    full = "/".join(filter(None, [subscription_id, names.project, names.stack, key]))
    seed = full if key or len(text) > room else subscription_id
    return text[:room] + key + hashlib.sha256(seed.encode()).hexdigest()[:_DIGEST]
