"""Teams: who shares the cluster, and how many of its GPUs are whose."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from config.schema.base import PLAIN_DIGITS, Model, Text, may_be, protects, unfit
from config.schema.resource_ids import ObjectId

MAX_GPUS = 1_000_000
"""More than any cluster of AKS has (5,000 nodes), partitions of GPUs among them."""
_EXAMPLE = "a name as the cluster knows it, as in alice or alice@example.com"


def _user(name: str) -> str:
    """Kubernetes keeps `system:` for itself: such a name is a part of the cluster, or nobody in particular."""
    if name.startswith("system:"):
        raise unfit(f"is {name!r}, a name that Kubernetes keeps for itself", None, allowed=_EXAMPLE)
    if not name.isprintable() or name != name.strip() or not name or {*name} & {*"*,;"}:
        raise unfit(f"is {name!r}, which is nobody's name", None, allowed=_EXAMPLE)
    return name


User = Annotated[Text, AfterValidator(_user), may_be(_EXAMPLE)]
Gpus = Annotated[int, Field(ge=0, le=MAX_GPUS), PLAIN_DIGITS]
_LIMIT = may_be(f"a whole number from 0 to {MAX_GPUS}; leave it out for no limit")


class TeamSettings(Model):
    """One team: a namespace of its name, in which its members queue jobs, and what of the cluster is its own."""

    gpus: Annotated[Gpus, Field(examples=[8]), protects("limit")]
    """GPUs that are its own, with their share of all else that a node offers: it gets them back at once when others
    have borrowed them. While others leave theirs free, its jobs may take these too.
    """
    lending_limit: Annotated[Gpus | None, protects("limit"), _LIMIT] = None
    """How many of these others may borrow at most, with their share of all else; all of them unless it is set."""
    borrowing_limit: Annotated[Gpus | None, protects("limit"), _LIMIT] = None
    """How many GPUs its jobs may take at most beyond its own; as many as others lend unless it is set."""
    pins_memory: Annotated[bool, protects([False, True])] = False
    """Let its pods pin memory (the capability IPC_LOCK), which jobs of several nodes need on InfiniBand; in all else
    they stay at the level `baseline`.
    """
    users: tuple[User, ...] = ()
    """Who may run jobs there, by the names that the cluster knows: with Entra, a user's principal name, in letters as
    Entra has it; of guests, service principals and managed identities the object id.
    """
    groups: Annotated[tuple[ObjectId, ...], protects("stated")] = ()
    """Entra groups whose members may, too, by their object ids; each gets the role by which it asks for a
    kubeconfig.
    """
