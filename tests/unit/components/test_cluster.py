from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pulumi
import pytest

from components.azure.cluster import Cluster, chosen_ranges
from config.schema.cluster import ClusterSettings
from config.schema.network import POD_RANGE
from config.schema.pools import MAX_NODES
from tests.support import mocked_azure
from tests.support.case_files import case_table
from tests.support.mocks import Registered, deploy
from tests.support.settings import settings_with

AKS_NETWORKS = ("10.224.0.0/12", "10.0.0.0/16")


NODE_OS_WINDOW = "aksManagedNodeOSUpgradeSchedule"
"""AKS's required name for this window (its page on planned maintenance)."""


def declared(
    version: str = "1.35", has: str | None = None, pools: dict[str, Any] | None = None, **cluster: Any
) -> Registered:
    chosen = ClusterSettings.model_validate({"kubernetesVersion": version, **cluster})
    settings = settings_with(cluster=chosen, pools=pools or {})

    def declare() -> None:
        Cluster("cluster", settings, pulumi.Output.from_input("group"), node_os_channel=has)

    return deploy(declare).one(":ManagedCluster")


def test_the_pod_range_fits_the_largest_pool_and_overlaps_no_default() -> None:
    network = ip_network(declared().inputs["networkProfile"]["podCidr"])
    assert network == ip_network(POD_RANGE)
    assert network.num_addresses // 256 > MAX_NODES
    assert not any(network.overlaps(ip_network(other)) for other in AKS_NETWORKS)


def test_a_changed_pod_range_does_not_replace_the_cluster() -> None:
    assert list(declared().request.ignoreChanges) == ["networkProfile.podCidr"]


@pytest.mark.parametrize(("tier", "plan"), [("Standard", None), ("Premium", "AKSLongTermSupport")])
def test_the_premium_tier_enables_long_term_support(tier: str, plan: str | None) -> None:
    """AKS's page on pricing tiers: "Enable or disable LTS and the Premium tier together"."""
    assert declared(tier=tier).inputs.get("supportPlan") == plan


@case_table(__file__, "channels")
def test_keeps_the_os_channel_if_the_default_would_recreate_nodes(
    given: dict[str, Any], has: str | None, sent: str, message: str, warnings: list[str]
) -> None:
    inputs = declared(has=has, **given).inputs
    assert inputs["autoUpgradeProfile"] == {"upgradeChannel": "none", "nodeOSUpgradeChannel": sent}
    assert [message in text for text in warnings] == ([True] if message else [])


def test_sends_all_autoscaler_settings_if_any_pool_autoscales() -> None:
    fixed: dict[str, Any] = {"vmSku": "Standard_NC4as_T4_v3", "count": 1}
    scaled = {**fixed, "autoscale": {"min": 1, "max": 5}}

    def profile(pools: dict[str, Any], **autoscaler: Any) -> Any:
        return declared(pools=pools, autoscaler=autoscaler).inputs.get("autoScalerProfile")

    usual = profile({"a": fixed, "b": scaled})
    assert (len(usual), usual["okTotalUnreadyCount"]) == (8, "6")
    other = {"expander": "priority", "scaleDownUnneededTime": "3m", "okTotalUnreadyCount": "5"}
    assert profile({"b": scaled}, expander="priority", unneededMinutes=3) == {**usual, **other}
    strict = {"unreadyNodes": 1, "unreadyPercent": 20, "unreadyMinutes": 20, "provisionMinutes": 15}
    assert profile({"b": {**scaled, "autoscale": {"min": 0, "max": 1}}}, **strict) == {
        **usual,
        "maxNodeProvisionTime": "15m",
        "scaleDownUnreadyTime": "20m",
        "okTotalUnreadyCount": "1",
        "maxTotalUnreadyPercentage": "20",
    }
    assert profile({"a": fixed}) is None


def test_creates_the_maintenance_window_of_node_images() -> None:
    window = {"day": "Saturday", "startTime": "22:30", "hours": 6, "utcOffset": "-07:00"}
    stack = settings_with(
        cluster=ClusterSettings.model_validate({"nodeOsChannel": "NodeImage", "maintenanceWindow": window})
    )
    made = deploy(lambda: Cluster("cluster", stack, pulumi.Output.from_input("group"))).one(":MaintenanceConfiguration")
    assert (made.inputs["configName"], made.inputs["resourceName"]) == (NODE_OS_WINDOW, "ai-on-aks-test")
    assert made.inputs["maintenanceWindow"] == {
        "schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}},
        "startTime": "22:30",
        "durationHours": 6,
        "utcOffset": "-07:00",
    }


@pytest.mark.parametrize(
    ("wanted", "runs", "warned"),
    [("1.35", "1.35.4", False), ("1.35.4", "1.35.4", False), ("1.36", "1.35.4", True), ("1.35.4", "1.35.2", True)],
)
def test_warns_of_an_outdated_system_pool_with_the_command_that_upgrades_it(
    wanted: str, runs: str, warned: bool, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    pools = [{"name": "gpu1a2b", "currentOrchestratorVersion": wanted}, {"name": "system"}]
    pools[1]["currentOrchestratorVersion"] = runs
    monkeypatch.setitem(
        mocked_azure.ADDED, "ManagedCluster", {**mocked_azure.ADDED["ManagedCluster"], "agentPoolProfiles": pools}
    )
    declared(wanted)
    assert len(warnings) == warned
    command = "az aks nodepool upgrade --resource-group group --cluster-name ai-on-aks-test --name system "
    assert all(f"run Kubernetes {runs}, not {wanted}" in text and command in text for text in warnings)


@case_table(__file__, "ranges")
def test_keeps_authorized_ranges_and_warns_of_changes(
    given: dict[str, Any], has: list[str], sent: list[str], message: str, warnings: list[str]
) -> None:
    settings = settings_with(cluster=ClusterSettings.model_validate(given))
    assert chosen_ranges(settings, has) == sent
    assert [message in text for text in warnings] == ([True] if message else [])


@pytest.mark.parametrize(("gateway", "count"), [(True, 0), (False, 1)])
def test_does_not_warn_of_the_address_of_the_nat_gateway(*, gateway: bool, count: int, warnings: list[str]) -> None:
    settings = settings_with(cluster=ClusterSettings.model_validate({"authorizedIpRanges": ["8.8.8.8/32"]}))
    assert chosen_ranges(settings, ["8.8.8.8/32", "20.1.2.3/32"], gateway=gateway) == ["8.8.8.8/32"]
    assert len(warnings) == count
