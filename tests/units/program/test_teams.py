"""A stack with teams: what is made for each, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from config.rules.teams import quota_table
from tests.support.golden import H100
from tests.support.mocks import Recorder, program
from tests.support.settings import load

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


def test_an_update_of_the_slack_queue_goes_over_the_limit_that_node_health_has_set(stack: Recorder) -> None:
    slack, blue = (stack.one(QUEUE, f"{name}-cluster-queue").inputs for name in ("slack", "blue"))
    assert slack["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"}
    assert "annotations" not in blue["metadata"]
    assert "lendingLimit" not in str(slack["spec"])


def test_node_health_may_change_the_slack_queue_where_there_is_one(stack: Recorder) -> None:
    def variables(found: Recorder) -> dict[str, str]:
        spec = found.one(":CronJob", "node-health").inputs["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return {each["name"]: each["value"] for each in spec["containers"][0]["env"]}

    def groups(found: Recorder) -> set[str]:
        rules = found.one(":ClusterRole", "node-health-role").inputs["rules"]
        return {group for rule in rules for group in rule["apiGroups"]}

    assert variables(stack)["SLACK_QUEUE"] == "slack-cluster-queue"
    assert (variables(stack)["POOLS"], variables(stack)["WARM_UP_MINUTES"]) == ("gpu=3x8", "30")
    assert groups(stack) == {"", "kueue.x-k8s.io"}
    without = program({**STACK, "slackGpus": 0})
    assert not {"SLACK_QUEUE", "POOLS", "WARM_UP_MINUTES"} & variables(without).keys()
    assert groups(without) == {""}


def test_queues_follow_kueue_and_namespaces_their_queue_so_that_jobs_go_before_it(stack: Recorder) -> None:
    def follows(resource: str, name: str) -> str:
        return " ".join(stack.one(resource, name).dependencies)

    assert "Release kueue" in follows(":ResourceFlavor", "default-flavor")
    assert "default-flavor" in follows(QUEUE, "blue-cluster-queue")
    assert "blue-cluster-queue" in follows(":core/v1:Namespace", "namespace-blue")
    assert "namespace-blue" in follows(":LocalQueue", "blue-default-queue")


def test_priorities_are_of_teams_alone_and_no_pod_has_one_that_names_none(stack: Recorder) -> None:
    found = {name: stack.one(":PriorityClass", name).inputs for name in stack.names(":PriorityClass")}
    values = {name: made["value"] for name, made in found.items()}
    assert values == {"low-priority": 1, "default-priority": 5, "high-priority": 10}
    assert {made["globalDefault"] for made in found.values()} == {False}
    assert {made["preemptionPolicy"] for made in found.values()} == {"Never"}


def test_members_get_their_rights_once_what_keeps_them_within_the_queue_is_in_force(stack: Recorder) -> None:
    for policy in ("team-queues", "team-pods"):
        bound = stack.one(":ValidatingAdmissionPolicyBinding", f"{policy}-binding")
        assert bound.inputs["spec"]["matchResources"]["namespaceSelector"] == {
            "matchLabels": {"mlbatch-team-namespace": "true"}
        }
        assert f"{policy}-policy" in " ".join(bound.dependencies)
        assert f"{policy}-binding" in " ".join(stack.one(":RoleBinding", "blue-mlbatch-edit").dependencies)


@pytest.mark.parametrize(
    ("operators", "named"),
    [
        ({}, "volcano"),
        ({"scheduler": "scheduler-plugins-scheduler"}, "scheduler-plugins-scheduler"),
        ({"volcano": {"enabled": False}}, None),
    ],
)
def test_gpu_pods_of_teams_name_the_scheduler_that_the_stack_installs(
    operators: dict[str, Any], named: str | None
) -> None:
    found = program({**STACK, "operators": {"kueue": {"enabled": True}, **operators}})
    spec = found.one(":ValidatingAdmissionPolicy", "team-pods-policy").inputs["spec"]
    said = [each["message"] for each in spec["validations"] if "schedulerName" in each["message"]]
    assert [f"schedulerName: {named}" in each for each in said] == ([True] if named else [])


def test_another_node_changes_no_quota(stack: Recorder) -> None:
    larger = program({**STACK, "nodeCount": 4})
    for name in stack.names(QUEUE):
        assert stack.one(QUEUE, name).inputs == larger.one(QUEUE, name).inputs


def test_previews_tell_whose_the_gpus_are_and_what_is_left() -> None:
    teams = {"blue": {"gpus": 8, "lendingLimit": 4}, "red": {"gpus": 4, "borrowingLimit": 0}}
    found = quota_table(load({**STACK, "teams": teams}))
    assert [" ".join(line.split()) for line in found.splitlines()] == [
        "quotas, of 24 GPUs that the cluster can have:",
        "8 team blue, lends at most 4",
        "4 team red, borrows at most 0",
        "8 slack, which teams borrow",
        "4 in no queue: quota for more teams, or slackGpus",
    ]
    assert quota_table(load({"vmSku": H100})) == ""


def test_a_stack_without_teams_has_kueue_alone() -> None:
    found = program({key: value for key, value in STACK.items() if key not in ("teams", "slackGpus")})
    assert found.one(":Release", "kueue").inputs["namespace"] == "mlbatch-system"
    assert found.names(QUEUE) == []
