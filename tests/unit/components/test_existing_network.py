"""A cluster that is up stays in its network: Azure moves none, and the provider would replace it."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.preflight.existing import check_existing
from config.schema.network import POD_RANGE, SERVICE_RANGE, NetworkSettings
from tests.support.case_files import case_table
from tests.support.mocked_azure import SUBSCRIPTION, Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with

HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
NODES = f"{HUB}/subnets/nodes"
OURS = HUB.replace("/net/", "/ai-on-aks-test/").replace("/hub", "/ai-on-aks-test") + "/subnets/nodes"
OWN = {"addressSpace": "10.0.0.0/16"}
PROFILE = {"outboundType": "userAssignedNATGateway", "podCidr": POD_RANGE, "serviceCidr": SERVICE_RANGE}
AKS = "az aks update --resource-group ai-on-aks-test --name ai-on-aks-test"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq0rP3vE1RLhmKfkQm3pYbnL5KqXwF0U2m6c8aZ5tQw"
PRIVATE = {"apiServerAccessProfile": {"enablePrivateCluster": True}}
ZONES = [
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/privateDnsZones/"
    "privatelink.eastus.azmk8s.io"
    for group in ("dns", "other")
]
TEXTS = {
    "aks": AKS,
    "hub": HUB,
    "nodes_of_aks": NODES.replace("resourceGroups", "resourcegroups"),
    "ours": OURS,
    "lower_ours": OURS.lower(),
    "zone": ZONES[0],
    "lower_zone": ZONES[0].lower(),
    "other": ZONES[1],
}


def refused(wanted: dict[str, Any], subnet: str | None = None, space: str = "", **profiles: Any) -> str:
    """What is said of settings for a cluster with nodes in that subnet; empty where they are taken."""
    azure = Azure(cluster=True, pools={"system": {"vnetSubnetID": subnet}}, address_space=space, profiles=profiles)
    settings = settings_with(network=NetworkSettings.model_validate(wanted))
    try:
        deploy(lambda: check_existing(settings), azure)
    except pulumi.RunError as error:
        return str(error)
    return ""


@case_table(__file__, "stays", **TEXTS)
def test_a_cluster_that_is_where_the_settings_want_it_stays(
    wanted: dict[str, Any], subnet: str | None, space: str, profiles: dict[str, Any]
) -> None:
    assert refused(wanted, subnet, space, **profiles) == ""


@case_table(__file__, "refused", **TEXTS)
def test_what_would_make_it_anew_is_refused_with_what_keeps_it(
    wanted: dict[str, Any], subnet: str | None, space: str, profiles: dict[str, Any], what: str, keep: str
) -> None:
    said = refused(wanted, subnet, space, **profiles)
    assert what in said.partition("\n")[0], said
    assert keep in said, said


@pytest.mark.parametrize(("wanted", "widens"), [("10.244.0.0/14", True), ("10.248.0.0/14", False)])
def test_a_wider_range_of_pods_needs_no_new_cluster(wanted: str, *, widens: bool) -> None:
    profile = {"networkProfile": {**PROFILE, "podCidr": "10.244.0.0/16"}}
    said = refused({**OWN, "podRange": wanted, "addressSpace": "10.1.0.0/16"}, OURS, "10.1.0.0/16", **profile)
    update = f"az aks update --resource-group ai-on-aks-test --name ai-on-aks-test --pod-cidr {wanted}"
    assert (f"    {update} && pulumi up --refresh -s test" in said.splitlines()) is widens, said
    assert ("pulumi destroy" in said) is not widens
    assert "network.podRange 10.244.0.0/16" in said


@pytest.mark.parametrize(
    ("wanted", "has"), [("none", "calico"), ("none", "cilium"), ("calico", "cilium"), ("none", "none")]
)
def test_no_command_takes_a_policy_engine_away(wanted: str, has: str) -> None:
    said = refused({"policy": wanted}, None, "", networkProfile={"networkPolicy": has})
    assert bool(said) is (wanted != has)
    assert "az aks update" not in said


def test_the_network_outlives_the_cluster_and_so_does_its_address_space() -> None:
    settings = settings_with(network=NetworkSettings.model_validate({"addressSpace": "10.0.0.0/15"}))
    with pytest.raises(pulumi.RunError, match=r"the network that is there has 10\.0\.0\.0/16"):
        deploy(lambda: check_existing(settings), Azure(address_space="10.0.0.0/16"))


def test_a_stack_in_aks_own_network_asks_for_none() -> None:
    azure = Azure(cluster=True, pools={"system": {}})
    deploy(lambda: check_existing(settings_with()), azure)
    assert not [token for token, _ in azure.calls if token.endswith(":getVirtualNetwork")]


@case_table(__file__, "jump boxes", key=KEY, other_key=f"{KEY[:-4]}AAAA")
def test_what_becomes_of_a_jump_box_is_told(key: str | None, said: list[str], warnings: list[str]) -> None:
    azure = Azure(address_space="10.0.0.0/16", jump_box_key=KEY)
    box = {"jumpBox": {"sshPublicKey": key}} if key else {}
    settings = settings_with(network=NetworkSettings.model_validate({**OWN, "private": True, **box}))
    deploy(lambda: check_existing(settings), azure)
    assert len(warnings) == bool(said)
    assert all(words in "".join(warnings) for words in said)


def test_a_private_stack_is_built_anew_without_its_cluster_being_reached() -> None:
    told = refused({**OWN, "addressSpace": "10.8.0.0/16", "private": True}, OURS, "10.0.0.0/16", **PRIVATE)
    assert "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh -s test && pulumi up -s test" in told
