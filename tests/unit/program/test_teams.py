"""A stack with teams: what a setting changes. The golden file `teams` has what each team gets."""

from __future__ import annotations

import json

from config.rules.teams import quota_table
from tests.support.golden import H100
from tests.support.mocks import program
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


def test_without_a_scheduler_pods_of_teams_may_name_any() -> None:
    found = program({**STACK, "operators": {"kueue": {"enabled": True}, "volcano": {"enabled": False}}})
    assert "schedulerName" not in json.dumps(found.one(":ValidatingAdmissionPolicy", "team-pods-policy").inputs)


def test_another_node_changes_no_quota() -> None:
    three, four = (
        {
            each.name: each.inputs
            for each in program({**STACK, "nodeCount": count}).registered
            if each.type.endswith(QUEUE)
        }
        for count in (3, 4)
    )
    assert three
    assert three == four


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
