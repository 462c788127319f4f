from __future__ import annotations

from typing import Any

import pytest

from simulator.azure import names
from simulator.azure.ids import parse_id
from simulator.azure.names import Answer
from tests.support import networks as net
from tests.support.arm import CLUSTER, Arm, cluster_body, pool_body, pool_path
from tests.support.blob_account import IDENTITY

Body = dict[str, Any]
OVERLAY: Body = {"networkPlugin": "azure", "networkPluginMode": "overlay"}
OUT: Body = {"outboundType": "userAssignedNATGateway"}
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
MINE: Body = {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}


@pytest.fixture
def network(arm: Arm) -> Arm:
    net.make_network(arm)
    net.make(arm, IDENTITY, {"location": "eastus"})
    return arm


def body(subnet: str = net.NODES, *, count: int = 2, identity: Body | None = None, **profile: Any) -> Body:
    made = cluster_body(networkProfile={**OVERLAY, **profile})
    made["properties"]["agentPoolProfiles"][0] |= {"vnetSubnetID": subnet, "count": count}
    return made | ({"identity": identity} if identity else {})


def assign(arm: Arm, role: str, scope: str) -> None:
    arm.assign(role, scope, arm.get(IDENTITY)["properties"]["principalId"], principalType="ServicePrincipal")


# -- subnets -----------------------------------------------------------------------------------------------------------


def test_rejects_the_deletion_of_a_subnet_in_use(network: Arm) -> None:
    net.make(network, CLUSTER, body(**OUT))
    net.make(network, pool_path(), pool_body(vnetSubnetID=net.NODES))
    status, code, message = network.refusal(network.call("DELETE", net.NODES))
    assert (status, code) == (400, "InUseSubnetCannotBeDeleted")
    assert message.count("|providers|Microsoft.Compute|virtualMachineScaleSets|aks-") == 2
    assert network.refusal(network.call("DELETE", net.NETWORK))[1] == "InUseSubnetCannotBeDeleted"
    network.call("DELETE", CLUSTER)
    network.done()
    assert network.call("DELETE", net.NODES).status_code == 200


def test_accepts_a_pool_in_another_subnet_of_the_network(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    made = net.make(network, pool_path(), pool_body(vnetSubnetID=net.ENDPOINTS))
    assert made["properties"]["vnetSubnetID"] == net.ENDPOINTS


def test_accepts_a_service_range_in_an_unused_part_of_the_network(network: Arm) -> None:
    """AKS compares the range with subnets only."""
    net.make(network, CLUSTER, body(serviceCidr="10.16.128.0/24", dnsServiceIP="10.16.128.10"))


def test_a_subnet_needs_addresses_for_the_maximum_number_of_nodes(network: Arm) -> None:
    """The subnet has 16 addresses; Azure reserves five."""
    subnet = f"{net.NETWORK}/subnets/small"
    net.make(network, subnet, net.subnet_body("10.16.32.0/28"))
    net.make(network, CLUSTER, body(subnet, count=3))
    scaled = pool_body(count=1, minCount=0, maxCount=9, enableAutoScaling=True, vnetSubnetID=subnet)
    assert "Pre-allocated IPs 9 exceeds IPs available 8" in network.refusal(network.put(pool_path(), scaled))[2]
    scaled["properties"]["maxCount"] = 8
    net.make(network, pool_path(), scaled)


# -- outbound traffic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outbound", ["userAssignedNATGateway", "userDefinedRouting"])
def test_a_custom_outbound_type_needs_no_load_balancer(network: Arm, outbound: str) -> None:
    if outbound == "userDefinedRouting":
        net.make(network, net.ROUTES, net.routes_body())
        net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    cluster = net.make(network, CLUSTER, body(networkPolicy="calico", outboundType=outbound))
    shown = cluster["properties"]["networkProfile"]
    assert (shown["outboundType"], shown["networkPolicy"]) == (outbound, "calico")
    assert "loadBalancerProfile" not in shown
    if outbound == "userDefinedRouting":
        assert network.refusal(network.call("DELETE", net.ROUTES))[1] == "InUseRouteTableCannotBeDeleted"


def test_node_setup_fails_if_routes_drop_outbound_traffic(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    net.make(network, net.ROUTES, net.routes_body("None"))
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    accepted = network.put(pool_path(), pool_body(vnetSubnetID=net.NODES))
    network.done()
    error = network.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    assert (error["code"], "exit status=50" in error["message"]) == ("VMExtensionProvisioningError", True)


# -- the identity ------------------------------------------------------------------------------------------------------


def test_a_user_assigned_identity_needs_a_role_on_the_subnet(network: Arm) -> None:
    assert net.make(network, CLUSTER, body(identity=MINE))["properties"]["provisioningState"] == "Failed"
    (pool,) = [record for record in network.server.world.store.all() if record.id.name == "system"]
    principal = network.get(IDENTITY)["properties"]["principalId"]
    assert pool.error is not None
    assert pool.error["code"] == "LinkedAuthorizationFailed"
    assert pool.error["message"].startswith(f"The client '{principal}' with object id '{principal}' has permission")
    assert (
        "does not have permission to perform action 'Microsoft.Network/virtualNetworks/subnets/join/action' on the "
        f"linked scope(s) '{net.NODES}'"
    ) in pool.error["message"]
    assign(network, NETWORK_CONTRIBUTOR, net.NETWORK)
    shown = net.make(network, CLUSTER, body(identity=MINE))
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert shown["identity"]["userAssignedIdentities"][IDENTITY]["principalId"] == principal


# -- private clusters --------------------------------------------------------------------------------------------------

ZONE = net.zone("privatelink.eastus.azmk8s.io")
ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
HERE = parse_id(net.NETWORK)


@pytest.fixture
def zoned(network: Arm) -> Arm:
    net.make(network, ZONE, {"location": "global"})
    return network


def private(identity: Body | None = None, **access: Any) -> Body:
    made = body(identity=identity)
    made["properties"]["apiServerAccessProfile"] = {"enablePrivateCluster": True, **access}
    return made


def resolve(arm: Arm, name: str, *, inside: bool = True) -> Answer | None:
    return names.resolve(arm.server.world, name, HERE if inside else None)


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_cluster_without_public_name_is_unknown_outside(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, private(enablePrivateClusterPublicFQDN=False))["properties"]
    assert "fqdn" not in shown
    assert resolve(zoned, shown["privateFQDN"], inside=False) is None


def test_a_cluster_without_zone_has_only_its_public_name(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, private(privateDNSZone="none"))["properties"]
    assert "privateFQDN" not in shown
    assert resolve(zoned, shown["fqdn"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))


def test_a_public_cluster_has_a_public_address(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, cluster_body())["properties"]
    assert resolve(zoned, shown["fqdn"], inside=False) == Answer(of=parse_id(CLUSTER))
    assert "privateFQDN" not in shown


def test_deletes_the_resources_that_aks_created_with_the_cluster(zoned: Arm) -> None:
    before = {record.id for record in zoned.server.world.store.all()}
    net.make(zoned, CLUSTER, private())
    made = {record.id.type.rpartition("/")[2] for record in zoned.server.world.store.all() if record.id not in before}
    assert made == {"managedClusters", "agentPools", "privateDnsZones", "virtualNetworkLinks"}
    assert "/networkInterfaces/kube-apiserver.nic." in zoned.refusal(zoned.call("DELETE", net.NODES))[2]
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert {record.id for record in zoned.server.world.store.all()} == before


def test_an_update_keeps_a_cluster_private(zoned: Arm) -> None:
    net.make(zoned, CLUSTER, private())
    kept = net.make(zoned, CLUSTER, body())["properties"]["apiServerAccessProfile"]
    assert kept.items() >= {"enablePrivateCluster": True, "privateDNSZone": "system"}.items()


# -- custom zones ------------------------------------------------------------------------------------------------------


def test_writes_the_name_to_a_custom_zone_and_links_it(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    shown = net.make(zoned, CLUSTER, private(MINE, privateDNSZone=ZONE))["properties"]
    assert resolve(zoned, shown["privateFQDN"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))
    assert zoned.get(ZONE)["properties"]["numberOfRecordSets"] == 2
    assert zoned.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert zoned.call("DELETE", ZONE).status_code == 200


def test_does_not_link_a_network_twice(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    net.make(zoned, net.link(ZONE), net.link_body())
    net.make(zoned, CLUSTER, private(MINE, privateDNSZone=ZONE))
    assert zoned.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert zoned.call("GET", net.link(ZONE)).status_code == 200


def failure(arm: Arm, asked: Body) -> tuple[str, str]:
    assert net.make(arm, CLUSTER, asked)["properties"]["provisioningState"] == "Failed"
    record = arm.server.world.store.get(parse_id(CLUSTER))
    assert record is not None
    assert record.error is not None
    return record.error["code"], record.error["message"]


def test_a_role_on_the_zone_is_not_sufficient(zoned: Arm) -> None:
    assign(zoned, ZONE_CONTRIBUTOR, ZONE)
    code, message = failure(zoned, private(MINE, privateDNSZone=ZONE))
    assert code == "LinkedAuthorizationFailed"
    assert "'Microsoft.Network/virtualNetworks/subnets/join/action'" in message


def test_rejects_a_network_with_another_zone_of_the_same_name(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    other = ZONE.replace("/rg/", "/other/")
    net.make(zoned, other.partition("/providers/")[0], {"location": "eastus"})
    net.make(zoned, other, {"location": "global"})
    net.make(zoned, net.link(other), net.link_body())
    code, message = failure(zoned, private(MINE, privateDNSZone=ZONE))
    assert code == "CreateOrUpdateVirtualNetworkLinkFailed"
    assert "A virtual network cannot be linked to multiple zones with overlapping namespaces." in message
