"""A cluster that is up stays in its network: Azure moves none, and the provider would replace it."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.preflight.existing import check_existing
from config.schema.network import POD_RANGE, SERVICE_RANGE, NetworkSettings
from tests.support.mocked_azure import SUBSCRIPTION, Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with

SET = "pulumi config set -s test --path network"
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
NODES = f"{HUB}/subnets/nodes"
OURS = HUB.replace("/net/", "/ai-on-aks-test/").replace("/hub", "/ai-on-aks-test") + "/subnets/nodes"
OWN = {"addressSpace": "10.0.0.0/16"}
IN_HUB = {"id": HUB, "nodeSubnet": NODES}
PROFILE = {"outboundType": "userAssignedNATGateway", "podCidr": POD_RANGE, "serviceCidr": SERVICE_RANGE}
CALICO = {"networkProfile": {"networkPolicy": "calico"}}
CILIUM = "--network-dataplane cilium --network-policy cilium && pulumi up --refresh -s test"
AKS = "az aks update --resource-group ai-on-aks-test --name ai-on-aks-test"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq0rP3vE1RLhmKfkQm3pYbnL5KqXwF0U2m6c8aZ5tQw"
PRIVATE = {"apiServerAccessProfile": {"enablePrivateCluster": True}}
ZONES = [
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/privateDnsZones/"
    "privatelink.eastus.azmk8s.io"
    for group in ("dns", "other")
]


def in_zone(zone: str) -> dict[str, Any]:
    return {"apiServerAccessProfile": {"enablePrivateCluster": True, "privateDNSZone": zone}}


def refused(wanted: dict[str, Any], subnet: str | None = None, space: str = "", **profiles: Any) -> str:
    """What is said of settings for a cluster with nodes in that subnet; empty where they are taken."""
    azure = Azure(cluster=True, pools={"system": {"vnetSubnetID": subnet}}, address_space=space, profiles=profiles)
    settings = settings_with(network=NetworkSettings.model_validate(wanted))
    try:
        deploy(lambda: check_existing(settings), azure)
    except pulumi.RunError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("wanted", "subnet", "space", "profiles"),
    [
        ({}, None, "", {}),
        ({}, None, "", {"networkProfile": {"outboundType": "loadBalancer", "serviceCidr": "10.0.0.0/16"}}),
        (OWN, OURS, "10.0.0.0/16", {"networkProfile": PROFILE}),
        (OWN, OURS.lower(), "10.0.0.0/16", {}),
        (IN_HUB, NODES.replace("resourceGroups", "resourcegroups"), "", {}),
        ({**OWN, "private": True}, OURS, "10.0.0.0/16", PRIVATE),
        ({**OWN, "private": True}, OURS, "10.0.0.0/16", in_zone("system")),
        ({**OWN, "private": True, "zones": ZONES[:1]}, OURS, "10.0.0.0/16", in_zone(ZONES[0].lower())),
        ({"policy": "calico"}, None, "", {"networkProfile": {"networkPolicy": "calico"}}),
    ],
)
def test_a_cluster_that_is_where_the_settings_want_it_stays(
    wanted: dict[str, Any], subnet: str | None, space: str, profiles: dict[str, Any]
) -> None:
    assert refused(wanted, subnet, space, **profiles) == ""


@pytest.mark.parametrize(
    ("wanted", "subnet", "space", "profiles", "what", "keep"),
    [
        (OWN, None, "", {}, "nodes are in AKS's own network", "pulumi config rm -s test network"),
        (IN_HUB, OURS, "10.0.0.0/16", {}, "in the network that the stack has made", f"{SET}.addressSpace 10.0.0.0/16"),
        (OWN, NODES, "", {}, f"nodes are in {NODES}", f"{SET}.nodeSubnet {NODES}"),
        (OWN, OURS, "10.0.0.0/24", {}, "the network that is there has 10.0.0.0/24", f"{SET}.addressSpace 10.0.0.0/24"),
        ({**OWN, "private": True}, OURS, "10.0.0.0/16", {}, "is public, and would be private", f"{SET}.private false"),
        (OWN, OURS, "10.0.0.0/16", PRIVATE, "is private, and would be public", f"{SET}.private true"),
        (
            {**OWN, "private": True, "zones": ZONES[:1]}, OURS, "10.0.0.0/16", in_zone("system"),
            f"zone system, and would be in {ZONES[0]}", "pulumi config rm -s test --path 'network.zones[0]'",
        ),
        (
            {**OWN, "private": True, "zones": ZONES[:1]}, OURS, "10.0.0.0/16", in_zone(ZONES[1]),
            f"zone {ZONES[1]}, and would be in {ZONES[0]}",
            f"pulumi config set -s test --path 'network.zones[0]' {ZONES[1]}",
        ),
        (
            {**OWN, "private": True}, OURS, "10.0.0.0/16", in_zone(ZONES[1]), "and would be in system",
            f"pulumi config set -s test --path 'network.zones[0]' {ZONES[1]}",
        ),
        ({"policy": "calico"}, None, "", {}, "policy is calico", "pulumi config rm -s test --path network.policy"),
        ({"policy": "calico"}, None, "", {}, "which ends their jobs", f"{AKS} --network-policy calico && pulumi up"),
        ({"policy": "cilium"}, None, "", {}, "has none", f"{AKS} {CILIUM}"),
        ({"policy": "cilium"}, None, "", CALICO, "has calico", f"{AKS} {CILIUM}"),
        ({}, None, "", CALICO, "has calico", f"{SET}.policy calico"),
        (
            OWN, OURS, "10.0.0.0/16", {"networkProfile": {**PROFILE, "serviceCidr": "10.99.0.0/16"}},
            "the cluster has 10.99.0.0/16", f"{SET}.serviceRange 10.99.0.0/16",
        ),
        (
            OWN, OURS, "10.0.0.0/16", {"networkProfile": {**PROFILE, "outboundType": "loadBalancer"}},
            "outbound is natGateway", f"{SET}.outbound loadBalancer",
        ),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (KEY, []),
        (None, ["the jump box ai-on-aks-test-jump and its Bastion go", f"{SET}.jumpBox.sshPublicKey '{KEY}'"]),
        (
            f"{KEY[:-4]}AAAA",
            ["changes nothing there", "az vm user update --resource-group ai-on-aks-test --name ai-on-aks-test-jump"],
        ),
    ],
    ids=["as it is", "taken out", "another key"],
)
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
