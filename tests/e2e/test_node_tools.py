"""A changed script of a DaemonSet on GPU nodes, and the chart's blob driver."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.node_tools import NAMESPACE, pods, ready
from tests.support.world import Stack, eventually, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
DATA = {"protect": False, "driver": "chart", "containers": {"data": {"permissions": "racwdlmp"}}}


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    tools = new_stack("tools", workloads=None, storage=DATA)
    tools.up()
    return tools


def waiting(stack: Stack, tool: str) -> set[str]:
    """Returns the reasons of waiting containers of a tool."""
    statuses = [
        status
        for pod in pods(stack, tool)
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in pod.get("status", {}).get(kind, [])
    ]
    return {status["state"]["waiting"]["reason"] for status in statuses if "waiting" in status["state"]}


def test_the_charts_blob_driver_mounts_a_container(stack: Stack) -> None:
    driver = stack.kube.get("apps/v1", "DaemonSet", "csi-blob-node", "kube-system")
    assert driver["metadata"]["annotations"]["meta.helm.sh/release-name"] == "blob-csi-driver"
    (claim,) = names(stack.kube.list("v1", "PersistentVolumeClaim", "ai"))
    main = {"name": "main", "image": "nccl-test", "command": ["bash", "-ec", "echo weights >/data/model; ls /data"]}
    spec = {
        "restartPolicy": "Never",
        "containers": [main | {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "writer", "namespace": "ai"}, "spec": spec}
    stack.kube.create(pod)
    eventually(lambda: stack.kube.get("v1", "Pod", "writer", "ai")["status"]["phase"] == "Succeeded", "writer ends")
    assert log(stack.kube, "writer", "ai") == "model\n"
    stack.kube.delete("v1", "Pod", "writer", "ai")  # an ended pod also keeps its claim


def test_pods_wait_for_the_image_of_a_changed_script_and_data_stay(stack: Stack) -> None:
    eventually(lambda: ready(stack, "local-nvme-scratch"), "every node has scratch")
    before = {pod["metadata"]["uid"] for pod in pods(stack, "local-nvme-scratch")}
    stack.pushes_images = False
    stack.alter("from components import images\nimages.content_tag = lambda name: 'changed'")
    stack.up()
    eventually(lambda: "ImagePullBackOff" in waiting(stack, "local-nvme-scratch"), "the new image is missing")
    stack.alter("")
    stack.up()
    eventually(lambda: ready(stack, "local-nvme-scratch"), "pods run with the old image")
    again = [pod for pod in pods(stack, "local-nvme-scratch") if pod["metadata"]["uid"] not in before]
    assert again
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{again[0]['metadata']['name']}/log?container=setup"
    assert "keeping the file system" in stack.kube.text(path)
