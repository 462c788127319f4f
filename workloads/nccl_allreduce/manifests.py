"""The job as plain data: pure functions of options and hardware."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pulumi

from components.context import GpuPool
from config.skus import nccl_profiles, topologies
from workloads._pods import Manifest, Mount, environment, gpu_pod_spec
from workloads._topology import topology_xml
from workloads._volcano import master_pod_spec, mpi_job_spec
from workloads.nccl_allreduce.options import NcclAllreduceOptions

NAME = "nccl-allreduce"
_FOLDER = "/opt/nccl-allreduce"
_TOPOLOGY = "topology.xml"
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: where, on how much, with which options."""

    options: NcclAllreduceOptions
    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    service_account: pulumi.Input[str]


def files(pool: GpuPool) -> dict[str, str]:
    """Contents of the job's ConfigMap: its scripts, and NCCL's topology file where the VM size has one."""
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted(_SCRIPTS.glob("*.sh"))}
    topology = {_TOPOLOGY: topology_xml(topologies()[pool.sku.topology])} if pool.sku.topology else {}
    return {**scripts, **topology}


def floor_gbs(run: Run) -> float:
    """The least bus bandwidth that passes, GB/s. Raises ValueError where neither options nor catalogue have one."""
    floor = run.options.floor_gbs or run.pool.sku.busbw_floor(run.nodes, sharp=run.options.sharp)
    if floor is None:
        raise ValueError(f"no bus bandwidth is known for {run.pool.sku.name}: set workloadOptions.{NAME}.floorGbs")
    return floor


def variables(run: Run) -> dict[str, str]:
    """Environment of the master; launch.sh hands NCCL's and UCX's part of it to the ranks."""
    sku = run.pool.sku
    profile = nccl_profiles()[sku.nccl] if sku.nccl else None
    return {
        **(profile.environment(sharp=run.options.sharp) if profile else {}),
        **({"NCCL_TOPO_FILE": f"{_FOLDER}/{_TOPOLOGY}"} if sku.topology else {}),
        "NODES": str(run.nodes),
        "GPUS_PER_NODE": str(sku.gpus),
        "CORES_PER_GPU": str(sku.vcpus // sku.gpus),
        "MIN_BYTES": run.options.min_bytes,
        "MAX_BYTES": run.options.max_bytes,
        "ITERATIONS": str(run.options.iterations),
        "SSH_TIMEOUT_S": str(run.options.ssh_timeout_seconds),
        "BUSBW_FLOOR_GBS": f"{floor_gbs(run):g}",
    }


def job_spec(run: Run) -> Manifest:
    """The Volcano Job. Its pods carry a digest of the files that they mount: a new script is a new job."""
    mount = Mount(name="files", path=_FOLDER, source={"configMap": {"name": NAME}}, read_only=True)
    worker = gpu_pod_spec(
        pool=run.pool, rdma_resource=run.rdma_resource, container=_container(run, "worker.sh"), mounts=[mount]
    )
    master = _container(run, "launch.sh") | {"env": environment(variables(run)), "volumeMounts": [mount.mount()]}
    return mpi_job_spec(
        workers=run.nodes,
        worker=_template(run, worker),
        master=_template(run, master_pod_spec(master, service_account=run.service_account, volumes=[mount.volume()])),
    )


def _container(run: Run, script: str) -> Manifest:
    return {"name": script.removesuffix(".sh"), "image": run.image, "command": ["/bin/bash", f"{_FOLDER}/{script}"]}


def _template(run: Run, spec: Manifest) -> Manifest:
    digest = hashlib.sha256(repr(sorted(files(run.pool).items())).encode()).hexdigest()[:16]
    return {"metadata": {"annotations": {"ai-on-aks/files": digest}}, "spec": spec}
