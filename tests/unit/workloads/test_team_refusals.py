"""Stacks that could not run a workload of a team, and what they are told, by the settings' loader."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.case_files import read
from tests.support.pools import H100
from tests.support.settings import load, platform

CASES: dict[str, list[dict[str, Any]]] = read(__file__, "team_refusals")
EACH = CASES.pop("each workload")
GOOD: dict[str, Any] = {"pytorch-pretraining": {"modelSize": "1.3b", "steps": 20}}
PLATFORM: dict[str, Any] = {
    "vmSku": H100,
    "nodeCount": 3,
    "operators": {
        "scheduler": "scheduler-plugins-scheduler",
        **{name: {"enabled": True} for name in ("kueue", "appwrapper", "trainingOperator", "kuberay")},
    },
    "teams": {
        "blue": {"gpus": 8, "users": ["alice", "carol"]},
        "red": {"gpus": 8, "users": ["bob"]},
        "green": {"gpus": 0, "groups": ["0a0b0c0d-0000-0000-0000-000000000000"]},
    },
    "slackGpus": 8,
    "storage": {"sharedClass": "azurefile-csi", "containers": {"tokens": {}, "out": {"permissions": "racwdlmp"}}},
}


def told(workload: str, case: dict[str, Any], stack: str = "mine") -> str:
    """What is said of the stack; empty where it is good."""
    changed = {**PLATFORM, **case.get("platform", {})}
    changed["operators"] = PLATFORM["operators"] | case.get("platform", {}).get("operators", {})
    known = workloads.find()
    other = platform({key: value for key, value in changed.items() if value is not None}, known)
    options = {"team": "blue", **GOOD.get(workload, {}), **case.get("options", {})}
    keys = {"platformStack": "teams", "workloads": workload, "workloadOptions": {workload: options}}
    secret = ("workloadOptions",) if case.get("secret") else ()
    try:
        load(keys, name=stack, others={"teams": other}, known=known, secret=secret)
    except SettingsError as error:
        return str(error).replace("' ", " ")  # of paths that a shell needs them around
    return ""


@pytest.mark.parametrize(
    ("workload", "case"),
    [(workload, case) for workload, own in CASES.items() for case in (*EACH, *own)],
    ids=lambda value: None if isinstance(value, str) else value.get("what", "good")[:60],
)
def test_what_stacks_are_told(workload: str, case: dict[str, Any]) -> None:
    found = told(workload, case)
    if "what" not in case:
        assert found == ""
        return
    what, fix = (case[key].replace("WORKLOAD", workload) for key in ("what", "fix"))
    assert what in found
    assert any(fix in line for line in found.splitlines() if line.strip().startswith("fix:")), found
    assert "hf_" not in found


@pytest.mark.parametrize("workload", CASES)
def test_a_platform_of_ones_own_is_not_where_it_runs(workload: str) -> None:
    with pytest.raises(SettingsError, match=f"platformStack is not set, and workload {workload} is made as"):
        load(
            {**PLATFORM, "workloads": workload, "workloadOptions": {workload: {"team": "blue"}}}, known=workloads.find()
        )


@pytest.mark.parametrize(
    ("workload", "stack"),
    [("pytorch-pretraining", "a" * 40), ("pytorch-pretraining", "1st"), ("ray-finetuning", "a" * 33)],
)
def test_a_stacks_name_begins_those_of_pods_and_of_a_rayjob(workload: str, stack: str) -> None:
    """KubeRay refuses a name of more than 47 characters."""
    assert "pulumi stack rename" in told(workload, {}, stack)
