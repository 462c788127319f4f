"""What stacks with one workload are told, by the settings' loader."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.problems.errors import Problem, SettingsError
from config.schema.pools import PoolSettings, agent_pool_name
from tests.support.case_files import read
from tests.support.pools import H100
from tests.support.settings import load

CASES: dict[str, list[dict[str, Any]]] = read(__file__, "refusals")
PREFIX = f"aks-{agent_pool_name('gpu', PoolSettings(vm_sku=H100))}-"


def found(workload: str, case: dict[str, Any]) -> list[Problem]:
    options = dict(case.get("options", {}))
    if "nodeNames" in options:
        options["nodeNames"] = [name.replace("PREFIX", PREFIX) for name in options["nodeNames"]]
    stack = {"workloads": workload, "workloadOptions": {workload: options}, **case.get("stack", {})}
    secret = ("workloadOptions",) if "password" in options else ()
    try:
        load(stack if "pools" in stack else {"vmSku": H100, **stack}, known=workloads.find(), secret=secret)
    except SettingsError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("workload", "case"),
    [(workload, case) for workload, cases in CASES.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else value.get("what", "good")[:60],
)
def test_what_stacks_are_told(workload: str, case: dict[str, Any]) -> None:
    problems = found(workload, case)
    if "what" not in case:
        assert not problems
        return
    problem = next(each for each in problems if case["what"] in str(each))
    assert case["fix"] in problem.fix
    assert case.get("allowed", "") in problem.allowed
