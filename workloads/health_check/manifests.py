"""Builds the health check's manifests from options and hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from config.data.scheduling import HEALTH_ACCOUNT, HEALTH_TAINT
from k8s.scheduling import tolerations
from workloads._lib import base as _base
from workloads._lib.aznhc import WITHOUT_DEVICES, CheckName, configuration
from workloads._lib.files import TOPOLOGY, Files, topology_file
from workloads._lib.indexed_job import IGNORE_DISRUPTIONS, JOB_LABEL, indexed_job_spec
from workloads._lib.node_check import KERNEL_LOGS, NODE_NAME, SCRIPT, kernel_logs, taint_variables
from workloads._lib.pods import GpuPod, Manifest, Mount, devices, on_pools
from workloads.health_check.lines import parsed
from workloads.health_check.options import NAME, HealthCheckOptions

CONFIGURATION = "aznhc.conf"
_FOLDER = f"/opt/{NAME}"
_HOSTNAME = "kubernetes.io/hostname"
_SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[HealthCheckOptions]):
    name: str
    taint_effect: str | None = None


def files(run: Run) -> Files:
    own = map(parsed, run.options.checks)
    text = configuration(run.pool.sku, f"{_FOLDER}/{TOPOLOGY}", run.options.leave_out, own=own)
    return Files(config_map=run.name, folder=_FOLDER, contents={CONFIGURATION: text, **topology_file(run.pool)})


def template(run: Run) -> Manifest:
    """Returns the template of a pod that checks its node with all devices.

    The pod also runs on nodes that failed before, and removes the taint if all configured checks pass.
    """
    found = files(run)
    variables = {"CONFIGURATION": found.path(CONFIGURATION), **taint_variables(run.taint_effect, everything=True)}
    return _pod(run, variables, mounts=[found.mount(), kernel_logs()]).template()


def template_without_devices(run: Run) -> Manifest:
    """Returns the template of a pod for nodes that offer fewer devices than they have, where `template` cannot start.

    The pod requests no devices and measures nothing, so it starts on any node and disturbs no job.
    """
    wanted = devices(run.pool, run.rdma_resource)["limits"]
    out = {*get_args(CheckName)} - (WITHOUT_DEVICES - {*run.options.leave_out})
    variables = {
        "CHECKS": configuration(run.pool.sku, "", out),
        "DEVICES": " ".join(f"{name}={count}" for name, count in wanted.items()),
        **taint_variables(run.taint_effect, everything=False),
    }
    return _pod(run, variables, mounts=[kernel_logs()], gpus=0, resources=_SMALL).template()


def _pod(
    run: Run, variables: dict[str, str], *, mounts: list[Mount], gpus: int | None = None, **container: Any
) -> GpuPod:
    options = run.options
    taints = [*run.pool.taints, *(f"{HEALTH_TAINT}=failed:{effect}" for effect in ("NoExecute", "NoSchedule"))]
    return GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        gpus=gpus,
        container={
            "name": NAME,
            "image": run.image,
            "command": ["/bin/bash", SCRIPT],
            "env": [NODE_NAME],
            **container,
        },
        variables={"KERNEL_LOGS": KERNEL_LOGS, "TIMEOUT_S": str(options.timeout_seconds), **variables},
        mounts=mounts,
        repeatable=True,
        spec={
            "tolerations": tolerations(taints),
            **({"serviceAccountName": HEALTH_ACCOUNT} if run.taint_effect else {}),
        },
        overrides=options.pod_overrides,
    )


def job_spec(run: Run) -> Manifest:
    """Returns an Indexed Job with one pod on each node, without retries. It runs all pods, and fails if any failed."""
    return _job_spec(run, run.name, template(run))


def job_without_devices(run: Run) -> tuple[str, Manifest]:
    name = f"{run.name}-devices"
    spec = _job_spec(run, name, template_without_devices(run))
    apart = {"labelSelector": {"matchLabels": {JOB_LABEL: name}}, "topologyKey": _HOSTNAME}
    affinity = spec["template"]["spec"]["affinity"]
    affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return name, spec


def _job_spec(run: Run, name: str, pod: Manifest) -> Manifest:
    ttl = run.options.ttl_seconds
    if run.options.node_names:
        pod["spec"]["affinity"] = _on_nodes(run)
    return indexed_job_spec(
        name,
        run.nodes,
        pod,
        backoffLimitPerIndex=0,
        podFailurePolicy={"rules": [IGNORE_DISRUPTIONS]},
        **({} if ttl is None else {"ttlSecondsAfterFinished": ttl}),
    )


def _on_nodes(run: Run) -> Manifest:
    affinity = on_pools(run.pool)
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    term["matchExpressions"].append({"key": _HOSTNAME, "operator": "In", "values": list(run.options.node_names)})
    return affinity


def command(namespace: str, name: str) -> str:
    return f"kubectl logs -n {namespace} --selector {JOB_LABEL}={name} --tail 1 --prefix"
