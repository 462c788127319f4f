"""What a cluster shows of its nodes, policies and gangs."""

from __future__ import annotations

from k8s.objects import Object
from simulator.kube.client import KubeClient
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, names

CLUSTER_POLICY = ("nvidia.com/v1", "ClusterPolicy", "cluster-policy")
NIC_POLICY = ("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")


def offers(node: Object, resource: str = "nvidia.com/gpu") -> int:
    return int(node["status"]["allocatable"].get(resource, 0))


def offers_gpus(stack: Stack) -> bool:
    return all(offers(node) for node in gpu_nodes(stack.kube))


def offers_none(stack: Stack) -> bool:
    return not any(offers(node) for node in gpu_nodes(stack.kube))


def policy_is_ready(stack: Stack, api_version: str, kind: str, name: str) -> bool:
    policy = stack.kube.find(api_version, kind, name) or {}
    return bool(policy.get("status", {}).get("state") == "ready")


def condition(obj: Object, kind: str) -> str:
    found = obj.get("status", {}).get("conditions", [])
    return next((entry["status"] for entry in found if entry["type"] == kind), "")


def is_ready(stack: Stack, node: str) -> bool:
    return condition(stack.kube.get("v1", "Node", node), "Ready") == "True"


def is_silent(stack: Stack, node: str) -> bool:
    return condition(stack.kube.get("v1", "Node", node), "Ready") == "Unknown"


def unready_pods(stack: Stack, node: str) -> list[str]:
    """Of those that have not ended: what begins anew after a boot is Pending for a moment."""
    fields = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
    pods = stack.kube.list("v1", "Pod", fields=fields)
    return names(pod for pod in pods if condition(pod, "Ready") != "True")


def all_ready(stack: Stack, node: str) -> bool:
    return not unready_pods(stack, node)


def placed(kube: KubeClient, namespace: str, job: str) -> list[str]:
    """Pods of the job that are on a node."""
    pods = kube.list("v1", "Pod", namespace, labels=f"volcano.sh/job-name={job}")
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def gang(name: str, pods: int) -> Object:
    """A Volcano job of pods that take all GPUs of a node each; they end by themselves."""
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "alpine", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "tolerations": [{"key": "sku", "operator": "Exists"}],
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": pods,
            "schedulerName": "volcano",
            "tasks": [{"name": "worker", "replicas": pods, "template": {"spec": spec}}],
        },
    }


def bound_job(name: str, node: str) -> Object:
    """A Job whose pods are on a node before a scheduler has seen them; they take all of its GPUs."""
    template = gang(name, 1)["spec"]["tasks"][0]["template"]
    template["spec"]["nodeName"] = node
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def completed(stack: Stack, job: str) -> bool:
    return job_phase(stack.kube, job, "default") == "Completed"


def unschedulable(stack: Stack, job: str, namespace: str = "default") -> str:
    """Why Volcano holds the job's pods back."""

    def reason() -> str:
        groups = [
            group
            for group in stack.kube.list("scheduling.volcano.sh/v1beta1", "PodGroup", namespace)
            if group["metadata"]["ownerReferences"][0]["name"] == job
        ]
        conditions = groups[0].get("status", {}).get("conditions", []) if groups else []
        said = next((entry["message"] for entry in conditions if entry["type"] == "Unschedulable"), "")
        return "" if "/0 tasks" in said else said  # it looked before any pod of the gang was there

    return str(eventually(reason, f"the PodGroup of {job} says why it waits"))


def tolerate(stack: Stack, tolerations: list[Object]) -> None:
    """Makes them those of the GPU operator's DaemonSets, the device plugin's among them."""
    stack.kube.patch(*CLUSTER_POLICY, None, {"spec": {"daemonsets": {"tolerations": tolerations}}})

    def passed_on() -> bool:
        plugin = stack.kube.get("apps/v1", "DaemonSet", "nvidia-device-plugin-daemonset", "nvidia-operator")
        return bool(plugin["spec"]["template"]["spec"]["tolerations"] == tolerations)

    eventually(passed_on, "the operator has passed the tolerations on")
