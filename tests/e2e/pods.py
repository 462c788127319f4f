from __future__ import annotations

from k8s.objects import Object, has_ended
from simulator.kube.client import ApiError, KubeClient
from tests.support.manifests import manifest
from tests.support.world import eventually


def run_pod(kube: KubeClient, name: str, spec: Object, namespace: str = "ai") -> str:
    kube.create(manifest("v1", "Pod", name, namespace, spec=spec))
    eventually(lambda: has_ended(kube.get("v1", "Pod", name, namespace)), f"{name} ends")
    text = log_so_far(kube, name, namespace)
    assert kube.get("v1", "Pod", name, namespace)["status"]["phase"] == "Succeeded", text
    return text.strip()


def log_so_far(kube: KubeClient, pod: str, namespace: str, **query: str) -> str:
    try:
        return kube.text(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query)
    except ApiError:
        return ""


def none_is_left(kube: KubeClient, api: str, kind: str, namespace: str) -> bool:
    return not kube.list(api, kind, namespace)
