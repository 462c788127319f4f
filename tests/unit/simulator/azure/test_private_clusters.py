"""Private clusters: the API server's address, its names, the zone, and what AKS refuses of them."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure import names
from simulator.azure.ids import parse_id
from simulator.azure.names import Answer
from tests.support import networks as net
from tests.support.arm import CLUSTER, Arm, cluster_body
from tests.support.blob_account import IDENTITY
from tests.unit.simulator.azure.test_cluster_networks import MINE, NETWORK_CONTRIBUTOR, assign, body

Body = dict[str, Any]
ZONE = net.zone("privatelink.eastus.azmk8s.io")
ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
HERE = parse_id(net.NETWORK)


@pytest.fixture
def network(arm: Arm) -> Arm:
    """A network, an identity and a zone."""
    net.make_network(arm)
    net.make(arm, IDENTITY, {"location": "eastus"})
    net.make(arm, ZONE, {"location": "global"})
    return arm


def private(identity: Body | None = None, **access: Any) -> Body:
    made = body(identity=identity)
    made["properties"]["apiServerAccessProfile"] = {"enablePrivateCluster": True, **access}
    return made


def refused(arm: Arm, asked: Body) -> tuple[str, str]:
    answer = arm.put(CLUSTER, asked)
    assert answer.status_code == 400, answer.text
    assert arm.call("GET", CLUSTER).status_code == 404
    error = answer.json()["error"]
    return error["code"], error["message"]


def resolve(arm: Arm, name: str, *, inside: bool = True) -> Answer | None:
    return names.resolve(arm.server.world, name, HERE if inside else None)


# -- names -------------------------------------------------------------------------------------------------------------


def test_the_private_name_is_known_in_the_network_alone(network: Arm) -> None:
    shown = net.make(network, CLUSTER, private())["properties"]
    assert shown["privateFQDN"].endswith(".privatelink.eastus.azmk8s.io")
    assert shown["apiServerAccessProfile"]["privateDNSZone"] == "system"
    there = Answer((), "10.16.0.4", parse_id(CLUSTER))
    assert resolve(network, shown["privateFQDN"]) == there
    assert resolve(network, shown["privateFQDN"], inside=False) is None
    # the public name leads to the private address, from everywhere
    assert resolve(network, shown["fqdn"]) == resolve(network, shown["fqdn"], inside=False) == there


def test_without_its_public_name_nobody_outside_finds_it(network: Arm) -> None:
    shown = net.make(network, CLUSTER, private(enablePrivateClusterPublicFQDN=False))["properties"]
    assert "fqdn" not in shown
    assert resolve(network, shown["privateFQDN"], inside=False) is None


def test_without_a_zone_there_is_the_public_name(network: Arm) -> None:
    shown = net.make(network, CLUSTER, private(privateDNSZone="none"))["properties"]
    assert "privateFQDN" not in shown
    assert resolve(network, shown["fqdn"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))


def test_a_public_cluster_has_a_public_address(network: Arm) -> None:
    shown = net.make(network, CLUSTER, cluster_body())["properties"]
    assert resolve(network, shown["fqdn"], inside=False) == Answer(of=parse_id(CLUSTER))
    assert "privateFQDN" not in shown


def test_what_aks_made_goes_with_the_cluster(network: Arm) -> None:
    before = {record.id for record in network.server.world.store.all()}
    net.make(network, CLUSTER, private())
    made = {record.id.type.rpartition("/")[2] for record in network.server.world.store.all() if record.id not in before}
    assert made == {"managedClusters", "agentPools", "privateDnsZones", "virtualNetworkLinks"}
    assert "/networkInterfaces/kube-apiserver.nic." in network.refusal(network.call("DELETE", net.NODES))[2]
    network.call("DELETE", CLUSTER)
    network.done()
    assert {record.id for record in network.server.world.store.all()} == before


def test_an_update_keeps_it_private(network: Arm) -> None:
    net.make(network, CLUSTER, private())
    kept = net.make(network, CLUSTER, body())["properties"]["apiServerAccessProfile"]
    assert kept.items() >= {"enablePrivateCluster": True, "privateDNSZone": "system"}.items()
    for other in ({"enablePrivateCluster": False}, {"enablePrivateCluster": True, "privateDNSZone": "none"}):
        changed = body()
        changed["properties"]["apiServerAccessProfile"] = other
        assert network.refusal(network.put(CLUSTER, changed))[1] == "PropertyChangeNotAllowed"


def test_a_public_cluster_stays_public(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    assert network.refusal(network.put(CLUSTER, private()))[1] == "PropertyChangeNotAllowed"


# -- a zone of one's own -----------------------------------------------------------------------------------------------


def test_a_zone_of_ones_own_has_the_name_and_is_linked(network: Arm) -> None:
    assign(network, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    shown = net.make(network, CLUSTER, private(MINE, privateDNSZone=ZONE))["properties"]
    assert resolve(network, shown["privateFQDN"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))
    assert network.get(ZONE)["properties"]["numberOfRecordSets"] == 2
    assert network.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    network.call("DELETE", CLUSTER)
    network.done()
    assert network.call("DELETE", ZONE).status_code == 200


def test_a_network_that_is_linked_is_not_linked_again(network: Arm) -> None:
    assign(network, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    net.make(network, net.link(ZONE), net.link_body())
    net.make(network, CLUSTER, private(MINE, privateDNSZone=ZONE))
    assert network.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    network.call("DELETE", CLUSTER)
    network.done()
    assert network.call("GET", net.link(ZONE)).status_code == 200


def test_a_zone_of_ones_own_needs_an_identity_of_ones_own(network: Arm) -> None:
    code, message = refused(network, private(privateDNSZone=ZONE))
    assert code == "SystemAssignedIdentityNotSupportedForCustomPrivateDNSZone"
    assert "system-assigned identity is not supported with a custom private DNS zone" in message


def test_the_identity_needs_its_role_on_the_zone(network: Arm) -> None:
    assign(network, NETWORK_CONTRIBUTOR, net.NETWORK)
    assert refused(network, private(MINE, privateDNSZone=ZONE)) == (
        "CustomPrivateDNSZoneMissingPermissionError",
        "Service principal or user-assigned identity must be given permission to read and write to custom private dns "
        f"zone {ZONE}. Check access result not allowed for action Microsoft.Network/privateDnsZones/read.",
    )


def failure(arm: Arm, asked: Body) -> tuple[str, str]:
    """Why an operation failed that Azure had begun."""
    assert arm.put(CLUSTER, asked).status_code == 201
    arm.done()
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Failed"
    record = arm.server.world.store.get(parse_id(CLUSTER))
    assert record is not None
    assert record.error is not None
    return record.error["code"], record.error["message"]


def test_the_role_on_the_zone_alone_is_not_enough(network: Arm) -> None:
    assign(network, ZONE_CONTRIBUTOR, ZONE)
    code, message = failure(network, private(MINE, privateDNSZone=ZONE))
    assert code == "LinkedAuthorizationFailed"
    assert "'Microsoft.Network/virtualNetworks/subnets/join/action'" in message


def test_a_network_with_another_zone_of_the_name(network: Arm) -> None:
    assign(network, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    other = ZONE.replace("/rg/", "/other/")
    net.make(network, other.partition("/providers/")[0], {"location": "eastus"})
    net.make(network, other, {"location": "global"})
    net.make(network, net.link(other), net.link_body())
    code, message = failure(network, private(MINE, privateDNSZone=ZONE))
    assert code == "CreateOrUpdateVirtualNetworkLinkFailed"
    assert "A virtual network cannot be linked to multiple zones with overlapping namespaces." in message


@pytest.mark.parametrize(
    ("zone", "code"),
    [
        (net.zone("privatelink.westus3.azmk8s.io"), "InvalidPrivateDNSZoneResourceID"),
        (net.zone("example.com"), "InvalidPrivateDNSZoneResourceID"),
        (net.NETWORK, "InvalidPrivateDNSZoneResourceID"),
        ("mine", "InvalidPrivateDNSZoneResourceID"),
        (net.zone("sub.privatelink.eastus.azmk8s.io"), "PrivateDNSZoneResourceNotFoundError"),
    ],
)
def test_zones_that_a_cluster_cannot_have(network: Arm, zone: str, code: str) -> None:
    found, message = refused(network, private(MINE, privateDNSZone=zone))
    assert found == code
    assert zone in message


# -- what goes with it -------------------------------------------------------------------------------------------------


def test_authorized_ranges_are_for_public_clusters(network: Arm) -> None:
    code, message = refused(network, private(authorizedIPRanges=["1.2.3.4/32"]))
    assert code == "InvalidParameter"
    assert "a private cluster cannot have them" in message


def test_a_cluster_has_at_least_one_name(network: Arm) -> None:
    code, _ = refused(network, private(privateDNSZone="none", enablePrivateClusterPublicFQDN=False))
    assert code == "NonePrivateDNSZonePublicFQDNDisabledError"
