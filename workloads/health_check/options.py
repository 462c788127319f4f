"""Options of the health check, under `workloadOptions.health-check`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.base import EMPTY_IS_UNSET, PLAIN_DIGITS
from config.references import Image
from config.workload import WorkloadOptions
from workloads.health_check.checks import CheckName

WholeNumber = Annotated[int, PLAIN_DIGITS]


class HealthCheckOptions(WorkloadOptions):
    """Where to look, and at what not."""

    num_nodes: Annotated[WholeNumber, Field(ge=1)] | None = None
    """Nodes to check; by default all of the pool."""
    leave_out: tuple[CheckName, ...] = ()
    """Checks not to run, by name."""
    timeout_seconds: Annotated[WholeNumber, Field(ge=60, le=86400)] = 500
    """How long all checks of a node may take together; upstream's own default."""
    image: Annotated[Image | None, EMPTY_IS_UNSET] = None
    """A whole image reference, in place of the one built from docker/aksnhc."""
