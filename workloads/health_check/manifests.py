"""The health check as plain data: pure functions of options and hardware."""

from __future__ import annotations

from dataclasses import dataclass

from workloads import _base
from workloads._files import TOPOLOGY, Files, topology_file
from workloads._indexed_job import IGNORE_DISRUPTIONS, JOB_LABEL, indexed_job_spec
from workloads._pods import GpuPod, Manifest, Mount
from workloads.health_check.checks import configuration
from workloads.health_check.options import NAME, HealthCheckOptions

CONFIGURATION = "aznhc.conf"
_FOLDER = f"/opt/{NAME}"
_KERNEL_LOGS = "/host/var/log"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[HealthCheckOptions]):
    """One check of one pool."""

    name: str
    """Of the job and its ConfigMap."""


def files(run: Run) -> Files:
    """What aznhc is to check on nodes of this VM size, and NCCL's topology file where it has one."""
    text = configuration(run.pool.sku, f"{_FOLDER}/{TOPOLOGY}", run.options.leave_out)
    return Files(config_map=run.name, folder=_FOLDER, contents={CONFIGURATION: text, **topology_file(run.pool)})


def job_spec(run: Run) -> Manifest:
    """An Indexed Job: one pod on each node, each tried once; it fails if one of them does, after all have ended."""
    found = files(run)
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": NAME,
            "image": run.image,
            "command": ["/bin/bash", "/opt/aksnhc/check-node.sh"],
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        },
        variables={
            "CONFIGURATION": found.path(CONFIGURATION),
            "KERNEL_LOGS": _KERNEL_LOGS,
            "TIMEOUT_S": str(run.options.timeout_seconds),
        },
        mounts=[found.mount(), kernel_logs()],
        overrides=run.options.pod_overrides,
    )
    return indexed_job_spec(
        run.name,
        run.nodes,
        pod.template(),
        backoffLimitPerIndex=0,
        podFailurePolicy={"rules": [IGNORE_DISRUPTIONS]},
    )


def kernel_logs() -> Mount:
    """The node's logs, in which two checks look for GPU errors and flapping links.

    The folder, because the file's name differs (syslog on Ubuntu, messages elsewhere), and logs are put aside.
    """
    source = {"hostPath": {"path": "/var/log", "type": "Directory"}}
    return Mount(name="kernel-logs", path=_KERNEL_LOGS, source=source, read_only=True)


def command(namespace: str, name: str) -> str:
    """Shows each node's verdict."""
    return f"kubectl logs -n {namespace} --selector {JOB_LABEL}={name} --tail 1 --prefix"
