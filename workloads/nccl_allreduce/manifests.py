"""Builds the job from options and hardware."""

from __future__ import annotations

from pathlib import Path

from components.context import GpuPool
from workloads._lib.files import Files, shared
from workloads._lib.mpi import MpiJob, MpiRun, mpi_files
from workloads.nccl_allreduce.options import NAME, NcclAllreduceOptions

Run = MpiRun[NcclAllreduceOptions]
_SCRIPTS = Path(__file__).parent / "scripts"


def files(pool: GpuPool) -> Files:
    return mpi_files(NAME, _SCRIPTS, pool, shared("verdict.sh"))


def floor_gbs(run: Run) -> float:
    """Returns the lowest bus bandwidth that passes, in GB/s. Raises ValueError if options and VM size define none."""
    floor = run.options.floor_gbs or run.pool.sku.busbw_floor(run.nodes, sharp=run.options.sharp)
    if floor is None:
        raise ValueError(f"no bus bandwidth is known for {run.pool.sku.name}: set workloadOptions.{NAME}.floorGbs")
    return floor


def expected_gbs(run: Run) -> float | None:
    """Returns the bus bandwidth of a healthy fabric in GB/s, or None if none is published for this VM size."""
    busbw = run.pool.sku.nccl_busbw
    return busbw.healthy.at(run.nodes, sharp=run.options.sharp) if busbw else None


def job(run: Run) -> MpiJob:
    expected = expected_gbs(run)
    return MpiJob(
        run=run,
        files=files(run.pool),
        variables={
            "MIN_BYTES": run.options.min_bytes,
            "MAX_BYTES": run.options.max_bytes,
            "ITERATIONS": str(run.options.iterations),
            "BUSBW_FLOOR_GBS": f"{floor_gbs(run):g}",
            "BUSBW_EXPECTED_GBS": "" if expected is None else f"{expected:g}",
        },
        sharp=run.options.sharp,
        repeatable=True,
    )
