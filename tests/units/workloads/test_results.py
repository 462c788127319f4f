"""The Job by which a team reads what its job has left: within the queue, of no GPU, read-only, gone by itself."""

from __future__ import annotations

from typing import Any

from config.facts.scheduling import COSCHEDULER, GPU_RESOURCE
from workloads._pods import Mount
from workloads._results import SECONDS, Results

CLAIM = Mount(name="cache", path="/cache", source={"persistentVolumeClaim": {"claimName": "model"}})
RESULTS = Results(job="train", image="trainer:1", queue="default-queue", scheduler=COSCHEDULER, mount=CLAIM)


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = RESULTS.manifest()["spec"]["template"]["spec"]
    return spec


def test_it_queues_as_all_jobs_of_teams_and_takes_no_gpu() -> None:
    assert RESULTS.manifest()["metadata"] == {
        "name": "train-results",
        "labels": {"kueue.x-k8s.io/queue-name": "default-queue"},
    }
    (container,) = pod()["containers"]
    assert GPU_RESOURCE not in container["resources"]["limits"]
    assert pod()["schedulerName"] == COSCHEDULER


def test_it_ends_by_itself_is_not_tried_again_and_leaves_nothing() -> None:
    spec = RESULTS.manifest()["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 0)
    assert pod()["containers"][0]["command"] == ["sleep", str(SECONDS)]


def test_it_may_do_no_more_than_read_the_volume() -> None:
    (container,) = pod()["containers"]
    assert container["volumeMounts"] == [{"name": "cache", "mountPath": "/cache", "readOnly": True}]
    assert pod()["volumes"] == [{"name": "cache", "persistentVolumeClaim": {"claimName": "model"}}]
    rights = container["securityContext"]
    assert (rights["runAsNonRoot"], rights["allowPrivilegeEscalation"], rights["capabilities"]) == (
        True,
        False,
        {"drop": ["ALL"]},
    )
    assert pod()["automountServiceAccountToken"] is False
