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
    """Where to look, and at what not."""

    num_nodes: Count | None = None
    """Nodes to check of each pool that has so many; by default all that a pool is certain to have."""
    node_names: tuple[Text, ...] = ()
    """Nodes to check, as `kubectl get nodes` names them, in place of as many as there are; they are of one pool.

    Their pods wait until these are free.
    """
    leave_out: tuple[CheckName, ...] = ()
    """Checks not to run, by name."""
    checks: tuple[Text, ...] = ()
    """Checks of your own, as aznhc's configuration has them, in place of those of their name, as in
    `check_ib_bw_gdr 390`.
    """
    idle_checks: bool = False
    """Whether nodes without a job on their GPUs are checked too, each once a day, by pods that any job drives out."""
    ttl_seconds: Annotated[int | None, Field(ge=0, le=MAX_TTL_S), PLAIN_DIGITS] = None
    """When the Job goes with its pods' logs, counted from its end; by default it stays. Nodes keep what was found."""
    timeout_seconds: Annotated[int, Field(ge=60, le=86400), PLAIN_DIGITS] = 500
    """How long all checks of a node may take together.

    Upstream's own default.
    """
