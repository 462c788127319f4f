"""Options of the health check, under `workloadOptions.health-check`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.schema.base import PLAIN_DIGITS, Count
from config.schema.workload import WorkloadOptions
from workloads.health_check.checks import CheckName

NAME = "health-check"


class HealthCheckOptions(WorkloadOptions):
    """Where to look, and at what not."""

    num_nodes: Count | None = None
    """Nodes to check of each pool that has so many; by default all that a pool is certain to have."""
    leave_out: tuple[CheckName, ...] = ()
    """Checks not to run, by name."""
    timeout_seconds: Annotated[int, Field(ge=60, le=86400), PLAIN_DIGITS] = 500
    """How long all checks of a node may take together.

    Upstream's own default.
    """
