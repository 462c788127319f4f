from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from k8s.objects import Object
from simulator.command.pools import Pool, pools, table
from tests.support.sizes import H100

CPU = "Standard_D4ads_v5"
TRAIN = {"vmSize": H100, "count": 2, "nodeLabels": {"ai-on-aks/pool": "train"}, "nodeTaints": ["sku=gpu:NoSchedule"]}
SYSTEM = {"vmSize": CPU, "count": 1}


def node(name: str, pool: str, *, gpus: int = 0, ready: str = "True", **spec: Any) -> Object:
    labels = {"kubernetes.azure.com/agentpool": pool, "node.kubernetes.io/instance-type": H100 if gpus else CPU}
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod(name: str, on: str, gpus: int, *, phase: str = "Running", labels: Object | None = None) -> Object:
    containers = [{"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]
    metadata = {"name": name, "namespace": "ai", "labels": labels or {}}
    return {
        "metadata": metadata,
        "spec": {"containers": containers} | ({"nodeName": on} if on else {}),
        "status": {"phase": phase},
    }


def of(job: str) -> Object:
    return {"volcano.sh/job-name": job}


def train(*nodes: Object, pods: tuple[Object, ...] = ()) -> Pool:
    (found,) = pools({"train1a2b": TRAIN}, nodes, pods)
    return found


def test_counts_used_and_free_gpus() -> None:
    nodes = node("a", "train1a2b", gpus=8), node("b", "train1a2b", gpus=8)
    pods = (
        pod("nccl-0", "a", 4, labels=of("nccl-allreduce")),
        pod("nccl-1", "b", 4, labels=of("nccl-allreduce")),
        pod("olmo-0", "b", 2, labels={"batch.kubernetes.io/job-name": "olmo"}),
        pod("mine", "b", 1),
        pod("launcher", "a", 0, labels=of("nccl-allreduce")),
    )
    found = train(*nodes, pods=pods)
    assert found == Pool("train", H100, 2, 2, 16, 16, found.taken, free=5)
    assert found.taken == {"ai/nccl-allreduce": 8, "ai/olmo": 2, "ai/mine": 1}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_and_unscheduled_pods_use_no_gpus(phase: str) -> None:
    found = train(node("a", "train1a2b", gpus=8), pods=(pod("done", "a", 8, phase=phase), pod("waits", "", 8)))
    assert (found.taken, found.free) == ({}, 8)


FAILED = {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}
OF_THE_POOL = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "other", [{"unschedulable": True}, {"ready": "False"}, {"ready": "Unknown"}, {"taints": [OF_THE_POOL, FAILED]}]
)
def test_gpus_of_nodes_that_accept_no_pods_are_not_free(other: Object) -> None:
    found = train(node("a", "train1a2b", gpus=8, taints=[OF_THE_POOL]), node("b", "train1a2b", gpus=8, **other))
    assert (found.gpus, found.free) == (16, 8)


def test_while_nodes_join_and_drivers_install() -> None:
    found = train(node("a", "train1a2b"))
    assert (found.nodes, found.nodes_asked, found.gpus, found.gpus_asked, found.free) == (1, 2, 0, 16, 0)


def test_failed_gpus_of_a_job_are_not_free() -> None:
    found = train(node("a", "train1a2b", gpus=7), pods=(pod("a", "a", 8),))
    assert (found.taken, found.free) == ({"ai/a": 8}, 0)


def test_pools_without_nodes_without_gpus_or_unknown_to_azure() -> None:
    empty = {"vmSize": H100, "count": 0}
    nodes = node("s", "system"), node("o", "old", gpus=8)
    found = pools({"empty": empty, "system": SYSTEM}, nodes, [])
    assert [(pool.name, pool.vm_size, pool.nodes, pool.nodes_asked, pool.gpus) for pool in found] == [
        ("empty", H100, 0, 0, 0),
        ("old", H100, 1, 1, 8),
        ("system", CPU, 1, 1, 0),
    ]


def shown(*found: Pool) -> list[list[str]]:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table(found, "pools"))
    lines = capture.get().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    return [line.split() for line in lines[4:]]


def test_lines_of_the_table() -> None:
    by = {"ai/nccl-allreduce": 8, "olmo/olmo": 2}
    assert shown(
        Pool("train", H100, 1, 2, 8, 16, by, free=0),
        Pool("system", CPU, 2, 2, 0, 0, {}, 0),
        Pool("spot", H100, 0, 0, 0, 0, {}, 0),
    ) == [
        ["train", H100, "1/2", "8/16", "10", "0", "ai/nccl-allreduce", "8"],
        ["olmo/olmo", "2"],
        ["system", CPU, "2", "-", "-", "-"],
        ["spot", H100, "0", "-", "-", "-"],
    ]
