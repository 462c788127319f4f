"""Teams: the users of the cluster, and each team's GPUs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from config.schema.base import PLAIN_DIGITS, Model, Text, may_be, protects, unfit
from config.schema.resource_ids import ObjectId

MAX_GPUS = 1_000_000
"""A limit above the number of GPUs in any AKS cluster (5,000 nodes), even with GPU partitions."""
_EXAMPLE = "a user name in the cluster, as in alice or alice@example.com"


def _user(name: str) -> str:
    """Rejects invalid names, and names that Kubernetes reserves for its components and built-in groups (`system:`)."""
    if name.startswith("system:"):
        raise unfit(f"is {name!r}, a name that Kubernetes reserves", None, allowed=_EXAMPLE)
    if not name.isprintable() or name != name.strip() or not name or {*name} & {*"*,;"}:
        raise unfit(f"is {name!r}, not a valid user name", None, allowed=_EXAMPLE)
    return name


User = Annotated[Text, AfterValidator(_user), may_be(_EXAMPLE)]
Gpus = Annotated[int, Field(ge=0, le=MAX_GPUS), PLAIN_DIGITS]
_LIMIT = may_be(f"a whole number from 0 to {MAX_GPUS}; leave it out for no limit")


class TeamSettings(Model):
    """One team: a namespace with the team's name, where its members queue jobs, and the team's quota."""

    gpus: Annotated[Gpus, Field(examples=[8]), protects("limit")]
    """GPUs that the team owns, with the same share of the node's other resources. If other teams have borrowed them,
    the team gets them back at once. Its jobs may also use GPUs that other teams leave idle.
    """
    lending_limit: Annotated[Gpus | None, protects("limit"), _LIMIT] = None
    """Maximum number of the team's GPUs that other teams may borrow, with the same share of other resources; by default
    all.
    """
    borrowing_limit: Annotated[Gpus | None, protects("limit"), _LIMIT] = None
    """Maximum number of GPUs that the team's jobs may borrow from other teams; by default as many as these lend."""
    pins_memory: Annotated[bool, protects([False, True])] = False
    """Allow the team's pods to lock memory (capability IPC_LOCK), which multi-node jobs need on InfiniBand. All other
    rules of the Pod Security level `baseline` stay in force.
    """
    users: tuple[User, ...] = ()
    """Users who may run jobs in the namespace, by their names in the cluster. With Entra, use the user principal name,
    in the same case as in Entra; for guests, service principals and managed identities use the object id.
    """
    groups: Annotated[tuple[ObjectId, ...], protects("stated")] = ()
    """Object ids of Entra groups whose members may run jobs, too. Each group gets the role that it needs to request a
    kubeconfig.
    """
