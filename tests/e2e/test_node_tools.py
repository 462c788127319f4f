from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.node_tools import NAMESPACE, pods, ready
from tests.support.world import Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    tools = new_stack("tools", workloads=None)
    tools.up()
    return tools


def waiting(stack: Stack, tool: str) -> set[str]:
    statuses = [
        status
        for pod in pods(stack, tool)
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in pod.get("status", {}).get(kind, [])
    ]
    return {status["state"]["waiting"]["reason"] for status in statuses if "waiting" in status["state"]}


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
