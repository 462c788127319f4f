from __future__ import annotations

from typing import Any

from tests.support.arm import GROUP, Arm

Body = dict[str, Any]
_NETWORKS = f"{GROUP}/providers/Microsoft.Network"
NETWORK = f"{_NETWORKS}/virtualNetworks/ai"
NODES, ENDPOINTS = f"{NETWORK}/subnets/nodes", f"{NETWORK}/subnets/endpoints"
BASTION_SUBNET = f"{NETWORK}/subnets/AzureBastionSubnet"
ADDRESS = f"{_NETWORKS}/publicIPAddresses/out"
GATEWAY = f"{_NETWORKS}/natGateways/out"
ROUTES = f"{_NETWORKS}/routeTables/out"
INTERFACE = f"{_NETWORKS}/networkInterfaces/jump"
MACHINE = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/jump"
BASTION = f"{_NETWORKS}/bastionHosts/jump"
REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/aiimages"
REGISTRY_BODY = {"location": "eastus", "sku": {"name": "Premium"}}


def zone(name: str) -> str:
    return f"{_NETWORKS}/privateDnsZones/{name}"


def link(of: str, name: str = "ai") -> str:
    return f"{of}/virtualNetworkLinks/{name}"


def endpoint(name: str) -> str:
    return f"{_NETWORKS}/privateEndpoints/{name}"


def placed(properties: Body, **more: Any) -> Body:
    return {"location": "eastus", "properties": properties, **more}


def network_body(*prefixes: str) -> Body:
    return placed({"addressSpace": {"addressPrefixes": list(prefixes or ("10.16.0.0/16",))}})


def subnet_body(prefix: str, **properties: Any) -> Body:
    return {"properties": {"addressPrefix": prefix, **properties}}


def gateway_body(*addresses: str) -> Body:
    return placed({"publicIpAddresses": [{"id": address} for address in addresses]}, sku={"name": "Standard"})


def routes_body(hop: str = "VirtualAppliance", prefix: str = "0.0.0.0/0") -> Body:
    route = {"addressPrefix": prefix, "nextHopType": hop}
    if hop == "VirtualAppliance":
        route["nextHopIpAddress"] = "10.100.0.4"
    return placed({"routes": [{"name": "out", "properties": route}]})


def address_body() -> Body:
    return placed({"publicIPAllocationMethod": "Static"}, sku={"name": "Standard"})


def link_body(network: str = NETWORK, **properties: Any) -> Body:
    return {"location": "global", "properties": {"virtualNetwork": {"id": network}, **properties}}


def endpoint_body(service: str, group: str, subnet: str = ENDPOINTS) -> Body:
    asked = {"name": group, "properties": {"privateLinkServiceId": service, "groupIds": [group]}}
    return placed({"subnet": {"id": subnet}, "privateLinkServiceConnections": [asked]})


def group_body(*zones: str) -> Body:
    named = [
        {"name": name.rpartition("/")[2].replace(".", "-"), "properties": {"privateDnsZoneId": name}} for name in zones
    ]
    return {"properties": {"privateDnsZoneConfigs": named}}


def interface_body(subnet: str = ENDPOINTS) -> Body:
    return placed({"ipConfigurations": [{"name": "only", "properties": {"subnet": {"id": subnet}}}]})


def machine_body(interface: str = INTERFACE, size: str = "Standard_D2s_v3") -> Body:
    login = {"publicKeys": [{"path": "/home/ai/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}]}
    properties = {
        "hardwareProfile": {"vmSize": size},
        "networkProfile": {"networkInterfaces": [{"id": interface}]},
        "osProfile": {"adminUsername": "ai", "computerName": "jump", "linuxConfiguration": {"ssh": login}},
        "storageProfile": {
            "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server"},
            "osDisk": {"createOption": "FromImage"},
        },
    }
    return placed(properties, identity={"type": "SystemAssigned"})


def bastion_body(
    subnet: str = BASTION_SUBNET, address: str = ADDRESS, sku: str = "Standard", **properties: Any
) -> Body:
    asked = {"name": "only", "properties": {"subnet": {"id": subnet}, "publicIPAddress": {"id": address}}}
    return placed({"ipConfigurations": [asked], **properties}, sku={"name": sku})


def make(arm: Arm, path: str, body: Body) -> Body:
    answer = arm.put(path, body)
    assert answer.status_code in (200, 201, 202), answer.text
    arm.done()
    return arm.get(path)


def make_endpoint(arm: Arm, name: str, service: str, group: str, of: str, *, recorded: bool = True) -> None:
    """Creates a private endpoint and the zone `of`, linked to the network, and a zone group if `recorded`."""
    make(arm, endpoint(name), endpoint_body(service, group))
    make(arm, of, {"location": "global"})
    make(arm, link(of), link_body())
    if recorded:
        make(arm, f"{endpoint(name)}/privateDnsZoneGroups/default", group_body(of))


def make_network(arm: Arm) -> None:
    make(arm, GROUP, {"location": "eastus"})
    make(arm, NETWORK, network_body())
    make(arm, ADDRESS, address_body())
    make(arm, GATEWAY, gateway_body(ADDRESS))
    make(arm, NODES, subnet_body("10.16.0.0/20", natGateway={"id": GATEWAY}))
    make(arm, ENDPOINTS, subnet_body("10.16.16.0/24"))
