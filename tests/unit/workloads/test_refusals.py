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


def error_of(workload: str, case: dict[str, Any], stack: str = "mine") -> str:
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
        return str(error).replace("' ", " ")  # the quotes around paths
    return ""


@pytest.mark.parametrize(
    ("workload", "case"),
    [(workload, case) for workload, own in CASES.items() for case in (*EACH, *own)],
    ids=lambda value: None if isinstance(value, str) else value.get("what", "good")[:60],
)
def test_errors_of_stacks(workload: str, case: dict[str, Any]) -> None:
    found = error_of(workload, case)
    if "what" not in case:
        assert found == ""
        return
    what, fix = (case[key].replace("WORKLOAD", workload) for key in ("what", "fix"))
    assert what in found
    assert any(fix in line for line in found.splitlines() if line.strip().startswith("fix:")), found
    assert "hf_" not in found


@pytest.mark.parametrize("workload", CASES)
def test_requires_a_platform_stack(workload: str) -> None:
    with pytest.raises(SettingsError, match=f"platformStack is not set, but workload {workload} runs as"):
        load(
            {**PLATFORM, "workloads": workload, "workloadOptions": {workload: {"team": "blue"}}}, known=workloads.find()
        )


@pytest.mark.parametrize(
    ("workload", "stack"),
    [("pytorch-pretraining", "a" * 40), ("pytorch-pretraining", "1st"), ("ray-finetuning", "a" * 33)],
)
def test_rejects_stack_names_that_are_invalid_for_pods(workload: str, stack: str) -> None:
    """KubeRay rejects names of more than 47 characters."""
    assert "pulumi stack rename" in error_of(workload, {}, stack)


ALONE: dict[str, list[dict[str, Any]]] = read(__file__, "refusals")
PREFIX = f"aks-{agent_pool_name('gpu', PoolSettings(vm_sku=H100))}-"


def found(workload: str, case: dict[str, Any]) -> list[Problem]:
    options = dict(case.get("options", {}))
    if "nodeNames" in options:
        options["nodeNames"] = [name.replace("PREFIX", PREFIX) for name in options["nodeNames"]]
    stack = {"workloads": workload, "workloadOptions": {workload: options}, **case.get("stack", {})}
    secret = ("workloadOptions",) if "password" in options else ()
    stack = stack if "pools" in stack else {"vmSku": H100, **stack}
    return problems(stack, known=workloads.find(), secret=secret)


@pytest.mark.parametrize(
    ("workload", "case"),
    [(workload, case) for workload, cases in ALONE.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else value.get("what", "good")[:60],
)
def test_errors_of_stacks_with_one_workload(workload: str, case: dict[str, Any]) -> None:
    all_found = found(workload, case)
    if "what" not in case:
        assert not all_found
        return
    problem = next(each for each in all_found if case["what"] in str(each))
    assert case["fix"] in problem.fix
    assert case.get("allowed", "") in problem.allowed
