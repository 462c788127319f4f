"""What the rules of resource types work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simulator.azure.backend import ClusterBackend
from simulator.azure.store import Body, Record, Store
from simulator.azure.subscription import Subscription


@dataclass(frozen=True)
class World:
    """One simulated subscription."""

    store: Store
    subscription: Subscription
    backend: ClusterBackend


class Kind(Protocol):
    """The rules of one resource type. Shape, names, parents and immutable properties were checked before."""

    asynchronous: bool
    """Whether a change goes on after the answer (`provisioningState`)."""

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        """Checks the type's own rules, gives `record` its body and stores it, with what it contains. Raises ArmError.

        `record` is a copy of the existing resource, or an empty new one.
        """

    def check_delete(self, world: World, record: Record) -> None:
        """Raises ArmError where ARM refuses to delete it."""

    def view(self, world: World, record: Record) -> Body:
        """The resource as a GET answers it, outputs included."""


def envelope(record: Record, body: Body) -> Body:
    """Adds what every resource shows: id, name, type."""
    return {"id": record.id.text, "name": record.id.name, "type": record.id.type, **body}
