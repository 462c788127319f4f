"""Resimulation: a batch of scenarios, one index of a Job each, that goes on where evictions broke it off."""

from __future__ import annotations

from workloads.resim.workload import Resim

WORKLOAD = Resim()
