from __future__ import annotations

from k8s.objects import Object, condition, holds
from simulator.kube.client import KubeClient
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, names

CLUSTER_POLICY = ("nvidia.com/v1", "ClusterPolicy", "cluster-policy")
NIC_POLICY = ("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")


def offers(node: Object) -> int:
    return int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))


def offered_gpus(stack: Stack) -> list[int]:
    return [offers(node) for node in gpu_nodes(stack.kube)]


def offers_gpus(stack: Stack) -> bool:
    offered = offered_gpus(stack)
    return bool(offered) and all(offered)


def policy_is_ready(stack: Stack, api_version: str, kind: str, name: str) -> bool:
    policy = stack.kube.find(api_version, kind, name) or {}
    return bool(policy.get("status", {}).get("state") == "ready")


def ready_status(stack: Stack, node: str) -> str:
    return str(condition(stack.kube.get("v1", "Node", node), "Ready").get("status"))


def unready_pods(stack: Stack, node: str) -> list[str]:
    fields = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
    pods = stack.kube.list("v1", "Pod", fields=fields)
    return names(pod for pod in pods if not holds(pod, "Ready"))


def placed(kube: KubeClient, namespace: str, job: str) -> list[str]:
    pods = kube.list("v1", "Pod", namespace, labels=f"volcano.sh/job-name={job}")
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def gang(name: str, pods: int) -> Object:
    """Returns a Volcano job. Each pod takes all GPUs of a node and ends by itself."""
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "alpine", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "tolerations": [{"key": "sku", "operator": "Exists"}],
    }
    tasks = [{"name": "worker", "replicas": pods, "template": {"spec": spec}}]
    job = {"minAvailable": pods, "schedulerName": "volcano", "tasks": tasks}
    return manifest("batch.volcano.sh/v1alpha1", "Job", name, "default", spec=job)


def bound_job(name: str, node: str) -> Object:
    """Returns a Job whose pods bypass the scheduler and take all GPUs of a node."""
    template = gang(name, 1)["spec"]["tasks"][0]["template"]
    template["spec"]["nodeName"] = node
    return manifest("batch/v1", "Job", name, "default", spec={"template": template})


def is_completed(stack: Stack, job: str) -> bool:
    return job_phase(stack.kube, job, "default") == "Completed"


def unschedulable_reason(stack: Stack, job: str, namespace: str = "default") -> str:
    def reason() -> str:
        groups = [
            group
            for group in stack.kube.list("scheduling.volcano.sh/v1beta1", "PodGroup", namespace)
            if group["metadata"]["ownerReferences"][0]["name"] == job
        ]
        message = str(condition(groups[0], "Unschedulable").get("message", "")) if groups else ""
        return "" if "/0 tasks" in message else message  # the gang had no pods yet

    return str(eventually(reason, f"the PodGroup of {job} has the reason why it waits"))


def tolerate(stack: Stack, tolerations: list[Object]) -> None:
    stack.kube.patch(*CLUSTER_POLICY, None, {"spec": {"daemonsets": {"tolerations": tolerations}}})

    def passed_on() -> bool:
        plugin = stack.kube.get("apps/v1", "DaemonSet", "nvidia-device-plugin-daemonset", "nvidia-operator")
        return bool(plugin["spec"]["template"]["spec"]["tolerations"] == tolerations)

    eventually(passed_on, "the operator has set the tolerations")
