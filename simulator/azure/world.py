"""What the rules of resource types work on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from simulator.azure.backend import BlobBackend, ClusterBackend
from simulator.azure.errors import in_progress
from simulator.azure.registries import Registries
from simulator.azure.store import Body, Record, Store
from simulator.azure.subscription import Subscription
from simulator.world.faults import FaultStore


@dataclass(frozen=True)
class World:
    """One simulated subscription."""

    store: Store
    subscription: Subscription
    backend: ClusterBackend
    blobs: BlobBackend
    registries: Registries
    faults: FaultStore


class Kind(ABC):
    """The rules of one resource type. Shape, names and parents were checked before.

    What a type has no rule for stays as it is here.
    """

    asynchronous: bool = False
    """Whether a change goes on after the answer (`provisioningState`)."""
    creation_alone: bool = False
    """Whether of these changes creation alone goes on, and is seen at its result; the others are answered when done."""

    @abstractmethod
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        """Checks the type's own rules, gives `record` its body and stores it, with what it contains. Raises ArmError.

        `record` is a copy of the existing resource, or an empty new one.
        """

    def check_idle(self, world: World, record: Record) -> None:
        """Raises ArmError (409) where an operation that goes on stands in the way of an update."""
        if record.busy:
            raise in_progress(f"operation ({record.state})")

    def check_delete(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Raises ArmError where ARM refuses to delete it; most it deletes with all that they hold."""

    def settle(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Brings what is behind an asynchronous resource to what the record says; also at every start of the simulator.

        Clusters and pools are `operations`' own.
        """

    def removed(self, world: World, record: Record) -> None:  # noqa: B027 - most types have no such rule
        """Removes what is behind it, before the record goes; a second time after a kill in between."""

    @abstractmethod
    def view(self, world: World, record: Record) -> Body:
        """The resource as a GET answers it, outputs included."""


def envelope(record: Record, body: Body) -> Body:
    """Adds what every resource shows: id, name, type."""
    return {"id": record.id.text, "name": record.id.name, "type": record.id.type, **body}
