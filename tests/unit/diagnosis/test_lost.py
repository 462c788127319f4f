from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import NODE, Kind
from diagnosis.report import report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

SAID = "Kubelet stopped posting node status."
TAINT: Object = {
    "key": "node.kubernetes.io/unreachable",
    "effect": "NoExecute",
    "timeAdded": "2026-11-22T10:42:30Z",
}
BY_DEFAULT: Object = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
"""The API server's default (kubernetes, plugin/pkg/admission/defaulttolerationseconds)."""


def lost(status: str = "Unknown", *, taint: Object | None = TAINT) -> tuple[Kind, Object]:
    ready = {"type": "Ready", "status": status, "message": SAID, "lastTransitionTime": "2026-11-22T10:42:00Z"}
    taints = [taint] if taint else []
    return NODE, {
        "metadata": {"name": "a", "uid": "a"},
        "spec": {"taints": taints},
        "status": {"conditions": [ready]},
    }


def pod(*tolerations: Object, **status: Any) -> tuple[Kind, Object]:
    kind, found = make.pod("train-0", owner="train", on="a", **{"phase": "Running", **status})
    found["spec"]["tolerations"] = list(tolerations or (BY_DEFAULT,))
    return kind, found


def shown(*objects: tuple[Kind, Object]) -> list[str]:
    return make.shown(make.diagnosed(make.job(), *objects))


@pytest.mark.parametrize(
    ("tolerations", "then"),
    [
        ([BY_DEFAULT | {"tolerationSeconds": 30}], "within 30 s of its taint (at 10:43 UTC)"),
        ([BY_DEFAULT, BY_DEFAULT | {"tolerationSeconds": 60}], "within 60 s of its taint (at 10:43 UTC)"),
        ([{"operator": "Exists"}], "The pods tolerate this without a limit"),
        ([{"operator": "Exists", "key": "sku"}], "within 0 s of its taint (at 10:42 UTC)"),
    ],
    ids=["own time", "shortest counts", "no limit", "none"],
)
def test_tolerations_decide_how_long_pods_stay(tolerations: list[Object], then: str) -> None:
    assert then in shown(lost(), pod(*tolerations))[0]


def test_before_the_node_has_its_taint() -> None:
    assert shown(lost(taint=None), pod())[0].endswith("Kubernetes will taint the node soon.")


def test_pods_of_a_deleted_node_are_deleted_soon() -> None:
    kind, left = pod(phase="Pending")
    left["spec"]["nodeName"] = "b"
    cluster = make.cluster(make.job(), (kind, left))
    deleted = [node for node in cluster.all(NODE) if node["metadata"]["name"] == "b"]
    cluster.all(NODE).remove(deleted[0])
    why = "waits: pod train-0 is Pending on node b (deleted): Kubernetes deletes its pods in about a minute"
    assert make.shown(report(cluster, "ai", "train"))[0] == why
