"""The alert before a SAS ends: of each that the stack signs, and only where Prometheus reads it."""

from __future__ import annotations

from typing import Any

import pytest

from components.sas import ALERT, rule
from tests.support.mocks import program
from tests.support.settings import H100

MONITORED: dict[str, Any] = {"kubePrometheusStack": {"enabled": True}}
CONTAINERS: dict[str, Any] = {"data": {}, "results": {}}
RULE = ":PrometheusRule"
HOURS = 3600


def stack(**more: Any) -> Any:
    return program({"vmSku": H100, "nodeCount": 1, "workloads": "nccl-allreduce"} | more)


def test_it_is_told_a_third_of_its_time_before_its_end() -> None:
    made = rule("data", "1970-01-01T00:00:00Z", "1970-01-02T06:00:00Z", fix="pulumi up")
    assert made["expr"] == f"vector({30 * HOURS}) - time() < {10 * HOURS}"


def test_of_a_year_it_is_told_two_weeks_before() -> None:
    made = rule("data", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", fix="pulumi up")
    assert made["expr"].endswith(f"< {14 * 24 * HOURS}")


def test_each_container_has_its_own_with_the_command_that_mends_it() -> None:
    made = stack(operators=MONITORED, storage={"containers": CONTAINERS})
    (group,) = made.one(RULE, "sas-ends").inputs["spec"]["groups"]
    assert {each["labels"]["container"] for each in group["rules"]} == CONTAINERS.keys()
    assert {each["alert"] for each in group["rules"]} == {ALERT}
    assert all("--path storage.rotation 2" in each["annotations"]["description"] for each in group["rules"])


@pytest.mark.parametrize(
    "settings",
    [
        {"storage": {"containers": CONTAINERS}},
        {"operators": MONITORED, "storage": {"containers": CONTAINERS, "auth": "identity"}},
    ],
    ids=["nobody reads it", "nothing is signed"],
)
def test_without_need_there_is_none(settings: dict[str, Any]) -> None:
    assert not [each for each in stack(**settings).registered if each.name == "sas-ends"]
