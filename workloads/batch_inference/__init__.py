"""A batch of inference by vLLM, as a Job of a team."""

from __future__ import annotations

from workloads.batch_inference.workload import BatchInference

WORKLOAD = BatchInference()
