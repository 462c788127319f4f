"""Names of a stack's resources in Azure, the same each time."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NODE_RESOURCE_GROUP = 80
"""AKS: characters of the node resource group's name."""
MAX_DNS_PREFIX = 54
MAX_DNS_LABEL = 63
WORKLOAD_NAMESPACE = "ai"
"""Of workloads that a platform's own stack runs; those of another stack are in a namespace named after that."""
NODES_SUFFIX = "-nodes"


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
