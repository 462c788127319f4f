"""Cordoned nodes: who has cordoned them, and what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import Kind, Object
from diagnosis.report import platform, report
from tests.units.diagnosis import objects as make

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-22T10:42:00Z"}
"""As the node lifecycle controller adds it to a node whose spec is unschedulable."""
OFED_STATE = "nvidia.com/ofed-driver-upgrade-state"


def cordoned(name: str = "a", *, by: str = "", **labels: str) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8, taints=(make.SKU_TAINT, CORDON))
    node["spec"]["unschedulable"] = True
    node["metadata"]["labels"] |= {f"nvidia.com/{key}-driver-upgrade-state": value for key, value in labels.items()}
    others = {"manager": "kubelet", "fieldsV1": {"f:status": {}}}
    writer = {"manager": by, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    node["metadata"]["managedFields"] = [others, writer] if by else [others]
    return kind, node


def told(*objects: tuple[Kind, Object]) -> list[str]:
    return make.told(platform(make.cluster(*objects)))


def of_daemon_set(pod: tuple[Kind, Object]) -> tuple[Kind, Object]:
    pod[1]["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "ds", "uid": "ds"}]
    return pod


def test_a_person_has_cordoned_it() -> None:
    assert told(cordoned(by="kubectl")) == [
        "waits: cordoned by kubectl: it takes no new pods on node a since 10:42 UTC",
        "do: kubectl uncordon a    # once it is known why",
    ]


def test_nodes_that_the_same_client_has_cordoned_are_told_together() -> None:
    why, do = told(cordoned("a", by="kubectl"), cordoned("b", by="kubectl"))
    assert why.startswith("waits: cordoned by kubectl: it takes no new pods on nodes a and b")
    assert do == "do: kubectl uncordon a b    # once it is known why"


def test_an_api_server_that_does_not_tell_by_whom() -> None:
    assert told(cordoned())[0] == "waits: cordoned: it takes no new pods on node a since 10:42 UTC"


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ("cordon-required", ""),
        ("wait-for-jobs-required", "; they wait for pods ai/train-0 and ai/notebook to end"),
        ("pod-deletion-required", "; they wait for pod ai/train-0 to end"),
        ("drain-required", "; they wait for pods ai/train-0 and ai/notebook to end"),
        ("pod-restart-required", "; they wait for pod nvidia-operator/mofed-a to be ready"),
        ("validation-required", "; they wait for pod nvidia-operator/mofed-a to be ready"),
        ("uncordon-required", ""),
    ],
)
def test_an_upgrade_names_the_driver_its_state_and_the_pods_that_it_waits_for(state: str, waits: str) -> None:
    driver = of_daemon_set(make.driver_pod("mofed", "a"))
    driver[1]["metadata"]["labels"] |= make.OFED_LABELS
    ended = make.pod("done", on="a", phase="Succeeded")
    here = [make.pod("notebook", on="a", ready=True), make.worker("train-0", on="a"), driver, ended]
    what, do = told(cordoned(by="manager", ofed=state), *here, make.pod("elsewhere", on="b", ready=True))
    changed = f"cordoned by NVIDIA's operators, who change DOCA OFED ({state}){waits}"
    assert what == f"waits: {changed} on node a since 10:42 UTC"
    assert do == "do: kubectl get pods -A -o wide --field-selector spec.nodeName=a"


def test_an_upgrade_that_has_failed_is_not_waited_for() -> None:
    what, do = told(cordoned(by="gpu-operator", gpu="upgrade-failed"))
    assert "who change the GPU driver (upgrade-failed): a pod there may not be evicted on node a" in what
    assert "docs/drivers.md" in do


@pytest.mark.parametrize("state", ["upgrade-done", "upgrade-required"])
def test_a_node_whose_driver_nobody_changes_now_is_somebody_elses_cordon(state: str) -> None:
    assert "cordoned by kubectl" in told(cordoned(by="kubectl", ofed=state))[0]


def test_a_pod_that_a_cordoned_node_would_suit_says_the_same() -> None:
    workers: list[Any] = [make.worker(f"train-{number}") for number in range(2)]
    free = make.node("a", gpu=8, nics=8)
    waiting = report(make.cluster(make.volcano_job(), *workers, free, cordoned("b", by="kubectl")), "ai", "train")
    assert make.told(waiting) == [
        "waits: cordoned by kubectl: it takes no new pods on node b since 10:42 UTC",
        "do: kubectl uncordon b    # once it is known why",
    ]


@pytest.mark.parametrize(
    ("taints", "conditions"),
    [
        ([{"key": "aznhc", "value": "failed", "effect": "NoSchedule"}], []),
        ([], [{"type": "ai-on-aks/GPUMissing", "status": "True", "message": "7 of 8"}]),
        ([], [{"type": "Ready", "status": "False"}]),
    ],
)
def test_a_node_with_problems_of_its_own_is_not_to_be_uncordoned(
    taints: list[Object], conditions: list[Object]
) -> None:
    kind, node = cordoned(by="kubectl")
    node["spec"]["taints"] += taints
    node["status"]["conditions"] = conditions
    (fix,) = [text for text in told((kind, node)) if "uncordon" in text]
    assert fix == "do: kubectl describe node a    # uncordon it only once its own problems are fixed"
