from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER, GPU_TAINT
from operators.kueue import queues
from tests.e2e.team_jobs import QUEUED, apply, container, quota_reserved, shared_stack
from tests.support.manifests import manifest
from tests.support.world import Stack, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
OPERATORS: dict[str, Any] = {"kueue": {"enabled": True, "topology": True}, "scheduler": COSCHEDULER}
POOL: dict[str, Any] = {"vmSku": "Standard_ND96isr_H100_v5", "count": 3}
REQUIRED, PREFERRED = (f"kueue.x-k8s.io/podset-{how}-topology" for how in ("required", "preferred"))


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    more = {"vmSku": None, "nodeCount": None, "pools": {"gpu": POOL}, "teams": {"blue": {"gpus": 24}}}
    return shared_stack(new_stack, "topology", nodes=3, operators=OPERATORS, **more)


def partitions(stack: Stack) -> dict[str, set[str]]:
    """Nodes without a label are under `""`."""
    found: dict[str, set[str]] = {}
    for node in gpu_nodes(stack.kube):
        meta = node["metadata"]
        found.setdefault(meta["labels"].get(queues.BLOCK, ""), set()).add(meta["name"])
    return found


def sizes(stack: Stack) -> list[int]:
    found = partitions(stack)
    return [] if "" in found else sorted(map(len, found.values()))


def flavors(stack: Stack) -> list[str]:
    return [each["metadata"]["name"] for each in stack.kube.list(queues.API, "ResourceFlavor")]


def submit(stack: Stack, name: str, pods: int, annotation: str) -> None:
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "schedulerName": COSCHEDULER}
    pod["containers"] = [container(stack, "sleep", "900")]
    template = {"metadata": {"annotations": {annotation: queues.BLOCK}}, "spec": pod}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    apply(stack, manifest("batch/v1", "Job", name, labels=QUEUED, spec=spec), "blue")


def nodes_of(stack: Stack, name: str, pods: int) -> set[str]:
    def running() -> set[str]:
        found = stack.kube.list("v1", "Pod", "blue", labels=f"job-name={name}")
        nodes = {each["spec"]["nodeName"] for each in found if each.get("status", {}).get("phase") == "Running"}
        return nodes if len(nodes) == pods else set()

    eventually(running, f"all pods of {name} run", 120)
    return running()


def remove(stack: Stack, name: str) -> None:
    stack.kube.delete("batch/v1", "Job", name, "blue")
    eventually(lambda: not stack.kube.list("v1", "Pod", "blue", labels=f"job-name={name}"), f"{name} is gone")


def test_the_nodes_of_a_pool_are_one_block_until_one_gets_its_own_partition(stack: Stack) -> None:
    eventually(lambda: sizes(stack) == [3], "every node has its label", 120)
    alone = sorted(node["metadata"]["name"] for node in gpu_nodes(stack.kube))[0]
    stack.world.simulator("fault", "partition", "--node", alone)
    for pod in stack.kube.list("v1", "Pod", "node-tools", labels="app.kubernetes.io/name=node-labeler"):
        # The labeler checks again after five minutes.
        stack.kube.delete("v1", "Pod", pod["metadata"]["name"], "node-tools")
    eventually(lambda: sizes(stack) == [1, 2], "the labels have changed", 180)
    stack.up("--expect-no-changes")


def test_a_job_that_requires_one_block_gets_nodes_of_one_block(stack: Stack) -> None:
    submit(stack, "pair", 2, REQUIRED)
    assert nodes_of(stack, "pair", 2) in partitions(stack).values()
    remove(stack, "pair")


def test_a_job_that_is_too_large_for_any_block_waits(stack: Stack) -> None:
    submit(stack, "three", 3, REQUIRED)

    def message() -> str:
        return str(quota_reserved(stack, "blue", "three").get("message", ""))

    assert "topology" in eventually(message, "Kueue reports why it waits")
    assert stack.kube.get("batch/v1", "Job", "three", "blue")["spec"]["suspend"]
    remove(stack, "three")


def test_a_job_that_prefers_one_block_takes_two(stack: Stack) -> None:
    submit(stack, "any", 3, PREFERRED)
    assert len(nodes_of(stack, "any", 3)) == 3
    remove(stack, "any")


def test_another_taint_replaces_the_flavor_because_kueue_cannot_change_it(stack: Stack) -> None:
    (before,) = flavors(stack)
    stack.set(pools={"gpu": {**POOL, "taints": [GPU_TAINT, "team=x:NoSchedule"]}})
    stack.up()
    (after,) = flavors(stack)
    assert after != before
    submit(stack, "tolerant", 2, REQUIRED)
    assert nodes_of(stack, "tolerant", 2) in partitions(stack).values()
    remove(stack, "tolerant")


def test_without_topology_the_plain_flavor_is_used_again(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "kueue": {"enabled": True}})
    stack.up()
    assert flavors(stack) == [queues.FLAVOR]
    assert not stack.kube.list(queues.API, "Topology")
