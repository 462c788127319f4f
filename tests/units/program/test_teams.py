"""A stack with teams: what is made for each, and in which order."""

from __future__ import annotations

import pytest

from tests.support.golden import H100
from tests.support.mocks import Recorder, program

QUEUE = "kueue.x-k8s.io/v1beta2:ClusterQueue"
STACK = {
    "vmSku": H100,
    "nodeCount": 3,
    "cluster": {"localAccounts": True},
    "operators": {"kueue": {"enabled": True}},
    "teams": {"blue": {"gpus": 8, "users": ["alice"]}, "red": {"gpus": 8, "users": ["bob"]}},
    "slackGpus": 8,
}


@pytest.fixture(scope="module")
def stack() -> Recorder:
    return program(STACK)


def test_each_team_has_a_namespace_a_queue_for_its_quota_and_its_members(stack: Recorder) -> None:
    queues = ["blue-cluster-queue", "red-cluster-queue", "slack-cluster-queue"]
    assert stack.names(QUEUE) == queues
    for team, member in (("blue", "alice"), ("red", "bob")):
        labels = stack.one(":core/v1:Namespace", f"namespace-{team}").inputs["metadata"]["labels"]
        assert labels["mlbatch-team-namespace"] == "true"
        assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
        local = stack.one(":LocalQueue", f"{team}-default-queue").inputs
        assert local["metadata"] == {"name": "default-queue", "namespace": team}
        assert local["spec"] == {"clusterQueue": f"{team}-cluster-queue"}
        bound = stack.one(":RoleBinding", f"{team}-mlbatch-edit").inputs
        assert (bound["metadata"]["namespace"], [each["name"] for each in bound["subjects"]]) == (team, [member])


def test_queues_follow_kueue_and_namespaces_their_queue_so_that_jobs_go_before_it(stack: Recorder) -> None:
    def follows(resource: str, name: str) -> str:
        return " ".join(stack.one(resource, name).dependencies)

    assert "Release kueue" in follows(":ResourceFlavor", "default-flavor")
    assert "default-flavor" in follows(QUEUE, "blue-cluster-queue")
    assert "blue-cluster-queue" in follows(":core/v1:Namespace", "namespace-blue")
    assert "namespace-blue" in follows(":LocalQueue", "blue-default-queue")


def test_another_node_changes_no_quota(stack: Recorder) -> None:
    larger = program({**STACK, "nodeCount": 4})
    for name in stack.names(QUEUE):
        assert stack.one(QUEUE, name).inputs == larger.one(QUEUE, name).inputs


def test_a_stack_without_teams_has_kueue_alone() -> None:
    found = program({key: value for key, value in STACK.items() if key not in ("teams", "slackGpus")})
    assert found.one(":Release", "kueue").inputs["namespace"] == "mlbatch-system"
    assert found.names(QUEUE) == []
