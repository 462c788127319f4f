"""Azure cannot change an existing cluster's network, and the provider would replace the cluster."""

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
    azure = Azure(cluster=True, pools={"system": {"vnetSubnetID": subnet}}, address_space=space, profiles=profiles)
    settings = settings_with(network=NetworkSettings.model_validate(wanted))
    try:
        deploy(lambda: check_existing(settings), azure)
    except pulumi.RunError as error:
        return str(error)
    return ""


@case_table(__file__, "stays", **TEXTS)
def test_accepts_the_network_that_the_cluster_has(
    wanted: dict[str, Any], subnet: str | None, space: str, profiles: dict[str, Any]
) -> None:
    assert refused(wanted, subnet, space, **profiles) == ""


@case_table(__file__, "refused", **TEXTS)
def test_rejects_another_network_with_the_command_that_keeps_it(
    wanted: dict[str, Any], subnet: str | None, space: str, profiles: dict[str, Any], what: str, keep: str
) -> None:
    message = refused(wanted, subnet, space, **profiles)
    assert what in message.partition("\n")[0], message
    assert keep in message, message


@pytest.mark.parametrize(("wanted", "widens"), [("10.244.0.0/14", True), ("10.248.0.0/14", False)])
def test_a_wider_pod_range_changes_in_place(wanted: str, *, widens: bool) -> None:
    profile = {"networkProfile": {**PROFILE, "podCidr": "10.244.0.0/16"}}
    message = refused({**OWN, "podRange": wanted, "addressSpace": "10.1.0.0/16"}, OURS, "10.1.0.0/16", **profile)
    update = f"az aks update --resource-group ai-on-aks-test --name ai-on-aks-test --pod-cidr {wanted}"
    assert (f"    {update} && pulumi up --refresh -s test" in message.splitlines()) is widens, message
    assert ("pulumi destroy" in message) is not widens
    assert "network.podRange 10.244.0.0/16" in message


@pytest.mark.parametrize(
    ("wanted", "has"), [("none", "calico"), ("none", "cilium"), ("calico", "cilium"), ("none", "none")]
)
def test_no_command_removes_a_policy_engine(wanted: str, has: str) -> None:
    message = refused({"policy": wanted}, None, "", networkProfile={"networkPolicy": has})
    assert bool(message) is (wanted != has)
    assert "az aks update" not in message


def test_rejects_another_address_space_without_a_cluster_too() -> None:
    settings = settings_with(network=NetworkSettings.model_validate({"addressSpace": "10.0.0.0/15"}))
    with pytest.raises(pulumi.RunError, match=r"the existing network has 10\.0\.0\.0/16"):
        deploy(lambda: check_existing(settings), Azure(address_space="10.0.0.0/16"))


def test_does_not_look_up_a_network_for_a_stack_without_one() -> None:
    azure = Azure(cluster=True, pools={"system": {}})
    deploy(lambda: check_existing(settings_with()), azure)
    assert not [token for token, _ in azure.calls if token.endswith(":getVirtualNetwork")]


@case_table(__file__, "jump boxes", key=KEY, other_key=f"{KEY[:-4]}AAAA")
def test_warns_of_a_removed_jump_box_and_of_an_unused_key(
    key: str | None, message: list[str], warnings: list[str]
) -> None:
    azure = Azure(address_space="10.0.0.0/16", jump_box_key=KEY)
    box = {"jumpBox": {"sshPublicKey": key}} if key else {}
    settings = settings_with(network=NetworkSettings.model_validate({**OWN, "private": True, **box}))
    deploy(lambda: check_existing(settings), azure)
    assert len(warnings) == bool(message)
    assert all(words in "".join(warnings) for words in message)


def test_a_private_stack_is_recreated_without_access_to_its_cluster() -> None:
    message = refused({**OWN, "addressSpace": "10.8.0.0/16", "private": True}, OURS, "10.0.0.0/16", **PRIVATE)
    assert "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh -s test && pulumi up -s test" in message
