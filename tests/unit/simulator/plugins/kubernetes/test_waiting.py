from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from simulator.kube.client import ApiError, KubeClient
from simulator.plugins.marshal import Properties
from tests.support.plugin_engine import Failed, KubernetesPlugin
from tests.support.waiting import eventually

pytestmark = pytest.mark.simulator

RUNS = {"simulator/run-by": "kwok"}  # pods with this annotation become ready, or complete; others stay pending
DEPLOYMENT = "kubernetes:apps/v1:Deployment"


def manifest(
    api_version: str, kind: str, namespace: str, spec: Properties, annotations: dict[str, str] | None = None
) -> Properties:
    metadata: Properties = {"name": "it", "namespace": namespace}
    if annotations:
        metadata["annotations"] = {f"pulumi.com/{name}": value for name, value in annotations.items()}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def pods(*, run: bool, **spec: Any) -> Properties:
    containers = [{"name": "c", "image": "x"}]
    metadata = {"labels": {"app": "a"}, "annotations": RUNS if run else {}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def deployment(namespace: str, *, run: bool) -> Properties:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": pods(run=run)}
    return manifest("apps/v1", "Deployment", namespace, spec)


def test_waits_for_a_new_image(plugin: KubernetesPlugin, namespace: str) -> None:
    first = deployment(namespace, run=True)
    resource = plugin.create(DEPLOYMENT, "d", first)
    second = deployment(namespace, run=True)
    second["spec"]["template"]["spec"]["containers"][0]["image"] = "y"
    updated = plugin.update(resource, second)
    assert updated.state["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert updated.state["status"]["readyReplicas"] == 1


def test_waits_for_stateful_and_daemon_sets(plugin: KubernetesPlugin, namespace: str) -> None:
    selector = {"matchLabels": {"app": "a"}}
    spec = {"selector": selector, "serviceName": "s", "template": pods(run=True)}
    stateful = plugin.create("kubernetes:apps/v1:StatefulSet", "s", manifest("apps/v1", "StatefulSet", namespace, spec))
    assert stateful.state["status"]["readyReplicas"] == 1
    spec = {"selector": selector, "template": pods(run=True)}
    daemons = plugin.create("kubernetes:apps/v1:DaemonSet", "d", manifest("apps/v1", "DaemonSet", namespace, spec))
    assert daemons.state["status"]["numberReady"] == 1


def test_a_failed_job_ends_the_wait(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    nowhere = {"no": "such-node"}
    spec = {"template": pods(run=False, restartPolicy="Never", nodeSelector=nowhere), "activeDeadlineSeconds": 1}
    with pytest.raises(Failed, match="'it' was created but failed to initialize") as failure:
        plugin.create("kubernetes:batch/v1:Job", "j", manifest("batch/v1", "Job", namespace, spec))
    assert failure.value.partial is not None
    assert any("[DeadlineExceeded]" in reason for reason in failure.value.partial.reasons)


def test_a_service_waits_for_ready_endpoints(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    metadata = {"name": "p", "namespace": namespace, "labels": {"app": "a"}}
    kube.create({"apiVersion": "v1", "kind": "Pod", **pods(run=False), "metadata": metadata})
    address = {"phase": "Running", "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}]}
    status = {**address, "conditions": [{"type": "Ready", "status": "False"}]}
    kube.patch("v1", "Pod", "p", namespace, {"status": status}, subresource="status")
    spec = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
    unready = manifest("v1", "Service", namespace, spec, {"timeoutSeconds": "6"})
    with pytest.raises(Failed) as failure:
        plugin.create("kubernetes:core/v1:Service", "s", unready)
    assert failure.value.partial is not None
    assert failure.value.partial.reasons[1].startswith("Service does not target any Pods. Selected Pods may not be")


def test_cancel_ends_a_wait(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(plugin.create, DEPLOYMENT, "d", deployment(namespace, run=False))
        try:
            eventually(lambda: kube.find("apps/v1", "Deployment", "it", namespace), "the deployment exists")
        finally:
            plugin.cancel()
        with pytest.raises(Failed, match='Resource operation was cancelled for "it"') as failure:
            creating.result()
    assert failure.value.partial is not None


def test_a_wait_survives_errors_of_the_api_server(
    plugin: KubernetesPlugin, namespace: str, kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, refused = KubeClient.get, {"Available": 2, "gone": 2}

    def get(self: KubeClient, api_version: str, kind: str, name: str, namespace: str | None = None) -> Properties:
        found: Properties = original(self, api_version, kind, name, namespace)
        if kind == "Deployment":
            waits_for = "gone" if found["metadata"].get("deletionTimestamp") else "Available"
            if refused[waits_for]:
                refused[waits_for] -= 1
                raise ApiError(500, "InternalError", "rpc error: code = Unavailable desc = connection refused")
        return found

    monkeypatch.setattr(KubeClient, "get", get)
    wanted = deployment(namespace, run=True)
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    resource = plugin.create(DEPLOYMENT, "it", wanted)
    assert resource.state["status"]["availableReplicas"] == 1
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(plugin.delete, resource)
        eventually(lambda: refused == {"Available": 0, "gone": 0}, "the wait continues after each error")
        kube.patch("apps/v1", "Deployment", "it", namespace, {"metadata": {"finalizers": None}})
        deleting.result()
    assert kube.find("apps/v1", "Deployment", "it", namespace) is None
