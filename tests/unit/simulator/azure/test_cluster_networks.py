"""A cluster in a network of one's own: its subnets, its way out, its identity, and what AKS refuses of them."""

from __future__ import annotations

from typing import Any

import pytest

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


def refused(arm: Arm, asked: Body, path: str = CLUSTER) -> tuple[str, str, str]:
    """Code, message and target; nothing is left behind."""
    answer = arm.put(path, asked)
    assert answer.status_code == 400, answer.text
    assert arm.call("GET", path).status_code == 404
    error = answer.json()["error"]
    return error["code"], error["message"], error["target"]


def assign(arm: Arm, role: str, scope: str) -> None:
    principal = arm.get(IDENTITY)["properties"]["principalId"]
    path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001"
    definition = f"/providers/Microsoft.Authorization/roleDefinitions/{role}"
    asked = {"principalId": principal, "principalType": "ServicePrincipal", "roleDefinitionId": definition}
    assert arm.put(path, {"properties": asked}).status_code == 201


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


def test_all_pools_have_a_subnet_or_none(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    wrong = ("InvalidParameter", "At least one agent pool does not have subnet defined", "properties.vnetSubnetID")
    assert refused(network, pool_body(), pool_path()) == wrong
    network.call("DELETE", CLUSTER)
    network.done()
    net.make(network, CLUSTER, cluster_body())
    assert refused(network, pool_body(vnetSubnetID=net.NODES), pool_path()) == wrong


def test_pools_are_in_one_network(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    other = f"{net.NETWORK}2"
    net.make(network, other, net.network_body("10.20.0.0/16"))
    net.make(network, f"{other}/subnets/nodes", net.subnet_body("10.20.0.0/20"))
    code, message, _ = refused(network, pool_body(vnetSubnetID=f"{other}/subnets/nodes"), pool_path())
    assert (code, message) == ("InvalidParameter", "Vnet for subnet does not match with other subnet")


@pytest.mark.parametrize(
    ("subnet", "code", "message"),
    [
        ("nodes", "InvalidParameter", "Failed to parse VnetSubnetID"),
        (net.NETWORK, "InvalidParameter", "Failed to parse VnetSubnetID"),
        (f"{net.NODES}2", "SubnetNotFound", f"The subnet {net.NODES}2 of agent pool 'system' was not found."),
    ],
)
def test_subnets_that_are_none(network: Arm, subnet: str, code: str, message: str) -> None:
    assert refused(network, body(subnet)) == (code, message, "properties.vnetSubnetID")


def test_a_network_in_another_region(network: Arm) -> None:
    code, message, _ = refused(network, {**body(), "location": "westus3"})
    assert code == "InvalidParameter"
    assert message == "The Agentpool system's vnet ai is in eastus, not in the cluster's region westus3."


def test_a_delegated_subnet(network: Arm) -> None:
    given = [{"name": "sites", "properties": {"serviceName": "Microsoft.Web/serverFarms"}}]
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", delegations=given))
    code, message, _ = refused(network, body())
    assert code == "SubnetIsDelegated"
    assert message.startswith(f"AgentPoolProfile subnet with id {net.NODES} cannot be used as it's a delegated subnet.")


# -- ranges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "code", "message", "target"),
    [
        (
            {"serviceCidr": "10.16.0.0/20", "dnsServiceIP": "10.16.0.10"},
            "ServiceCidrOverlapExistingSubnetsCidr",
            "The specified service CIDR 10.16.0.0/20 is conflicted with an existing subnet CIDR 10.16.0.0/20",
            "networkProfile.serviceCIDR",
        ),
        (
            {"podCidr": "10.16.16.0/20"},
            "PodCidrOverlapExistingSubnetsCidr",
            "The specified pod CIDR 10.16.16.0/20 is conflicted with an existing subnet CIDR 10.16.16.0/24",
            "networkProfile.podCIDR",
        ),
        (
            {"serviceCidr": "172.30.0.0/20", "dnsServiceIP": "172.30.0.10"},
            "ServiceCidrOverlapping",
            "The specified service CIDR 172.30.0.0/20 is conflicted with the reserved range 172.30.0.0/16",
            "networkProfile.serviceCIDR",
        ),
        (
            {"podCidr": "192.0.0.0/16"},
            "InvalidParameter",
            "The specified pod CIDR 192.0.0.0/16 is conflicted with the reserved range 192.0.2.0/24",
            "networkProfile.podCIDR",
        ),
    ],
)
def test_ranges_that_are_taken(network: Arm, profile: Body, code: str, message: str, target: str) -> None:
    assert refused(network, body(**profile)) == (code, message, target)


def test_services_may_have_a_range_of_the_network_that_no_subnet_has(network: Arm) -> None:
    """AKS looks at subnets alone."""
    net.make(network, CLUSTER, body(serviceCidr="10.16.128.0/24", dnsServiceIP="10.16.128.10"))


@pytest.mark.parametrize("reserved", ["169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24"])
def test_nodes_have_no_reserved_addresses(network: Arm, reserved: str) -> None:
    net.make(network, net.NETWORK, net.network_body("10.16.0.0/16", reserved))
    subnet = f"{net.NETWORK}/subnets/reserved"
    net.make(network, subnet, net.subnet_body(reserved))
    code, message, _ = refused(network, body(subnet))
    assert code == "SubnetCidrOverlapping"
    assert message == f"The specified subnet CIDR {reserved} is conflicted with the reserved range {reserved}"


# -- sizes -------------------------------------------------------------------------------------------------------------


def small(arm: Arm) -> str:
    """A subnet for 11 nodes: 16 addresses, five of which are Azure's."""
    subnet = f"{net.NETWORK}/subnets/small"
    net.make(arm, subnet, net.subnet_body("10.16.32.0/28"))
    return subnet


def test_every_node_that_pools_may_have_needs_an_address(network: Arm) -> None:
    subnet = small(network)
    code, message, _ = refused(network, body(subnet, count=12))
    assert code == "InsufficientSubnetSize"
    assert message.startswith(
        "Pre-allocated IPs 12 exceeds IPs available 11 in Subnet Cidr 10.16.32.0/28, Subnet Name small."
    )
    net.make(network, CLUSTER, body(subnet, count=3))
    scaled = pool_body(count=1, minCount=0, maxCount=9, enableAutoScaling=True, vnetSubnetID=subnet)
    assert "Pre-allocated IPs 9 exceeds IPs available 8" in refused(network, scaled, pool_path())[1]
    scaled["properties"]["maxCount"] = 8
    net.make(network, pool_path(), scaled)


def test_without_an_overlay_pods_need_addresses_too(network: Arm) -> None:
    flat = body(small(network), count=1, networkPluginMode=None)
    assert "Pre-allocated IPs 31 exceeds IPs available 11" in refused(network, flat)[1]


# -- the way out -------------------------------------------------------------------------------------------------------


def test_a_gateway_of_ones_own_is_on_the_subnet_with_an_address(network: Arm) -> None:
    code, message, target = refused(network, body(net.ENDPOINTS, **OUT))
    assert (code, target) == ("SubnetNotAssociatedWithNATGateway", "properties.vnetSubnetID")
    assert message == f"Subnet '{net.ENDPOINTS}' must have a NAT gateway associated for outbound connection"
    net.make(network, net.GATEWAY, net.gateway_body())
    assert refused(network, body(**OUT))[0] == "NATGatewayNotAssociatedWithPublicIPOrIPPrefix"
    net.make(network, net.GATEWAY, net.gateway_body(net.ADDRESS))
    shown = net.make(network, CLUSTER, body(networkPolicy="calico", **OUT))["properties"]["networkProfile"]
    assert shown.items() >= {**OUT, "networkPolicy": "calico"}.items()
    assert "loadBalancerProfile" not in shown


@pytest.mark.parametrize(
    ("plane", "policy", "code"),
    [("azure", "cilium", "NetworkPolicyNotSupported"), ("cilium", "calico", "BadRequest")],
)
def test_cilium_is_data_plane_and_policy_engine_at_once(network: Arm, plane: str, policy: str, code: str) -> None:
    said = refused(network, body(networkDataplane=plane, networkPolicy=policy))
    assert (said[0], said[2]) == (code, "networkProfile.networkPolicy")


ROUTED: Body = {"outboundType": "userDefinedRouting"}


def test_user_defined_routes_are_on_the_subnet_and_lead_out(network: Arm) -> None:
    code, message, target = refused(network, body(**ROUTED))
    assert (code, target) == ("ExistingRouteTableNotAssociatedWithSubnet", "properties.vnetSubnetID")
    assert f"has not been associated with subnet {net.NODES}." in message
    net.make(network, net.ROUTES, net.routes_body("Internet"))
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    code, message, _ = refused(network, body(**ROUTED))
    assert code == "RouteTableInvalidNextHop"
    assert message.startswith("Default route 0.0.0.0/0 has a next hop of Internet but only next hops of")
    net.make(network, net.ROUTES, net.routes_body(prefix="10.0.0.0/8"))
    code, message, _ = refused(network, body(**ROUTED))
    assert code == "RouteTableMissingDefaultRouteError"
    assert message.endswith(f"missing from route table {net.ROUTES}")
    net.make(network, net.ROUTES, net.routes_body())
    shown = net.make(network, CLUSTER, body(**ROUTED))["properties"]["networkProfile"]
    assert "loadBalancerProfile" not in shown
    assert network.refusal(network.call("DELETE", net.ROUTES))[1] == "InUseRouteTableCannotBeDeleted"
    code, message, _ = refused(network, cluster_body(networkProfile={**OVERLAY, **ROUTED}), f"{CLUSTER}2")
    assert "Outbound type is userDefinedRouting but agent pool 'system' is not using custom VNet" in message


def test_nodes_whose_routes_lead_nowhere_cannot_be_set_up(network: Arm) -> None:
    net.make(network, CLUSTER, body())
    net.make(network, net.ROUTES, net.routes_body("None"))
    net.make(network, net.NODES, net.subnet_body("10.16.0.0/20", routeTable={"id": net.ROUTES}))
    accepted = network.put(pool_path(), pool_body(vnetSubnetID=net.NODES))
    network.done()
    error = network.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    assert (error["code"], "exit status=50" in error["message"]) == ("VMExtensionProvisioningError", True)


def test_whose_gateway_goes_with_whose_network(network: Arm) -> None:
    assert refused(network, body(outboundType="managedNATGateway"))[:2] == (
        "InvalidParameter",
        "Outbound type is managedNATGateway but agent pool 'system' is using custom VNet, which is not allowed.",
    )
    code, message, _ = refused(network, cluster_body(networkProfile={**OVERLAY, **OUT}))
    assert code == "UserAssignedNATGatewayWithManagedVNetNotAllowed"
    assert "agent pool 'system' is not using custom VNet" in message


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
