"""The cluster: its addresses, and what an upgrade leaves behind."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pulumi
import pytest

from components.cluster import POD_CIDR, Cluster
from config.schema.models import ClusterSettings
from config.schema.pools import MAX_NODES
from tests.support import mocks
from tests.support.mocks import Registered, deploy
from tests.support.settings import settings_with

AKS_NETWORKS = ("10.224.0.0/12", "10.0.0.0/16")
"""Of nodes and of services, where nobody brings a network along."""


def declared(version: str = "1.35", **cluster: Any) -> Registered:
    settings = settings_with(cluster=ClusterSettings.model_validate({"kubernetesVersion": version, **cluster}))
    return deploy(lambda: Cluster("cluster", settings, pulumi.Output.from_input("group"))).one(":ManagedCluster")


def test_pods_of_the_largest_pool_have_addresses_of_their_own() -> None:
    network = ip_network(declared().inputs["networkProfile"]["podCidr"])
    assert network == ip_network(POD_CIDR)
    assert network.num_addresses // 256 > MAX_NODES
    assert not any(network.overlaps(ip_network(other)) for other in AKS_NETWORKS)


@pytest.mark.parametrize(
    ("given", "sent"),
    [([], []), (["137.117.106.88/29", "20.1.2.3"], ["137.117.106.88/29", "20.1.2.3/32"])],
)
def test_the_api_server_is_open_to_all_but_for_authorized_ranges(given: list[str], sent: list[str]) -> None:
    """An empty list too is sent: taking ranges away must open it again."""
    assert declared(authorizedIpRanges=given).inputs["apiServerAccessProfile"] == {"authorizedIPRanges": sent}


def test_the_version_is_the_control_planes_and_not_that_of_the_inline_pool() -> None:
    """ARM refuses it there once there are other pools."""
    inputs = declared("1.36").inputs
    assert inputs["kubernetesVersion"] == "1.36"
    assert "orchestratorVersion" not in inputs["agentPoolProfiles"][0]


@pytest.mark.parametrize(
    ("wanted", "runs", "warned"),
    [("1.35", "1.35.4", False), ("1.35.4", "1.35.4", False), ("1.36", "1.35.4", True), ("1.35.4", "1.35.2", True)],
)
def test_a_system_pool_that_stayed_behind_is_told_with_the_command_that_upgrades_it(
    wanted: str, runs: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = [{"name": "gpu1a2b", "currentOrchestratorVersion": wanted}, {"name": "system"}]
    pools[1]["currentOrchestratorVersion"] = runs
    monkeypatch.setitem(mocks.ADDED, "ManagedCluster", {**mocks.ADDED["ManagedCluster"], "agentPoolProfiles": pools})
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text: said.append(text))
    declared(wanted)
    assert len(said) == warned
    command = "az aks nodepool upgrade --resource-group group --cluster-name ai-on-aks-test --name system "
    assert all(f"run Kubernetes {runs}, not {wanted}" in text and command in text for text in said)
