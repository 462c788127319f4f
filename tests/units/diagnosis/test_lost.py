"""Pods on nodes that are lost: what becomes of them, when, and what ends those whose end nobody can confirm."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import NODE, Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

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
DESCRIBE = "do: kubectl describe node a    # AKS repairs such a node by itself, or tries to (docs/lost-nodes.md)"


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


def test_what_ran_on_a_silent_node_is_deleted_when_its_time_is_up() -> None:
    assert told(lost(), pod()) == [
        f"waits: pod train-0 is Running on node a, which is silent since 10:42 UTC: {SAID} "
        "Unless it is back 300 s after its taint, at 10:47 UTC, Kubernetes deletes what is there.",
        DESCRIBE,
    ]


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


def test_what_is_to_end_there_cannot_and_force_is_for_machines_that_are_off() -> None:
    assert told(lost(), pod(going=True), pod("train-1", going=True)) == [
        "waits: pods train-0 and train-1 are Terminating on node a, which is silent since 10:42 UTC: only the node's "
        "return, its deletion or force ends that, for nobody there can confirm it",
        "do: kubectl delete pod -n ai train-0 train-1 --force    # only when its machine is off: else it runs on, "
        "unseen (docs/lost-nodes.md)",
    ]


def test_a_kubelet_that_is_not_ready_ends_pods_itself() -> None:
    not_ready = lost("False", taint=TAINT | {"key": "node.kubernetes.io/not-ready"})
    (why, fix) = told(not_ready, pod(going=True))
    assert why.endswith(
        f"is Terminating on node a, which is not ready since 10:42 UTC: {SAID} its kubelet is to end what is there."
    )
    assert fix == DESCRIBE


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


def test_what_a_pod_waited_for_before_its_node_was_lost_is_no_matter() -> None:
    starting = pod(**make.waiting("ErrImagePull", "not found"))
    assert len(told(lost(), starting)) == len(["why", "fix"])


def test_pods_that_have_ended_there_and_those_of_other_nodes_are_not_told() -> None:
    other = make.pod("train-1", owner="train", on="b", phase="Running")
    found = told(lost(), pod(phase="Failed"), other)
    assert [text for text in found if "lost" in text or "silent" in text] == []


def test_the_platform_tells_of_those_that_hold_up_a_deletion() -> None:
    found = make.told(platform(make.cluster(lost(), pod(going=True), pod("train-1"))))
    assert [text for text in found if "train" in text and text.startswith("do: ")] == [
        "do: kubectl delete pod -n ai train-0 --force    # only when its machine is off: else it runs on, "
        "unseen (docs/lost-nodes.md)"
    ]


def test_a_suspended_job_waits_for_them_too() -> None:
    job = make.job(suspend=True, template=make.worker("x")[1])
    found = make.told(report(make.cluster(job, lost(), pod(going=True)), "ai", "train"))
    assert "Terminating on node a" in found[0]
    assert found[-2] == "waits: it is suspended"
