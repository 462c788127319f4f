"""Maintenance configurations of clusters. They are only stored: automatic upgrades are not simulated."""

from __future__ import annotations

from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.kind import Kind
from simulator.azure.store import Body, Record

TYPE = "Microsoft.ContainerService/managedClusters/maintenanceConfigurations"
NAMES = ("default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
"""The allowed names (AKS's page on planned maintenance)."""


class MaintenanceConfigurations(Kind):
    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        if record.id.name not in NAMES:
            message = f"Maintenance configuration '{record.id.name}' must be named one of {', '.join(NAMES)}."
            raise bad_request(message, code="InvalidParameter")
        record.body = body
        world.store.put(record)


KIND = MaintenanceConfigurations()
