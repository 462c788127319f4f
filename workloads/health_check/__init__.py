"""Azure's node health checks on every node: is its hardware all there, and as fast as it must be?"""

from __future__ import annotations

from workloads.health_check.workload import HealthCheck

WORKLOAD = HealthCheck()
