"""The health check as plain data: pure functions of options and hardware."""

from __future__ import annotations

from dataclasses import dataclass

from config.facts.scheduling import HEALTH_ACCOUNT, HEALTH_TAINT, tolerations
from workloads import _base
from workloads._aznhc import configuration
from workloads._files import TOPOLOGY, Files, topology_file
from workloads._indexed_job import IGNORE_DISRUPTIONS, JOB_LABEL, indexed_job_spec
from workloads._node_check import KERNEL_LOGS, NODE_NAME, SCRIPT, kernel_logs, told
from workloads._pods import GpuPod, Manifest, on_pools
from workloads.health_check.lines import parsed
from workloads.health_check.options import NAME, HealthCheckOptions

CONFIGURATION = "aznhc.conf"
_FOLDER = f"/opt/{NAME}"
_HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, kw_only=True)
class Run(_base.Run[HealthCheckOptions]):
    """One check of one pool."""

    name: str
    """Of the job and its ConfigMap."""
    taint_effect: str | None = None
    """Of the taint of a node that fails; None where nobody may taint it."""


def files(run: Run) -> Files:
    """What aznhc is to check on nodes of this VM size, and NCCL's topology file where it has one."""
    own = map(parsed, run.options.checks)
    text = configuration(run.pool.sku, f"{_FOLDER}/{TOPOLOGY}", run.options.leave_out, own=own)
    return Files(config_map=run.name, folder=_FOLDER, contents={CONFIGURATION: text, **topology_file(run.pool)})


def template(run: Run) -> Manifest:
    """Of a pod that checks its node, with all of its devices.

    Nodes that have failed before are checked too, and lose their taint if they pass all that the settings ask of them.
    """
    found, options = files(run), run.options
    taints = [*run.pool.taints, *(f"{HEALTH_TAINT}=failed:{effect}" for effect in ("NoExecute", "NoSchedule"))]
    pod = GpuPod(
        pool=run.pool,
        rdma_resource=run.rdma_resource,
        container={
            "name": NAME,
            "image": run.image,
            "command": ["/bin/bash", SCRIPT],
            "env": [NODE_NAME],
        },
        variables={
            "CONFIGURATION": found.path(CONFIGURATION),
            "KERNEL_LOGS": KERNEL_LOGS,
            "TIMEOUT_S": str(options.timeout_seconds),
            **told(run.taint_effect, everything=True),
        },
        mounts=[found.mount(), kernel_logs()],
        spec={
            "tolerations": tolerations(taints),
            **({"serviceAccountName": HEALTH_ACCOUNT} if run.taint_effect else {}),
        },
        overrides=options.pod_overrides,
    )
    return pod.template()


def job_spec(run: Run) -> Manifest:
    """An Indexed Job: one pod on each node, each tried once; it fails if one of them does, after all have ended."""
    pod, ttl = template(run), run.options.ttl_seconds
    if run.options.node_names:
        pod["spec"]["affinity"] = _on_nodes(run)
    return indexed_job_spec(
        run.name,
        run.nodes,
        pod,
        backoffLimitPerIndex=0,
        podFailurePolicy={"rules": [IGNORE_DISRUPTIONS]},
        **({} if ttl is None else {"ttlSecondsAfterFinished": ttl}),
    )


def _on_nodes(run: Run) -> Manifest:
    """Affinity to the nodes that are named, which AKS labels with their names."""
    affinity = on_pools(run.pool)
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    term["matchExpressions"].append({"key": _HOSTNAME, "operator": "In", "values": list(run.options.node_names)})
    return affinity


def command(namespace: str, name: str) -> str:
    """Shows each node's verdict."""
    return f"kubectl logs -n {namespace} --selector {JOB_LABEL}={name} --tail 1 --prefix"
