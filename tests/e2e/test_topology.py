"""Jobs on nodes that reach each other: Kueue by the partitions of InfiniBand, as the node labeler tells them.

One story, told in the order of the file. Of three nodes of eight GPUs one gets a partition of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import images
from config.data.scheduling import COSCHEDULER, GPU_RESOURCE, GPU_TAINT, LOCAL_QUEUE
from k8s.objects import condition
from operators.kueue import queues
from tests.support.world import Stack, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
OPERATORS: dict[str, Any] = {"kueue": {"enabled": True, "topology": True}, "scheduler": COSCHEDULER}
POOL: dict[str, Any] = {"vmSku": "Standard_ND96isr_H100_v5", "count": 3}
REQUIRED, PREFERRED = (f"kueue.x-k8s.io/podset-{how}-topology" for how in ("required", "preferred"))


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    pools = {"vmSku": None, "nodeCount": None, "pools": {"gpu": POOL}}
    made = new_stack("topology", workloads="", **pools, operators=OPERATORS, teams={"blue": {"gpus": 24}})
    made.up()
    eventually(lambda: [offered(node) for node in gpu_nodes(made.kube)] == [8] * 3, "GPUs", 300)
    return made


def offered(node: Any) -> int:
    return int(node["status"]["allocatable"].get(GPU_RESOURCE, 0))


def partitions(stack: Stack) -> dict[str, set[str]]:
    """Nodes by the label of their partition; `""` has those without."""
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
    """A Job of so many pods, each with all GPUs of a node."""
    image = images.own("nccl-test", login_server=stack.outputs()["registry"], mirror=None)
    limits = {"cpu": 1, "memory": "1Gi", GPU_RESOURCE: 8}
    container = {"name": "main", "image": image, "command": ["sleep", "900"], "resources": {"limits": limits}}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "schedulerName": COSCHEDULER}
    template = {"metadata": {"annotations": {annotation: queues.BLOCK}}, "spec": {**pod, "containers": [container]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE}},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }
    file = Path(stack.folder, f"{name}.yaml")
    file.write_text(yaml.safe_dump(job))
    stack.world.run(
        ["env", f"KUBECONFIG={stack.world.kubeconfig('topology')}", "kubectl", "apply", "-n", "blue", "-f", str(file)]
    )


def nodes_of(stack: Stack, name: str, pods: int) -> set[str]:
    """Of a job's pods, once all of them run."""

    def running() -> set[str]:
        found = stack.kube.list("v1", "Pod", "blue", labels=f"job-name={name}")
        nodes = {each["spec"]["nodeName"] for each in found if each.get("status", {}).get("phase") == "Running"}
        return nodes if len(nodes) == pods else set()

    eventually(running, f"all pods of {name} run", 120)
    return running()


def ended(stack: Stack, name: str) -> None:
    stack.kube.delete("batch/v1", "Job", name, "blue")
    eventually(lambda: not stack.kube.list("v1", "Pod", "blue", labels=f"job-name={name}"), f"{name} is gone")


def test_nodes_of_one_pool_are_one_block_until_one_is_cut_off(stack: Stack) -> None:
    eventually(lambda: sizes(stack) == [3], "every node has its label", 120)
    alone = sorted(node["metadata"]["name"] for node in gpu_nodes(stack.kube))[0]
    stack.world.simulator("fault", "partition", "--node", alone)
    for pod in stack.kube.list("v1", "Pod", "node-tools", labels="app.kubernetes.io/name=node-labeler"):
        stack.kube.delete("v1", "Pod", pod["metadata"]["name"], "node-tools")  # it looks again in five minutes only
    eventually(lambda: sizes(stack) == [1, 2], "the labeler has seen it", 180)
    stack.up("--expect-no-changes")


def test_a_job_that_needs_one_block_gets_nodes_of_one(stack: Stack) -> None:
    submit(stack, "pair", 2, REQUIRED)
    assert nodes_of(stack, "pair", 2) in partitions(stack).values()
    ended(stack, "pair")


def test_one_that_no_block_can_hold_waits_and_is_told_why(stack: Stack) -> None:
    submit(stack, "three", 3, REQUIRED)

    def told() -> str:
        (found,) = stack.kube.list(queues.API, "Workload", "blue") or ({},)
        return str((condition(found, "QuotaReserved") if found else {}).get("message", ""))

    assert "topology" in eventually(told, "Kueue has looked at it")
    assert stack.kube.get("batch/v1", "Job", "three", "blue")["spec"]["suspend"]
    ended(stack, "three")


def test_one_that_would_rather_have_one_block_takes_two(stack: Stack) -> None:
    submit(stack, "any", 3, PREFERRED)
    assert len(nodes_of(stack, "any", 3)) == 3
    ended(stack, "any")


def test_with_another_taint_quotas_are_of_a_new_flavor_for_kueue_would_not_change_the_old(stack: Stack) -> None:
    (before,) = flavors(stack)
    stack.set(pools={"gpu": {**POOL, "taints": [GPU_TAINT, "team=x:NoSchedule"]}})
    stack.up()
    (after,) = flavors(stack)
    assert after != before
    submit(stack, "tolerant", 2, REQUIRED)
    assert nodes_of(stack, "tolerant", 2) in partitions(stack).values()
    ended(stack, "tolerant")


def test_without_it_quotas_are_of_the_plain_flavor_again(stack: Stack) -> None:
    stack.set(operators={**OPERATORS, "kueue": {"enabled": True}})
    stack.up()
    assert flavors(stack) == [queues.FLAVOR]
    assert not stack.kube.list(queues.API, "Topology")


def test_destroy_leaves_nothing(stack: Stack) -> None:
    stack.destroy()
    assert not stack.world.kubeconfig("topology").exists()
