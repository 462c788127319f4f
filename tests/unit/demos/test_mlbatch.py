"""The demonstration tells what came out otherwise, and leaves nothing of its own behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config.data.scheduling import GPU_LABEL
from demos.mlbatch import picture, steps
from demos.mlbatch.cluster import Cluster, Denied, Failed
from demos.mlbatch.steps import Demonstration
from k8s.objects import Object
from operators.monitoring.files import dashboards


def node(count: int) -> Object:
    labels = {GPU_LABEL: "true"} if count else {}
    return {"metadata": {"labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": str(count)} if count else {}}}


class FakeCluster(Cluster):
    """Starts every job's pod, whatever there is room for, and refuses what `refuses` names."""

    def __init__(self, *gpus: int, refuses: str = "") -> None:
        self._nodes, self._refuses = [node(count) for count in gpus], refuses
        self.jobs: dict[str, str] = {}

    def kubectl(self, *arguments: str, user: str = "") -> str:
        if self._refuses and self._refuses in arguments:
            raise Denied('jobs.batch is forbidden: User "alice"')
        if arguments[0] == "delete":
            self.jobs.pop(arguments[1], None)
        return ""

    def create(self, file: str, team: str, user: str) -> str:
        name = f"job/{file}-{len(self.jobs)}"
        self.jobs[name] = team
        return name

    def pods(self, team: str, job: str = "") -> list[Object]:
        limits = {"limits": {"nvidia.com/gpu": 8}}
        pod = {"spec": {"containers": [{"resources": limits}]}, "status": {"phase": "Running"}}
        return [pod for name, of in self.jobs.items() if of == team and job in ("", name)]

    def nodes(self) -> list[Object]:
        return self._nodes


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("gpus", "seen"), [((8, 8), "8, 8"), ((0, 0), "none"), ((8, 4), "4, 8"), ((8, 8, 8, 8), "8, 8, 8, 8")]
)
def test_it_needs_three_nodes_of_eight_gpus(gpus: tuple[int, ...], seen: str, told: list[str]) -> None:
    with pytest.raises(Failed) as failed:
        Demonstration(FakeCluster(*gpus), told.append).run()
    assert str(failed.value).splitlines()[0] == f"the nodes offer {seen} GPUs, not 8 on each of three"
    assert "make up STACK=mlbatch" in str(failed.value)
    assert told == []


def test_it_leaves_alone_what_others_run(told: list[str]) -> None:
    cluster = FakeCluster(8, 8, 8)
    cluster.create("of-others", "blue", "")
    with pytest.raises(Failed, match="team blue has pods already"):
        Demonstration(cluster, told.append).run()
    assert cluster.jobs != {}


def test_what_begins_and_must_not_ends_it_and_all_that_it_submitted_goes(told: list[str]) -> None:
    cluster = FakeCluster(8, 8, 8, 0)
    with pytest.raises(Failed, match=r"^job/train.yaml-3 of blue must wait, but has 1 pods$"):
        Demonstration(cluster, told.append).run()
    assert told[0].startswith("\n1. Alice's team has 8 GPUs")
    assert cluster.jobs == {}


@pytest.mark.parametrize(("refuses", "first"), [("", "reads red's secrets"), ("get", "ends red's jobs")])
def test_what_nobody_keeps_alice_from_ends_it(refuses: str, first: str, told: list[str]) -> None:
    with pytest.raises(Failed, match=f"alice {first}: nothing kept her from it"):
        steps.denied(Demonstration(FakeCluster(8, 8, 8, refuses=refuses), told.append))


def test_what_does_not_come_in_time_is_told() -> None:
    def never() -> Any:
        return None

    with pytest.raises(Failed, match=r"^pods of red are gone: not within 0 s$"):
        Cluster().waits(never, "pods of red are gone", 0)


class Prometheus(Cluster):
    """Answers what it has."""

    def __init__(self, **held: list[tuple[int, str]]) -> None:
        self._held = held

    def kubectl(self, *arguments: str, user: str = "") -> str:
        assert arguments[:2] == ("get", "--raw")
        found = [{"metric": {"exported_namespace": team}, "values": values} for team, values in self._held.items()]
        return json.dumps({"data": {"result": found}})


def test_what_each_team_held_is_told_step_by_step_and_nothing_is_none() -> None:
    cluster = Prometheus(blue=[(100, "24"), (105, "16")], other=[(100, "8")])
    assert picture.held(cluster, ("blue", "red"), 100, 110) == {"blue": [24, 16, 0], "red": [0, 0, 0]}


def test_without_prometheus_or_what_it_has_seen_there_is_no_picture() -> None:
    with pytest.raises(Failed, match="has seen no GPU of blue, red held"):
        picture.held(Prometheus(), ("blue", "red"), 100, 110)
    with pytest.raises(Failed, match=r"operators\.kubePrometheusStack\.enabled true"):
        picture.held(FakeCluster(refuses="--raw"), ("blue",), 100, 110)


def test_the_picture_is_of_what_the_dashboard_shows() -> None:
    assert picture.QUERY in {panel.query for panel in dashboards()["gpu-use"].panels}


def test_it_waits_for_the_slack_queue_and_for_drivers(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEPS", ())
    cluster, limits = FakeCluster(8, 8, 4), ["0", "0", "8"]
    monkeypatch.setattr(cluster, "kubectl", lambda *_, **__: limits.pop(0))
    monkeypatch.setattr("time.sleep", lambda _: cluster.nodes().__setitem__(2, node(8)))
    Demonstration(cluster, told.append).run()
    assert told == [
        "the nodes' drivers are being installed",
        "a node was bad: the slack queue lends all its GPUs again after the next round of node-health",
    ]
    assert limits == []
