"""The simulated subscription: its state and its backends."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.azure.backend import BlobBackend, ClusterBackend
from simulator.azure.registries import Registries
from simulator.azure.store import Store
from simulator.azure.subscription import Subscription
from simulator.world.faults import FaultStore


@dataclass(frozen=True)
class World:
    store: Store
    subscription: Subscription
    backend: ClusterBackend
    blobs: BlobBackend
    registries: Registries
    faults: FaultStore
