"""Deterministic names of a stack's Azure resources, including the globally unique ones."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MAX_NODE_RESOURCE_GROUP = 80
MAX_DNS_PREFIX = 54
MAX_DNS_LABEL = 63
WORKLOAD_NAMESPACE = "ai"
"""The namespace of workloads in the platform's own stack. Workloads of another stack use a namespace with the name of
that stack.
"""
NODES_SUFFIX = "-nodes"
_DIGEST = 6


@dataclass(frozen=True)
class StackName:
    organization: str
    project: str
    name: str

    def __str__(self) -> str:
        return f"{self.organization}/{self.project}/{self.name}"

    def beside(self, other: StackName) -> str:
        """Returns the name for `pulumi -s` in the project of `other`: the short name if the project is the same."""
        return self.name if (self.organization, self.project) == (other.organization, other.project) else str(self)


@dataclass(frozen=True)
class Names:
    """Names derived from project and stack; `chosen_group` replaces the derived resource group."""

    project: str
    stack: str
    chosen_group: str | None = None

    @property
    def cluster(self) -> str:
        return re.sub(r"[^a-z0-9-]+", "-", f"{self.project}-{self.stack}".lower()).strip("-")

    @property
    def resource_group(self) -> str:
        return self.chosen_group or self.cluster

    @property
    def node_resource_group(self) -> str:
        return self.resource_group + NODES_SUFFIX

    @property
    def dns_prefix(self) -> str:
        return self.cluster


def global_name(names: Names, subscription_id: str, limit: int, key: str = "") -> str:
    """Returns a globally unique name: lower-case letters and digits of project and stack, then a digest.

    The digest distinguishes stacks of the same name in two subscriptions, and names that are cut to `limit` characters.
    `key` (letters and digits) distinguishes several names of one stack. Key `input` of stack `dev` and stack `devinput`
    have different names.
    """
    text = re.sub(r"[^a-z0-9]", "", f"{names.project}{names.stack}".lower())
    max_length = limit - _DIGEST - len(key)
    full = "/".join(filter(None, [subscription_id, names.project, names.stack, key]))
    seed = full if key or len(text) > max_length else subscription_id
    return text[:max_length] + key + hashlib.sha256(seed.encode()).hexdigest()[:_DIGEST]
