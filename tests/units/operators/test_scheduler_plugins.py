"""The scheduler of scheduler-plugins: what it is told, and which of the two schedulers a stack has."""

from __future__ import annotations

from typing import Any

import pytest

import operators
from components import images
from config.facts.scheduling import COSCHEDULER, VOLCANO
from config.facts.versions import versions
from config.schema.operators import Installation
from operators import scheduler_plugins
from tests.support.settings import H100, load

KNOWN = operators.find()


def stack(**of_operators: Any) -> Any:
    """Settings of a stack with a workload that any scheduler places."""
    return load({"vmSku": H100, "workloads": "training", "operators": of_operators})


def schedulers(settings: Any) -> set[str]:
    """Operators with a scheduler that the stack gets."""
    brings = {name for name, each in KNOWN.items() if "scheduler" in each.provides(settings.operators.of(each))}
    return {name for name in brings if KNOWN[name].is_wanted(settings)}


def test_a_gang_has_five_minutes_and_whole_nodes_are_kept_whole() -> None:
    found = {each["name"]: each["args"] for each in scheduler_plugins.values()["pluginConfig"]}
    assert found["Coscheduling"] == {"permitWaitingTimeSeconds": 300}
    packing = found["NodeResourcesFit"]["scoringStrategy"]
    assert (packing["type"], packing["resources"]) == (
        "RequestedToCapacityRatio",
        [{"name": "nvidia.com/gpu", "weight": 1}],
    )
    scores = [point["score"] for point in packing["requestedToCapacityRatio"]["shape"]]
    assert scores == sorted(scores), "fuller nodes first"


def test_the_charts_other_plugins_are_off() -> None:
    assert scheduler_plugins.values()["plugins"] == {"enabled": ["Coscheduling"]}


def test_a_mirror_has_its_images_by_their_whole_references() -> None:
    tag = f"v{versions().charts[scheduler_plugins.NAME].version}"
    assert images.chart_values(scheduler_plugins.NAME, "mirror.example.com/team") == {
        "scheduler": {"image": f"mirror.example.com/team/scheduler-plugins/kube-scheduler:{tag}"},
        "controller": {"image": f"mirror.example.com/team/scheduler-plugins/controller:{tag}"},
    }


@pytest.mark.parametrize(
    ("chosen", "expected"), [({}, {"volcano"}), ({"scheduler": COSCHEDULER}, {"scheduler-plugins"})]
)
def test_a_stack_has_one_scheduler(chosen: dict[str, Any], expected: set[str]) -> None:
    assert schedulers(stack(**chosen)) == expected


def test_the_chosen_one_is_whose_turning_off_workloads_are_told_of() -> None:
    settings = stack(scheduler=COSCHEDULER)
    assert Installation(settings, KNOWN).brought("scheduler").name == COSCHEDULER
    assert Installation(stack(), KNOWN).brought("scheduler").name == VOLCANO
