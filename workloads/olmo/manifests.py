"""Builds the training's manifests from options and hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.context import BlobVolume, GpuPool
from workloads._lib import base as _base
from workloads._lib.files import Files, nccl_variables, shared, texts, topology_file, topology_path
from workloads._lib.indexed_job import JOB_LABEL, failure_policy, indexed_job_spec
from workloads._lib.pods import GpuPod, Manifest, blob, scratch
from workloads._lib.training import throughput_variables
from workloads.olmo.configs import SOURCE_FOLDER
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import NAME, OlmoOptions

CONTAINER = "train"
PORT = 29400
"""Port of the rendezvous; torchrun's default."""
_MEETING_TIMEOUT_S = 1800
"""Seconds that nodes wait for each other. They start together, but pull a large image at different speeds."""
SAVING_THREADS = 2
"""Checkpoint files that each rank writes and reads in parallel.

The default is 16 (OLMo-core v1.8.0, src/olmo_core/utils.py, get_default_thread_count), but blobfuse2 has too few blocks
for 8 ranks with 16 files each (config/data/blobfuse.yaml, sequential).
"""
_DATA_TIMEOUT_S = 48 * 3600
"""Seconds that the training waits for its data while it holds its nodes."""
_DATA_SILENCE_S = 1800
"""Seconds that the training waits without a report from the preparation, which reports every minute.

A retry of the preparation starts after at most six minutes, and may then pull a large image.
"""
DATA, CHECKPOINTS, SCRATCH = "/data", "/checkpoints", "/scratch"
_SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[OlmoOptions]):
    """One training, with the containers that it reads and writes."""

    data: BlobVolume
    checkpoints: BlobVolume


def files(pool: GpuPool) -> Files:
    scripts = {name: text for name, text in texts(_SCRIPTS).items() if not name.startswith("prepare")}
    contents = {**shared("infiniband.sh", "mfu.sh"), **scripts, **topology_file(pool)}
    return Files(config_map=NAME, folder=f"/opt/{NAME}", contents=contents)


def dataset_variables(options: OlmoOptions) -> dict[str, str]:
    return {
        "CONFIG": options.training.file,
        "MAX_FILES": str(options.max_files or 0),
        "EVALUATE": str(int(options.evaluate)),
    }


def variables(run: Run) -> dict[str, str]:
    options, training, sku = run.options, run.options.training, run.pool.sku
    return {
        **nccl_variables(run.pool, files(run.pool), sharp=False),
        **dataset_variables(options),
        **throughput_variables(run.pool, run.nodes, training.flops_per_token),
        "NODES": str(run.nodes),
        "GPUS_PER_NODE": str(sku.gpus),
        "MASTER": f"{NAME}-0.{NAME}:{PORT}",
        "DATA": DATA,
        "CHECKPOINTS": CHECKPOINTS,
        "SCRATCH": SCRATCH,
        "RUN_NAME": options.run_name or training.name,
        "MICRO_BATCH": str(micro_batch(options, sku, run.nodes)),
        "STOP_AT": str(options.stop_at or ""),
        "PREPARED": str(int(options.prepare)),
        "DATA_TIMEOUT_S": str(_DATA_TIMEOUT_S),
        "DATA_SILENCE_S": str(_DATA_SILENCE_S),
        "MEETING_TIMEOUT_S": str(_MEETING_TIMEOUT_S),
        # All nodes share one folder of checkpoints, so only global rank 0 creates and renames folders there.
        "OLMO_SHARED_FS": "1",
        "OLMO_NUM_THREADS": str(SAVING_THREADS),
    }


def job_spec(run: Run) -> Manifest:
    """Returns an Indexed Job: pod `i` is node rank `i`, with host name `olmo-<i>.olmo`."""
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": CONTAINER,
            "image": run.image,
            "command": ["/bin/bash", files(run.pool).path("launch.sh")],
            "workingDir": SOURCE_FOLDER,
            "env": [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        },
        variables=variables(run),
        mounts=[
            files(run.pool).mount(),
            blob("data", run.data, DATA),
            blob("checkpoints", run.checkpoints, CHECKPOINTS),
            scratch(run.pool, SCRATCH),
        ],
        topology=topology_path(files(run.pool)),
        node_check=run.node_check,
        spec={"subdomain": NAME},
        overrides=run.options.pod_overrides,
    )
    template = pod.template()
    return indexed_job_spec(
        NAME,
        run.nodes,
        template,
        # A failed node also ends the processes of the other nodes, so each failure of the job counts once per pod.
        backoffLimit=run.options.restarts * run.nodes,
        podFailurePolicy=failure_policy(CONTAINER, template, "FailJob"),
    )


def service_spec() -> Manifest:
    """Returns a headless Service. It resolves names of pods before they are ready, because pods must connect first."""
    return {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {JOB_LABEL: NAME},
        "ports": [{"name": "rendezvous", "port": PORT}],
    }
