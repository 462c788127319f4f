"""Pods on nodes that are lost: what becomes of them, when, and what ends those whose end nobody can confirm."""

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
"""What the API server gives every pod (kubernetes, plugin/pkg/admission/defaulttolerationseconds)."""


def lost(status: str = "Unknown", *, taint: Object | None = TAINT) -> tuple[Kind, Object]:
    """A node `a` that does not report, or says that it is not ready."""
    ready = {"type": "Ready", "status": status, "message": SAID, "lastTransitionTime": "2026-11-22T10:42:00Z"}
    taints = [taint] if taint else []
    return NODE, {
        "metadata": {"name": "a", "uid": "a"},
        "spec": {"taints": taints},
        "status": {"conditions": [ready]},
    }


def pod(name: str = "train-0", *tolerations: Object, going: bool = False, **status: Any) -> tuple[Kind, Object]:
    """On that node."""
    kind, found = make.pod(name, owner="train", on="a", **{"phase": "Running", **status})
    found["spec"]["tolerations"] = list(tolerations or (BY_DEFAULT,))
    if going:
        found["metadata"]["deletionTimestamp"] = "2026-11-22T10:48:00Z"
    return kind, found


def told(*objects: tuple[Kind, Object]) -> list[str]:
    return make.told(report(make.cluster(make.job(), *objects), "ai", "train"))


@pytest.mark.parametrize(
    ("tolerations", "then"),
    [
        ([BY_DEFAULT | {"tolerationSeconds": 30}], "Unless it is back 30 s after its taint, at 10:43 UTC, "),
        (
            [BY_DEFAULT, BY_DEFAULT | {"tolerationSeconds": 60}],
            "Unless it is back 60 s after its taint, at 10:43 UTC, ",
        ),
        ([{"operator": "Exists"}], "That is tolerated for ever: what is there waits for it."),
        ([{"operator": "Exists", "key": "sku"}], "Unless it is back 0 s after its taint, at 10:42 UTC, "),
    ],
    ids=["its own time", "the least counts", "for ever", "none"],
)
def test_how_long_is_what_the_pods_tolerations_say(tolerations: list[Object], then: str) -> None:
    assert then in told(lost(), pod("train-0", *tolerations))[0]


def test_before_the_node_has_its_taint() -> None:
    assert told(lost(taint=None), pod())[0].endswith("Kubernetes is about to taint it.")


def test_what_a_node_that_is_gone_has_left_goes_by_itself() -> None:
    kind, left = pod(phase="Pending")
    left["spec"]["nodeName"] = "b"
    cluster = make.cluster(make.job(), (kind, left))
    gone = [node for node in cluster.all(NODE) if node["metadata"]["name"] == "b"]
    cluster.all(NODE).remove(gone[0])
    assert make.told(report(cluster, "ai", "train"))[0] == (
        "waits: pod train-0 is Pending on node b, which is gone: "
        "Kubernetes deletes what was there within a minute or so"
    )
