"""Builds the job from options and hardware."""

from __future__ import annotations

import json
from pathlib import Path

from components.context import GpuPool
from config.data.skus import nccl_profiles
from workloads._lib.files import Files, shared, texts
from workloads._lib.mpi import MpiJob, MpiRun, mpi_files
from workloads.nccl_bisection.options import NAME, NcclBisectionOptions

Run = MpiRun[NcclBisectionOptions]
BYTES = 16 << 30
"""The message size between whole nodes, for which floors are published. Each rail sends an equal share."""
ITERATIONS = 10
"""The iterations of Azure's quick check (ai-infrastructure-on-azure 6ac01e7,
skills/ai-infra/references/nccl_diagnosis.md).
"""
_SCRIPTS = Path(__file__).parent / "scripts"


def files(pool: GpuPool) -> Files:
    return mpi_files(NAME, _SCRIPTS, pool, {**texts(_SCRIPTS, "*.py"), **shared("verdict.sh")})


def baselines(run: Run) -> dict[str, dict[str, float]]:
    """Returns bus bandwidths in GB/s by number of nodes: the minimum that passes, and that of a healthy fabric.

    Values are without SHARP, because many parts are measured at once, and a switch port (on HDR, a whole switch)
    reduces for only one job at a time (NVIDIA SHARP 3.13, General Information).
    """
    sku = run.pool.sku
    if sku.nccl_busbw is None:
        raise ValueError(f"no bus bandwidth is known for {sku.name}")
    counts = {"one": 1, "two": 2, "many": 3}
    healthy = {name: sku.nccl_busbw.healthy.at(count, sharp=False) for name, count in counts.items()}
    floor = {name: sku.nccl_busbw.floor.at(count, sharp=False) for name, count in counts.items()}
    if run.options.floor_gbs is not None:
        floor |= dict.fromkeys(("two", "many"), run.options.floor_gbs)
    return {"floor": floor, "healthy": healthy}


def job(run: Run) -> MpiJob:
    sku, own = run.pool.sku, files(run.pool)
    node_name = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return MpiJob(
        run=run,
        files=own,
        variables={
            "VM_SIZE": sku.name,
            "POOL": run.pool.agent_pool,
            "BASELINES": json.dumps(baselines(run), sort_keys=True),
            "HCAS": str(sku.infiniband.hcas if sku.infiniband else 0),
            "BYTES": str(BYTES),
            "ITERATIONS": str(ITERATIONS),
            # MPI uses the pod network, because otherwise one failed HCA would prevent all measurements.
            **nccl_profiles()["ethernet"].ucx,
        },
        sharp=False,
        repeatable=True,
        worker={"command": ["/bin/bash", own.path("node.sh")], "env": [node_name]},
    )
