from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import pulumi
import pytest
import yaml

from components.azure.cluster import Cluster
from components.azure.node_pools import NodePools, priorities
from config.schema.cluster import ClusterSettings
from config.schema.pools import PoolSettings, agent_pool_name, node_labels, node_taints
from simulator.azure.schema import lookup, schemas
from simulator.azure.types.agent_pool import rules as pools
from tests.support.mocks import Registered, deploy
from tests.support.settings import settings_with
from tests.support.sizes import H100, T4


def pool(**settings: Any) -> PoolSettings:
    return PoolSettings.model_validate({"vmSku": H100, **settings})


def declared(version: str = "1.35", there: Collection[str] = (), **settings: Any) -> Registered:
    def declare() -> None:
        platform = ClusterSettings(kubernetes_version=version)
        stack = settings_with(
            cluster=platform,
            pools={"gpu": pool(**settings)},
        )
        NodePools("pools", Cluster("cluster", stack, pulumi.Output.from_input("group")), stack, there=there)

    return deploy(declare).one(":AgentPool")


def test_another_max_pods_replaces_the_pool() -> None:
    default, few = declared(), declared(maxPods=100)
    assert "maxPods" not in default.inputs
    assert few.inputs["maxPods"] == 100
    assert few.inputs["agentPoolName"] != default.inputs["agentPoolName"]
    assert declared(maxPods=250).inputs["agentPoolName"] == default.inputs["agentPoolName"]


def test_changes_that_arm_forbids_replace_the_pool() -> None:
    """The provider itself replaces a pool for another VM size."""
    spot = declared(spot=True, maxPods=100)
    fixed = [path.removeprefix("properties.") for path in schemas()[pools.TYPE.lower()].immutable]
    given = {path for path in fixed if lookup(spot.inputs, path) is not None}
    assert {"vmSize", "osDiskType", "gpuProfile.driver"} < given
    assert set(spot.request.replaceOnChanges) == given - {"vmSize"}


def test_the_creation_of_a_pool_may_take_an_hour() -> None:
    assert declared().request.customTimeouts.create == "60m"


@pytest.mark.parametrize(("replace", "delete_first"), [("create-first", False), ("delete-first", True)])
def test_the_setting_replace_orders_creation_and_deletion(replace: str, delete_first: bool) -> None:
    assert declared(replace=replace).request.deleteBeforeReplace is delete_first


def test_a_replacement_has_another_name() -> None:
    first, second = declared().inputs["agentPoolName"], declared(osDiskGb=256).inputs["agentPoolName"]
    assert first != second
    for name in (first, second):
        assert name.isalnum()
        assert name.islower()
        assert len(name) <= 12
    assert declared(count=7, labels={"team": "a"}).inputs["agentPoolName"] == first


def test_ignores_the_count_of_an_existing_autoscaled_pool() -> None:
    """A new pool starts with the minimum, even as a replacement."""
    bounds: dict[str, Any] = {"autoscale": {"min": 1, "max": 4}}
    name = declared(**bounds).inputs["agentPoolName"]
    for settings, there, count, ignored in (
        (bounds, (), 1, []),
        (bounds, ("other",), 1, []),
        (bounds, (name,), 1, ["count"]),
        ({"count": 3}, (name,), 3, []),
    ):
        made = declared(there=there, **settings)
        assert (made.inputs["count"], list(made.request.ignoreChanges)) == (count, ignored)


def test_sorts_labels_and_taints_and_keeps_the_programs() -> None:
    chosen = pool(labels={"z": "1", "a": "2"}, taints=["b=c:NoSchedule", "a=b:NoExecute"])
    assert list(node_labels("gpu", chosen)) == ["a", "ai-on-aks/gpu", "ai-on-aks/pool", "local-nvme-scratch", "z"]
    assert node_taints(chosen) == ("a=b:NoExecute", "b=c:NoSchedule")


def test_another_spot_price_replaces_the_pool() -> None:
    usual, chosen = declared(spot=True).inputs, declared(spot=True, spotMaxPrice=0.98765).inputs
    assert chosen["spotMaxPrice"] == 0.98765
    assert chosen["agentPoolName"] != usual["agentPoolName"]


def test_node_labels_select_the_sharing_of_gpus() -> None:
    assert declared(vmSku=T4, gpuSlices=2).inputs["nodeLabels"]["nvidia.com/device-plugin.config"] == "tesla-t4-ts2"
    partitioned = declared(migProfile="all-1g.10gb").inputs
    assert partitioned["nodeLabels"]["nvidia.com/mig.config"] == "all-1g.10gb"
    assert partitioned["agentPoolName"] == declared().inputs["agentPoolName"], "labels change in place"
    assert not {"nvidia.com/device-plugin.config", "nvidia.com/mig.config"} & declared().inputs["nodeLabels"].keys()


def test_priorities_match_the_scale_set_of_each_autoscaled_pool() -> None:
    scaled: dict[str, Any] = {"vmSku": T4, "count": 1}
    pools = {
        "spot": pool(**scaled, spot=True, autoscale={"min": 1, "max": 5, "priority": 20}),
        "demand": pool(**scaled, autoscale={"min": 0, "max": 5, "priority": 10}),
        "unset": pool(**scaled, autoscale={"min": 0, "max": 5}),
        "fixed": pool(**scaled),
    }
    found = yaml.safe_load(priorities(pools))
    nodes = {key: f"aks-{agent_pool_name(key, each)}-12345678-vmss" for key, each in pools.items()}
    matched = {rank: [key for key in nodes if re.search(pattern, nodes[key])] for rank, (pattern,) in found.items()}
    assert matched == {0: ["unset"], 10: ["demand"], 20: ["spot"]}
