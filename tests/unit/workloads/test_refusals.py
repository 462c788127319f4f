"""Stacks that could not run a workload of a team, and what they are told, by the settings' loader."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import Problem, SettingsError
from config.schema.pools import PoolSettings, agent_pool_name
from tests.support.case_files import read
from tests.support.settings import load, platform, problems
from tests.support.sizes import H100

CASES: dict[str, Any] = dict(read(__file__, "team_refusals"))
PLATFORM: dict[str, Any] = CASES.pop("platform")
EACH = CASES.pop("each workload")
GOOD: dict[str, Any] = {"pytorch-pretraining": {"modelSize": "1.3b", "steps": 20}}


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


ALONE: dict[str, list[dict[str, Any]]] = read(__file__, "refusals")
PREFIX = f"aks-{agent_pool_name('gpu', PoolSettings(vm_sku=H100))}-"


def found(workload: str, case: dict[str, Any]) -> list[Problem]:
    options = dict(case.get("options", {}))
    if "nodeNames" in options:
        options["nodeNames"] = [name.replace("PREFIX", PREFIX) for name in options["nodeNames"]]
    stack = {"workloads": workload, "workloadOptions": {workload: options}, **case.get("stack", {})}
    secret = ("workloadOptions",) if "password" in options else ()
    whole = stack if "pools" in stack else {"vmSku": H100, **stack}
    return problems(whole, known=workloads.find(), secret=secret)


@pytest.mark.parametrize(
    ("workload", "case"),
    [(workload, case) for workload, cases in ALONE.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else value.get("what", "good")[:60],
)
def test_what_stacks_of_one_workload_are_told(workload: str, case: dict[str, Any]) -> None:
    all_found = found(workload, case)
    if "what" not in case:
        assert not all_found
        return
    problem = next(each for each in all_found if case["what"] in str(each))
    assert case["fix"] in problem.fix
    assert case.get("allowed", "") in problem.allowed
