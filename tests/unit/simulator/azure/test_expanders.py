"""The cluster autoscaler: which pool grows, and what it does once Azure has refused nodes of one."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.autoscaler.backoff import FIRST_S, MOST_S
from simulator.azure.autoscaler.profile import PACE
from simulator.world.faults import new_fault
from tests.support.arm import H100, pool_path
from tests.support.scaled_cluster import (
    T4,
    ScaledCluster,
    autoscaler_status,
    make_pool,
    make_spot_pool,
    pod,
    set_priorities,
)


def test_the_priority_expander_takes_the_highest_number_that_matches(scaled: ScaledCluster) -> None:
    make_pool(scaled, "ondemand", vmSize=T4)
    make_spot_pool(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10:\n  - .*ondemand.*\n50:\n  - .*spot.*\n")
    scaled.add(pod("one", gpu=1))
    scaled.look()
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (1, 0)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ({"spot": 0}, "Azure failed to provision a node for this node group"),
        ({"spot": 1}, "Azure failed to provision a node for this node group"),
        (None, "OperationNotAllowed: Operation could not be completed as it results in exceeding approved"),
    ],
    ids=["no Spot machine", "only one Spot machine", "no Spot quota"],
)
def test_the_pool_to_fall_back_to_is_taken_once_azure_refuses_spot(
    scaled: ScaledCluster, refusal: dict[str, Any] | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pool(scaled, "ondemand", vmSize=T4)
    make_spot_pool(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10: [ondemand]\n50: [spot]\n")
    if refusal:
        scaled.arm.server.world.faults.fault(new_fault("capacity", size=T4, **refusal))
    else:
        monkeypatch.setitem(scaled.arm.server.world.subscription.quota, "lowPriorityCores", 7)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.looks(0, 2, 2, 2)
    got = (refusal or {"spot": 0})["spot"]
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (got, 2 - got)
    assert said in scaled.told("FailedToScaleUpGroup")[0]
    assert scaled.arm.get(pool_path("spot"))["properties"]["count"] == got, "no more is asked for what there is not"
    groups = {each["name"].split("-")[1]: each["scaleUp"] for each in autoscaler_status(scaled)["nodeGroups"]}
    assert groups["spot"]["status"] == "Backoff"
    assert groups["spot"]["backoffInfo"]["errorMessage"].startswith(said)
    assert groups["ondemand"] == {"status": "NoActivity"}


def test_a_price_above_the_pools_maximum_is_a_refusal_too(scaled: ScaledCluster) -> None:
    make_pool(scaled, "ondemand", vmSize=T4)
    make_spot_pool(scaled, spotMaxPrice=0.2)
    scaled.profile(expander="priority")
    set_priorities(scaled, "10: [ondemand]\n50: [spot]\n")
    scaled.arm.server.world.faults.fault(new_fault("price", size=T4, usd=0.25))
    scaled.add(pod("one", gpu=1))
    scaled.looks(0, 2, 2)
    assert (len(scaled.nodes("spot")), len(scaled.nodes("ondemand"))) == (0, 1)
    assert "Azure failed to provision a node" in scaled.told("FailedToScaleUpGroup")[0]


def test_a_pool_that_was_refused_is_left_alone_twice_as_long_each_time(scaled: ScaledCluster) -> None:
    make_spot_pool(scaled)
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=T4, spot=0))
    scaled.add(pod("one", gpu=1))
    scaled.looks(0, 1)
    for lasts, refusals in ((FIRST_S, 1), (2 * FIRST_S, 2), (4 * FIRST_S, 3), (MOST_S, 4), (MOST_S, 5)):
        scaled.looks(lasts - 3)
        assert len(scaled.told("FailedToScaleUpGroup")) == refusals, "still left alone"
        scaled.looks(4, 1)
    assert scaled.told("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 in backoff after failed scale-up"]
    scaled.arm.server.world.faults.heal()
    scaled.looks(MOST_S + 1, 1)
    assert len(scaled.nodes("spot")) == 1


def test_machines_that_somebody_else_asked_for_in_vain_are_given_up_later(scaled: ScaledCluster) -> None:
    scaled.arm.server.world.faults.fault(new_fault("capacity", size=H100))
    make_pool(scaled, count=2)
    scaled.looks(0, 15 * 60 / PACE - 1)
    found = scaled.arm.get(pool_path())["properties"]
    assert (found["provisioningState"], found["count"]) == ("Failed", 2), "who asked sees that first"
    scaled.look(2)
    assert scaled.arm.get(pool_path())["properties"]["count"] == 0


@pytest.mark.parametrize(
    ("expander", "taken"), [("least-waste", "small"), ("most-pods", "large"), ("priority", None), ("random", "any")]
)
def test_other_expanders(scaled: ScaledCluster, expander: str, taken: str | None) -> None:
    make_pool(scaled, "large", maxCount=1)
    make_pool(scaled, "small", vmSize=T4, maxCount=1)
    scaled.profile(expander=expander)
    scaled.add(pod("one", gpu=1), pod("two", gpu=1))
    scaled.look()
    grown = [name for name in ("large", "small") if scaled.nodes(name)]
    assert grown == {"any": grown[:1], None: []}.get(taken, [taken]), "priority has no ConfigMap to go by"


@pytest.mark.parametrize(
    ("text", "reason", "grows"),
    [
        ("50: [other]\n", "PriorityConfigMapNoGroupMatched", True),
        ("50: [other]\n", "PriorityConfigMapNotMatchedGroup", True),
        ("high: [gpu]\n", "PriorityConfigMapInvalid", False),
        ("50: ['*gpu']\n", "PriorityConfigMapInvalid", False),
    ],
)
def test_priorities_that_say_nothing_of_a_pool_are_told(
    scaled: ScaledCluster, text: str, reason: str, grows: bool
) -> None:
    make_pool(scaled)
    scaled.profile(expander="priority")
    set_priorities(scaled, text)
    scaled.add(pod("one", gpu=8))
    scaled.look()
    assert len(scaled.told(reason)) == 1
    assert bool(scaled.nodes()) is grows
