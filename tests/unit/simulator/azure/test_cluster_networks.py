"""A cluster in a network of one's own, public or private: its subnets, its way out, its identity, its names."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure import names
from simulator.azure.ids import parse_id
from simulator.azure.names import Answer
from tests.support import networks as net
from tests.support.arm import CLUSTER, GROUP, Arm, cluster_body, pool_body, pool_path
from tests.support.blob_account import IDENTITY

Body = dict[str, Any]
OVERLAY: Body = {"networkPlugin": "azure", "networkPluginMode": "overlay"}
OUT: Body = {"outboundType": "userAssignedNATGateway"}
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
MINE: Body = {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}


@pytest.fixture
def network(arm: Arm) -> Arm:
    """A network, an identity, and no cluster yet."""
    net.make_network(arm)
    net.make(arm, IDENTITY, {"location": "eastus"})
    return arm


def body(subnet: str = net.NODES, *, count: int = 2, identity: Body | None = None, **profile: Any) -> Body:
    """A cluster in a subnet."""
    made = cluster_body(networkProfile={**OVERLAY, **profile})
    made["properties"]["agentPoolProfiles"][0] |= {"vnetSubnetID": subnet, "count": count}
    return made | ({"identity": identity} if identity else {})


def assign(arm: Arm, role: str, scope: str) -> None:
    """Gives the identity a role."""
    arm.assign(role, scope, arm.get(IDENTITY)["properties"]["principalId"], principalType="ServicePrincipal")


# -- subnets -----------------------------------------------------------------------------------------------------------


def test_a_cluster_and_its_pools_keep_their_subnet(network: Arm) -> None:
    net.make(network, CLUSTER, body(**OUT))
    net.make(network, pool_path(), pool_body(vnetSubnetID=net.NODES))
    status, code, message = network.refusal(network.call("DELETE", net.NODES))
    assert (status, code) == (400, "InUseSubnetCannotBeDeleted")
    assert message.count("|providers|Microsoft.Compute|virtualMachineScaleSets|aks-") == 2
    assert network.refusal(network.call("DELETE", net.NETWORK))[1] == "InUseSubnetCannotBeDeleted"
    network.call("DELETE", CLUSTER)
    network.done()
    assert network.call("DELETE", net.NODES).status_code == 200


def test_a_pool_may_be_in_another_subnet_of_the_network(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    made = net.make(network, pool_path(), pool_body(vnetSubnetID=net.ENDPOINTS))
    assert made["properties"]["vnetSubnetID"] == net.ENDPOINTS


def test_services_may_have_a_range_of_the_network_that_no_subnet_has(network: Arm) -> None:
    """AKS looks at subnets alone."""
    net.make(network, CLUSTER, body(serviceCidr="10.16.128.0/24", dnsServiceIP="10.16.128.10"))


def test_every_node_that_pools_may_have_needs_an_address(network: Arm) -> None:
    """The subnet has 16 addresses, of which five are Azure's."""
    subnet = f"{net.NETWORK}/subnets/small"
    net.make(network, subnet, net.subnet_body("10.16.32.0/28"))
    net.make(network, CLUSTER, body(subnet, count=3))
    scaled = pool_body(count=1, minCount=0, maxCount=9, enableAutoScaling=True, vnetSubnetID=subnet)
    assert "Pre-allocated IPs 9 exceeds IPs available 8" in network.refusal(network.put(pool_path(), scaled))[2]
    scaled["properties"]["maxCount"] = 8
    net.make(network, pool_path(), scaled)


# -- the way out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["userAssignedNATGateway", "userDefinedRouting"])
def test_a_way_out_of_ones_own_needs_no_load_balancer(network: Arm, way: str) -> None:
    if way == "userDefinedRouting":
        net.make(network, net.ROUTES, net.routes_body())
        net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    shown = net.make(network, CLUSTER, body(networkPolicy="calico", outboundType=way))["properties"]["networkProfile"]
    assert (shown["outboundType"], shown["networkPolicy"]) == (way, "calico")
    assert "loadBalancerProfile" not in shown
    if way == "userDefinedRouting":
        assert network.refusal(network.call("DELETE", net.ROUTES))[1] == "InUseRouteTableCannotBeDeleted"


def test_nodes_whose_routes_lead_nowhere_cannot_be_set_up(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    net.make(network, net.ROUTES, net.routes_body("None"))
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    accepted = network.put(pool_path(), pool_body(vnetSubnetID=net.NODES))
    network.done()
    error = network.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    assert (error["code"], "exit status=50" in error["message"]) == ("VMExtensionProvisioningError", True)


# -- the identity ------------------------------------------------------------------------------------------------------


def test_an_identity_of_ones_own_needs_its_role_on_the_subnet(network: Arm) -> None:
    assert network.put(CLUSTER, body(identity=MINE)).status_code == 201
    network.done()
    assert network.get(CLUSTER)["properties"]["provisioningState"] == "Failed"
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


def test_a_clusters_own_identity_gets_its_role_afterwards(network: Arm) -> None:
    assert net.make(network, CLUSTER, body())["properties"]["provisioningState"] == "Succeeded"


def test_the_network_can_be_in_another_group(network: Arm) -> None:
    other = GROUP.replace("/rg", "/nets")
    net.make(network, other, {"location": "eastus"})
    there = net.NETWORK.replace(GROUP, other)
    net.make(network, there, net.network_body())
    net.make(network, f"{there}/subnets/nodes", net.subnet_body("10.16.0.0/20"))
    net.make(network, CLUSTER, body(f"{there}/subnets/nodes"))


# -- private clusters --------------------------------------------------------------------------------------------------

ZONE = net.zone("privatelink.eastus.azmk8s.io")
ZONE_CONTRIBUTOR = "b12aa53e-6015-4669-85d0-8515ebb3ae7f"
HERE = parse_id(net.NETWORK)


@pytest.fixture
def zoned(network: Arm) -> Arm:
    """With a zone of one's own for the names of API servers."""
    net.make(network, ZONE, {"location": "global"})
    return network


def private(identity: Body | None = None, **access: Any) -> Body:
    made = body(identity=identity)
    made["properties"]["apiServerAccessProfile"] = {"enablePrivateCluster": True, **access}
    return made


def resolve(arm: Arm, name: str, *, inside: bool = True) -> Answer | None:
    return names.resolve(arm.server.world, name, HERE if inside else None)


# -- names -------------------------------------------------------------------------------------------------------------


def test_the_private_name_is_known_in_the_network_alone(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, private())["properties"]
    assert shown["privateFQDN"].endswith(".privatelink.eastus.azmk8s.io")
    assert shown["apiServerAccessProfile"]["privateDNSZone"] == "system"
    there = Answer((), "10.16.0.4", parse_id(CLUSTER))
    assert resolve(zoned, shown["privateFQDN"]) == there
    assert resolve(zoned, shown["privateFQDN"], inside=False) is None
    # the public name leads to the private address, from everywhere
    assert resolve(zoned, shown["fqdn"]) == resolve(zoned, shown["fqdn"], inside=False) == there


def test_without_its_public_name_nobody_outside_finds_it(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, private(enablePrivateClusterPublicFQDN=False))["properties"]
    assert "fqdn" not in shown
    assert resolve(zoned, shown["privateFQDN"], inside=False) is None


def test_without_a_zone_there_is_the_public_name(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, private(privateDNSZone="none"))["properties"]
    assert "privateFQDN" not in shown
    assert resolve(zoned, shown["fqdn"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))


def test_a_public_cluster_has_a_public_address(zoned: Arm) -> None:
    shown = net.make(zoned, CLUSTER, cluster_body())["properties"]
    assert resolve(zoned, shown["fqdn"], inside=False) == Answer(of=parse_id(CLUSTER))
    assert "privateFQDN" not in shown


def test_what_aks_made_goes_with_the_cluster(zoned: Arm) -> None:
    before = {record.id for record in zoned.server.world.store.all()}
    net.make(zoned, CLUSTER, private())
    made = {record.id.type.rpartition("/")[2] for record in zoned.server.world.store.all() if record.id not in before}
    assert made == {"managedClusters", "agentPools", "privateDnsZones", "virtualNetworkLinks"}
    assert "/networkInterfaces/kube-apiserver.nic." in zoned.refusal(zoned.call("DELETE", net.NODES))[2]
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert {record.id for record in zoned.server.world.store.all()} == before


def test_an_update_keeps_it_private(zoned: Arm) -> None:
    net.make(zoned, CLUSTER, private())
    kept = net.make(zoned, CLUSTER, body())["properties"]["apiServerAccessProfile"]
    assert kept.items() >= {"enablePrivateCluster": True, "privateDNSZone": "system"}.items()


# -- a zone of one's own -----------------------------------------------------------------------------------------------


def test_a_zone_of_ones_own_has_the_name_and_is_linked(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    shown = net.make(zoned, CLUSTER, private(MINE, privateDNSZone=ZONE))["properties"]
    assert resolve(zoned, shown["privateFQDN"]) == Answer((), "10.16.0.4", parse_id(CLUSTER))
    assert zoned.get(ZONE)["properties"]["numberOfRecordSets"] == 2
    assert zoned.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert zoned.call("DELETE", ZONE).status_code == 200


def test_a_network_that_is_linked_is_not_linked_again(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    net.make(zoned, net.link(ZONE), net.link_body())
    net.make(zoned, CLUSTER, private(MINE, privateDNSZone=ZONE))
    assert zoned.get(ZONE)["properties"]["numberOfVirtualNetworkLinks"] == 1
    zoned.call("DELETE", CLUSTER)
    zoned.done()
    assert zoned.call("GET", net.link(ZONE)).status_code == 200


def failure(arm: Arm, asked: Body) -> tuple[str, str]:
    """Why an operation failed that Azure had begun."""
    assert arm.put(CLUSTER, asked).status_code == 201
    arm.done()
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Failed"
    record = arm.server.world.store.get(parse_id(CLUSTER))
    assert record is not None
    assert record.error is not None
    return record.error["code"], record.error["message"]


def test_the_role_on_the_zone_alone_is_not_enough(zoned: Arm) -> None:
    assign(zoned, ZONE_CONTRIBUTOR, ZONE)
    code, message = failure(zoned, private(MINE, privateDNSZone=ZONE))
    assert code == "LinkedAuthorizationFailed"
    assert "'Microsoft.Network/virtualNetworks/subnets/join/action'" in message


def test_a_network_with_another_zone_of_the_name(zoned: Arm) -> None:
    assign(zoned, NETWORK_CONTRIBUTOR, net.NETWORK.partition("/providers/")[0])
    other = ZONE.replace("/rg/", "/other/")
    net.make(zoned, other.partition("/providers/")[0], {"location": "eastus"})
    net.make(zoned, other, {"location": "global"})
    net.make(zoned, net.link(other), net.link_body())
    code, message = failure(zoned, private(MINE, privateDNSZone=ZONE))
    assert code == "CreateOrUpdateVirtualNetworkLinkFailed"
    assert "A virtual network cannot be linked to multiple zones with overlapping namespaces." in message


# -- what goes with it -------------------------------------------------------------------------------------------------
