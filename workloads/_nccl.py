"""What every NCCL job tells NCCL: the settings of its hardware (config/facts/nccl.yaml) and the topology file."""

from __future__ import annotations

from components.context import GpuPool
from config.facts.skus import nccl_profiles
from workloads._files import TOPOLOGY, Files


def nccl_variables(pool: GpuPool, files: Files, *, sharp: bool) -> dict[str, str]:
    """NCCL's and UCX's environment on nodes of the pool.

    `sharp` reduces in the InfiniBand switches: for benchmarks; trainings have failed with it (NVIDIA/nccl#1709, #1219).
    """
    sku = pool.sku
    profile = nccl_profiles()[sku.nccl] if sku.nccl else None
    topology = {"NCCL_TOPO_FILE": files.path(TOPOLOGY)} if TOPOLOGY in files.contents else {}
    return {**(profile.environment(sharp=sharp) if profile else {}), **topology}
