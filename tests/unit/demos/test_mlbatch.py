from __future__ import annotations

import json

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
    """A cluster that starts every job's pod. Denies commands with the word `denies`."""

    def __init__(self, *gpus: int, denies: str = "") -> None:
        self._nodes, self._denies = [node(count) for count in gpus], denies
        self.jobs: dict[str, str] = {}

    def kubectl(self, *arguments: str, user: str = "") -> str:
        if self._denies and self._denies in arguments:
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
        return [pod for name, owner in self.jobs.items() if owner == team and job in ("", name)]

    def nodes(self) -> list[Object]:
        return self._nodes


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("gpus", "seen"), [((8, 8), "8, 8"), ((0, 0), "none"), ((8, 4), "4, 8"), ((8, 8, 8, 8), "8, 8, 8, 8")]
)
def test_requires_three_nodes_with_eight_gpus(gpus: tuple[int, ...], seen: str, lines: list[str]) -> None:
    with pytest.raises(Failed) as failed:
        Demonstration(FakeCluster(*gpus), lines.append).run()
    what, fix = str(failed.value).splitlines()
    assert what == f"the nodes offer {seen} GPUs, but the demonstration needs three nodes with 8"
    assert "make up STACK=mlbatch" in fix
    assert lines == []


def test_refuses_to_run_beside_other_pods_and_keeps_them(lines: list[str]) -> None:
    cluster = FakeCluster(8, 8, 8)
    cluster.create("other", "blue", "")
    with pytest.raises(Failed, match="team blue already has pods"):
        Demonstration(cluster, lines.append).run()
    assert cluster.jobs != {}


def test_removes_its_jobs_when_a_step_fails(lines: list[str]) -> None:
    cluster = FakeCluster(8, 8, 8, 0)
    with pytest.raises(Failed, match=r"^job/train.yaml-3 of blue must wait, but has 1 pods$"):
        Demonstration(cluster, lines.append).run()
    assert lines[0].startswith("\n1. Alice's team blue has 8 GPUs")
    assert cluster.jobs == {}


@pytest.mark.parametrize(("denies", "first"), [("", "reads red's secrets"), ("get", "deletes red's jobs")])
def test_fails_when_alice_is_allowed_too_much(denies: str, first: str, lines: list[str]) -> None:
    with pytest.raises(Failed, match=f"alice {first}: the API server allowed it"):
        steps.denied(Demonstration(FakeCluster(8, 8, 8, denies=denies), lines.append))


def test_reports_a_timeout() -> None:
    with pytest.raises(Failed, match=r"^timeout after 0 s: pods of red are gone$"):
        Cluster().wait(lambda: False, "pods of red are gone", 0)


class Prometheus(Cluster):
    def __init__(self, **values: list[tuple[int, str]]) -> None:
        self._values = values

    def kubectl(self, *arguments: str, user: str = "") -> str:
        assert arguments[:2] == ("get", "--raw")
        found = [{"metric": {"exported_namespace": team}, "values": values} for team, values in self._values.items()]
        return json.dumps({"data": {"result": found}})


def test_missing_values_of_a_team_count_as_no_gpus() -> None:
    cluster = Prometheus(blue=[(100, "24"), (105, "16")], other=[(100, "8")])
    assert picture.gpus_by_team(cluster, ("blue", "red"), 100, 110) == {"blue": [24, 16, 0], "red": [0, 0, 0]}


def test_draws_no_picture_without_prometheus_or_its_data() -> None:
    with pytest.raises(Failed, match="has no data about the GPUs of blue, red"):
        picture.gpus_by_team(Prometheus(), ("blue", "red"), 100, 110)
    with pytest.raises(Failed, match=r"operators\.kubePrometheusStack\.enabled true"):
        picture.gpus_by_team(FakeCluster(denies="--raw"), ("blue",), 100, 110)


def test_the_picture_has_the_query_of_the_dashboard() -> None:
    assert picture.QUERY in {panel.query for panel in dashboards()["gpu-use"].panels}


def test_waits_for_the_slack_queue_and_for_drivers(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEPS", ())
    cluster, limits = FakeCluster(8, 8, 4), ["0", "0", "8"]
    monkeypatch.setattr(cluster, "kubectl", lambda *_, **__: limits.pop(0))
    monkeypatch.setattr("time.sleep", lambda _: cluster.nodes().__setitem__(2, node(8)))
    Demonstration(cluster, lines.append).run()
    assert lines == [
        "waiting for the nodes' drivers",
        "a node was bad: waiting for the next round of node-health, which resets the slack queue",
    ]
    assert limits == []
