"""OLMo: pre-training of AI2's open language models on their own data, read from blob storage."""

from __future__ import annotations

from workloads.olmo.workload import Olmo

WORKLOAD = Olmo()
