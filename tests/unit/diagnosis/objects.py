from __future__ import annotations

from typing import Any

from diagnosis.cluster import (
    APP_WRAPPER,
    CLUSTER_POLICY,
    DAEMON_SET,
    EVENT,
    JOB,
    NIC_POLICY,
    NODE,
    POD,
    POD_GROUP,
    PYTORCH_JOB,
    QUEUED,
    RAY_CLUSTER,
    RAY_JOB,
    VOLCANO_JOB,
    Cluster,
    Kind,
)
from diagnosis.report import Report, report
from k8s.objects import Object

POOL = "gpu4082"
SKU_TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
TOLERATION = {"key": "sku", "operator": "Exists", "effect": "NoSchedule"}
DEVICES = {"nvidia.com/gpu": "8", "nvidia.com/mlnxnics": "8"}
OPERATORS = "nvidia-operator"


def cluster(*objects: tuple[Kind, Object], has_volcano: bool = True) -> Cluster:
    """Adds a running Volcano, and pods' missing nodes."""
    given = [obj["metadata"]["name"] for kind, obj in objects if kind.name == NODE.name]
    on = {obj["spec"].get("nodeName") for kind, obj in objects if kind.name == POD.name}
    nodes = [(NODE, {"metadata": {"name": name, "uid": name}, "spec": {}}) for name in on - {None, *given}]
    operators = [volcano("scheduler"), volcano("controller")] if has_volcano else []

    def read(kind: Kind, namespace: str) -> list[Object]:
        everything = (*operators, *nodes, *objects)
        found = [obj for of, obj in everything if (of.api_version, of.name) == (kind.api_version, kind.name)]
        return [obj for obj in found if namespace in ("", obj["metadata"].get("namespace", ""))]

    return Cluster(read)


def volcano(part: str, *, ready: bool = True) -> tuple[Kind, Object]:
    return pod(f"volcano-{part}", labels={"app": f"volcano-{part}"}, namespace="volcano-system", ready=ready)


def owned_by(uid: str) -> list[Object]:
    return [{"apiVersion": "v1", "kind": "Owner", "name": uid, "uid": uid}]


def node(name: str, *, taints: tuple[Object, ...] = (SKU_TAINT,), **offers: int) -> tuple[Kind, Object]:
    resources = {"nvidia.com/gpu": offers.get("gpu", 0), "nvidia.com/mlnxnics": offers.get("nics", 0)}
    labels = {"kubernetes.azure.com/agentpool": POOL, "nvidia.com/gpu.deploy.device-plugin": "true"}
    return NODE, {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {key: str(value) for key, value in resources.items()}},
    }


def pod(
    name: str,
    *,
    owner: str = "",
    on: str = "",
    namespace: str = "ai",
    ready: bool = False,
    labels: dict[str, str] | None = None,
    unschedulable: str = "",
    **status: Any,
) -> tuple[Kind, Object]:
    """`unschedulable` is the scheduler's message; `status` has more of the pod's status."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    if unschedulable:
        conditions += [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": unschedulable}]
    own = {**metadata(name, f"{namespace}/{name}", owner), "namespace": namespace, "labels": labels or {}}
    return POD, {
        "metadata": own,
        "spec": {"containers": [{"name": "main"}], **({"nodeName": on} if on else {})},
        "status": {"phase": "Running" if ready else "Pending", "conditions": conditions, **status},
    }


def worker(
    name: str, owner: str = "train", *, on: str = "", tolerates: bool = True, unschedulable: str = ""
) -> tuple[Kind, Object]:
    """Returns a pod that uses all devices of the pool's node."""
    kind, found = pod(name, owner=owner, on=on, unschedulable=unschedulable, labels={"volcano.sh/job-name": owner})
    found["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": owner}
    here = {"key": "kubernetes.azure.com/agentpool", "operator": "In", "values": [POOL]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    found["spec"] |= {
        "schedulerName": "volcano",
        "tolerations": [TOLERATION] if tolerates else [],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [{"name": "main", "resources": {"requests": dict(DEVICES), "limits": dict(DEVICES)}}],
    }
    return kind, found


def waiting(reason: str, message: str = "", image: str = "nvcr.io/nvidia/driver:1") -> Object:
    return {"containerStatuses": [{"image": image, "state": {"waiting": {"reason": reason, "message": message}}}]}


def metadata(name: str, uid: str = "", owner: str = "") -> Object:
    owners = {"ownerReferences": owned_by(owner)} if owner else {}
    return {"name": name, "uid": uid or name, "namespace": "ai", **owners}


def volcano_job(name: str = "train", **spec: Any) -> tuple[Kind, Object]:
    return VOLCANO_JOB, {"metadata": metadata(name), "spec": spec, "status": {"state": {"phase": "Pending"}}}


def job(name: str = "train", **spec: Any) -> tuple[Kind, Object]:
    return JOB, {"metadata": metadata(name), "spec": spec, "status": {}}


def app_wrapper(name: str = "train", phase: str = "", *, suspend: bool = False) -> tuple[Kind, Object]:
    spec = {"suspend": suspend, "components": []}
    return APP_WRAPPER, {"metadata": metadata(name), "spec": spec, "status": {"phase": phase} if phase else {}}


def pytorch_job(name: str = "train", owner: str = "", **conditions: str) -> tuple[Kind, Object]:
    status = {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]}
    spec = {"pytorchReplicaSpecs": {}, "runPolicy": {"suspend": "Suspended" in conditions}}
    return PYTORCH_JOB, {"metadata": metadata(name, f"job-{name}", owner), "spec": spec, "status": status}


def ray_job(deployed: str = "", job: str = "", *, suspend: bool = False, message: str = "") -> tuple[Kind, Object]:
    status = {"jobDeploymentStatus": deployed, "jobStatus": job, "message": message} if deployed else {}
    return RAY_JOB, {"metadata": metadata("train"), "spec": {"suspend": suspend}, "status": status}


def ray_cluster(owner: str = "train") -> tuple[Kind, Object]:
    return RAY_CLUSTER, {"metadata": metadata(f"{owner}-abcde", f"cluster-{owner}", owner), "spec": {}, "status": {}}


def queued(queue: str, message: str, *, reserved: str = "False", owner: str = "train") -> tuple[Kind, Object]:
    status = {"conditions": [{"type": "QuotaReserved", "status": reserved, "message": message}]}
    return QUEUED, {"metadata": metadata(f"job-{owner}", "", owner), "spec": {"queueName": queue}, "status": status}


def group(name: str = "train", owner: str = "train") -> tuple[Kind, Object]:
    return POD_GROUP, {"metadata": metadata(name, f"group-{name}", owner), "status": {"phase": "Pending"}}


def event(
    about: tuple[Kind, Object], reason: str, message: str, at: str = "2026-11-22T10:00:00Z"
) -> tuple[Kind, Object]:
    owner = about[1]["metadata"]
    return EVENT, {
        "metadata": {"name": f"{reason}{at}", "namespace": owner["namespace"], "creationTimestamp": at},
        "involvedObject": {"uid": owner["uid"]},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def cluster_policy(state: str = "ready", message: str = "") -> tuple[Kind, Object]:
    error = {"type": "Error", "status": str(bool(message)), "reason": "OperandNotReady", "message": message}
    status = {"state": state, "conditions": [{"type": "Ready", "status": str(not message)}, error]}
    return CLUSTER_POLICY, {"metadata": {"name": "cluster-policy", "uid": "gpu"}, "status": status}


def nic_policy(state: str = "ready", *applied: Object) -> tuple[Kind, Object]:
    status = {"state": state, "reason": "", "appliedStates": list(applied)}
    return NIC_POLICY, {"metadata": {"name": "nic-cluster-policy", "uid": "nic"}, "status": status}


def daemon_set(
    name: str, policy: str, labels: dict[str, str], *, tolerates: bool = True, generation: str = "1", **spec: Any
) -> tuple[Kind, Object]:
    annotations = {"deprecated.daemonset.template.generation": generation}
    own = {**metadata(name, owner=policy), "namespace": OPERATORS, "annotations": annotations}
    template = {"metadata": {"labels": labels}, "spec": {"tolerations": [TOLERATION] if tolerates else [], **spec}}
    return DAEMON_SET, {"metadata": own, "spec": {"template": template, "updateStrategy": {"type": "OnDelete"}}}


OFED_LABELS = {"nvidia.com/ofed-driver": ""}
DRIVER_LABELS = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver"}
PLUGIN_LABELS = {"app": "nvidia-device-plugin-daemonset"}
NIC_PLUGIN_LABELS = {"app": "sriovdp"}


def operators(*, gpu_plugin_tolerates: bool = True) -> tuple[tuple[Kind, Object], ...]:
    return (
        daemon_set("mofed-ubuntu24.04-ds", "nic", OFED_LABELS),
        daemon_set("sriovdp", "nic", NIC_PLUGIN_LABELS),
        daemon_set("nvidia-driver-daemonset", "gpu", DRIVER_LABELS),
        daemon_set(
            "nvidia-device-plugin-daemonset",
            "gpu",
            PLUGIN_LABELS,
            tolerates=gpu_plugin_tolerates,
            nodeSelector={"nvidia.com/gpu.deploy.device-plugin": "true"},
        ),
    )


def driver_pod(
    daemon_set_name: str, on: str, *, ready: bool = False, generation: str = "1", **status: Any
) -> tuple[Kind, Object]:
    where = {"owner": daemon_set_name, "on": on, "namespace": OPERATORS}
    started = {"startTime": "2026-11-22T09:30:00Z", **status}
    return pod(
        f"{daemon_set_name}-{on}", **where, ready=ready, labels={"pod-template-generation": generation}, **started
    )


def diagnosed(*objects: tuple[Kind, Object]) -> Report:
    return report(cluster(*objects), "ai", "train")


def whys(*objects: tuple[Kind, Object]) -> list[str]:
    return [finding.why for finding in diagnosed(*objects).findings]


def shown(report: Report) -> list[str]:
    found = [[f"waits: {finding.why}", *([f"do: {finding.fix}"] if finding.fix else [])] for finding in report.findings]
    return [text for texts in found for text in texts]
