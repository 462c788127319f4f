"""Options of the health check, under `workloadOptions.health-check`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.schema.base import PLAIN_DIGITS, Count, Text
from config.schema.workload import WorkloadOptions
from workloads._lib.aznhc import CheckName

NAME = "health-check"
MAX_TTL_S = 7 * 24 * 3600


class HealthCheckOptions(WorkloadOptions):
    """Options of the health check."""

    num_nodes: Count | None = None
    """Number of nodes to check in each pool that has as many nodes; by default its `count` or `autoscale.min`."""
    node_names: tuple[Text, ...] = ()
    """Names of the nodes to check, as in `kubectl get nodes`, instead of a number; all must be in one pool.

    Their pods wait until the nodes are free.
    """
    leave_out: tuple[CheckName, ...] = ()
    """Names of checks to omit."""
    checks: tuple[Text, ...] = ()
    """Custom checks in aznhc's syntax, which replace those with the same name, such as `check_ib_bw_gdr 390`."""
    idle_checks: bool = False
    """Whether to check idle nodes too, each once a day, with pods that any job preempts."""
    ttl_seconds: Annotated[int | None, Field(ge=0, le=MAX_TTL_S), PLAIN_DIGITS] = None
    """Seconds after which the ended Job and its pods' logs are deleted; by default they stay. Nodes keep the result."""
    timeout_seconds: Annotated[int, Field(ge=60, le=86400), PLAIN_DIGITS] = 500
    """Seconds for all checks of a node together.

    This is upstream's default.
    """
