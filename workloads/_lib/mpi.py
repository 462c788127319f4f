"""MPI jobs on Volcano: one worker on each of several whole nodes, and a master that starts one process per GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import pulumi
import pulumi_kubernetes as kubernetes
from pydantic import Field

from components.context import GpuPool, WorkloadContext
from config.data.scheduling import ON_SYSTEM_POOL, VOLCANO
from config.schema.base import PLAIN_DIGITS
from config.schema.workload import GpuPods, WorkloadOptions
from workloads._lib.base import Run
from workloads._lib.files import Files, nccl_variables, shared, texts, topology_file, topology_path
from workloads._lib.pods import GpuPod, Manifest, Mount, environment, pod_template

_MPI_SCRIPTS = Path(__file__).parent.parent / "_mpi_scripts"
_LAUNCH, _WORKER = "launch.sh", "worker.sh"
WORKERS = GpuPods(container=_WORKER.removesuffix(".sh"))


class MpiOptions(WorkloadOptions):
    """Options of all MPI jobs."""

    ssh_timeout_seconds: Annotated[int, Field(ge=10, le=86400), PLAIN_DIGITS] = 1800
    """Seconds that the master waits for all workers.

    The workers' image has several GB.
    """


Options = TypeVar("Options", bound=MpiOptions, covariant=True)


@dataclass(frozen=True, kw_only=True)
class MpiRun(Run[Options]):
    """One run of an MPI job. The master uses the service account to read pods of the namespace."""

    service_account: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class MpiJob:
    run: MpiRun[MpiOptions]
    files: Files
    variables: Mapping[str, str]
    sharp: bool
    """Whether the InfiniBand switches reduce (SHARP)."""
    worker: Manifest = field(default_factory=dict)
    repeatable: bool = False

    def environment(self) -> dict[str, str]:
        """Returns the master's variables. hosts.sh passes variables of NCCL and UCX to the ranks."""
        sku = self.run.pool.sku
        return {
            **nccl_variables(self.run.pool, self.files, sharp=self.sharp),
            "NODES": str(self.run.nodes),
            "GPUS_PER_NODE": str(sku.gpus),
            "CORES_PER_GPU": str(sku.vcpus // sku.gpus),
            "SSH_TIMEOUT_S": str(self.run.options.ssh_timeout_seconds),
            **self.variables,
        }

    def spec(self) -> Manifest:
        """Returns the spec of the Volcano Job. `podOverrides` apply only to the workers, which run on GPU nodes."""
        mounts = [self.files.mount()]
        worker = GpuPod(
            pool=self.run.pool,
            rdma_resource=self.run.rdma_resource,
            container=self._container(_WORKER) | self.worker,
            mounts=mounts,
            topology=topology_path(self.files),
            node_check=self.run.node_check,
            repeatable=self.repeatable,
            overrides=self.run.options.pod_overrides,
        )
        master = self._container(_LAUNCH) | {"env": environment(self.environment())}
        return _volcano_spec(
            workers=self.run.nodes,
            worker=worker.template(),
            node_check=self.run.node_check is not None,
            master=_master_template(master, service_account=self.run.service_account, mounts=mounts),
        )

    def deploy(self, name: str, context: WorkloadContext) -> pulumi.Output[str]:
        """Creates the ConfigMap and the Volcano Job; returns the command that shows the master's log.

        Volcano rejects changes of a Job's spec, so a change replaces the Job. Both have the same name, so Pulumi first
        deletes the old pods and Job (foreground, the provider's default). Otherwise Volcano may ignore the new Job
        while the old pods end (volcano-sh/volcano#3968 and #5973, both open in 1.15).
        """
        kubernetes.apiextensions.CustomResource(
            name,
            api_version="batch.volcano.sh/v1alpha1",
            kind="Job",
            metadata={"name": name, "namespace": context.namespace},
            spec=self.spec(),
            opts=context.job([self.files.deploy(context)]),
        )
        return pulumi.Output.concat("kubectl logs -n ", context.namespace, f" {name}-mpimaster-0")

    def _container(self, script: str) -> Manifest:
        command = ["/bin/bash", self.files.path(script)]
        return {"name": script.removesuffix(".sh"), "image": self.run.image, "command": command}


def mpi_files(name: str, scripts: Path, pool: GpuPool, more: Mapping[str, str] | None = None) -> Files:
    of_all = {**texts(_MPI_SCRIPTS, "*.sh"), **shared("infiniband.sh")}
    contents = {**of_all, **texts(scripts, "*.sh"), **topology_file(pool), **(more or {})}
    return Files(config_map=name, folder=f"/opt/{name}", contents=contents)


def _volcano_spec(*, workers: int, worker: Manifest, master: Manifest, node_check: bool) -> Manifest:
    """Returns the spec of a Volcano Job. `worker` and `master` are pod templates ({"metadata": ..., "spec": ...}).

    The ssh plugin gives all pods one key pair and host names; the svc plugin writes the workers' names to
    /etc/volcano/mpiworker.host. The job completes or fails with the master. With a `node_check`, a worker fails if its
    node is bad. All pods then restart on other nodes.
    """
    policies = {"policies": [{"event": "PodFailed", "action": "RestartJob"}]} if node_check else {}
    return {
        "minAvailable": workers + 1,
        "schedulerName": VOLCANO,
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"ssh": [], "svc": []},
        # If a pod is evicted because its node is lost, restart the job on other nodes.
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [
            {
                "name": "mpimaster",
                "replicas": 1,
                "policies": [
                    {"event": "TaskCompleted", "action": "CompleteJob"},
                    {"event": "PodFailed", "action": "TerminateJob"},
                ],
                "template": master,
            },
            {"name": "mpiworker", "replicas": workers, **policies, "template": worker},
        ],
    }


def _master_template(container: Manifest, *, service_account: pulumi.Input[str], mounts: Sequence[Mount]) -> Manifest:
    requests = {"cpu": "500m", "memory": "1Gi"}
    mounted = [mount.mount() for mount in mounts]
    spec = {
        "restartPolicy": "Never",
        "serviceAccountName": service_account,
        **ON_SYSTEM_POOL,
        "containers": [container | {"resources": {"requests": requests}, "volumeMounts": mounted}],
    }
    return pod_template(spec, mounts)
