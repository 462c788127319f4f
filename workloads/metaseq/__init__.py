"""Metaseq: trains a language model of 125 million to 175 billion parameters on synthetic data, as a benchmark."""

from __future__ import annotations

from workloads.metaseq.workload import Metaseq

WORKLOAD = Metaseq()
