"""The machine to log in at, its interface and its bastion, and what Azure refuses of them."""

from __future__ import annotations

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.virtual_machine.rules import principals
from tests.support import networks as net
from tests.support.arm import Arm
from tests.support.blob_account import IDENTITY


@pytest.fixture
def network(arm: Arm) -> Arm:
    """A network with room for a machine and a bastion."""
    net.make_network(arm)
    net.make(arm, net.GATEWAY, net.gateway_body())  # whose address is for the bastion
    net.make(arm, net.BASTION_SUBNET, net.subnet_body("10.16.17.0/26"))
    net.make(arm, net.INTERFACE, net.interface_body())
    return arm


def test_a_machine_and_its_interface_know_each_other(network: Arm) -> None:
    net.make(network, net.MACHINE, net.machine_body())
    assert network.get(net.INTERFACE)["properties"]["virtualMachine"] == {"id": net.MACHINE}
    status, code, message = network.refusal(network.call("DELETE", net.INTERFACE))
    assert (status, code) == (400, "NicInUse")
    assert f"is used by existing resource {net.MACHINE}." in message
    other = net.MACHINE.replace("/jump", "/other")
    assert network.refusal(network.put(other, net.machine_body()))[1] == "NicInUse"
    for path in (net.MACHINE, net.INTERFACE):
        assert network.call("DELETE", path).status_code == 200


def test_what_runs_at_the_first_boot_is_not_shown(network: Arm) -> None:
    body = net.machine_body()
    body["properties"]["osProfile"]["customData"] = "I2Nsb3VkLWNvbmZpZw=="
    shown = net.make(network, net.MACHINE, body)["properties"]["osProfile"]
    assert shown["computerName"] == "jump"
    assert "customData" not in shown


def test_a_machine_signs_in_as_itself_and_by_identities_of_ones_own(network: Arm) -> None:
    own = net.make(network, IDENTITY, {"location": "eastus"})["properties"]["principalId"]
    both = {"type": "SystemAssigned, UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
    shown = net.make(network, net.MACHINE, net.machine_body() | {"identity": both})["identity"]
    assert shown["userAssignedIdentities"][IDENTITY]["principalId"] == own
    world = network.server.world
    machine = world.store.get(parse_id(net.MACHINE))
    assert machine is not None
    assert principals(world, machine) == [shown["principalId"], own]


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("garbage", "LinkedInvalidPropertyId"),
        (IDENTITY, "FailedIdentityOperation"),
        (net.NETWORK, "FailedIdentityOperation"),
    ],
)
def test_an_identity_of_a_machine_is_there(network: Arm, named: str, code: str) -> None:
    identity = {"type": "UserAssigned", "userAssignedIdentities": {named: {}}}
    answer = network.put(net.MACHINE, net.machine_body() | {"identity": identity})
    assert network.refusal(answer)[:2] == (400, code)
    assert network.call("GET", net.MACHINE).status_code == 404


def test_a_machine_of_the_same_name_is_another_one(network: Arm) -> None:
    first = net.make(network, net.MACHINE, net.machine_body())
    network.call("DELETE", net.MACHINE)
    second = net.make(network, net.MACHINE, net.machine_body())
    assert first["identity"]["principalId"] != second["identity"]["principalId"]


def test_sizes_that_the_region_does_not_have(network: Arm) -> None:
    answer = network.put(net.MACHINE, net.machine_body(size="Standard_D2"))
    status, code, message = network.refusal(answer)
    assert (status, code) == (400, "InvalidParameter")
    assert message.startswith("The value Standard_D2 provided for the VM size is not valid")
    assert "Standard_D2s_v3" in message


def test_a_machine_needs_its_interface(network: Arm) -> None:
    answer = network.put(net.MACHINE, net.machine_body(f"{net.INTERFACE}-2"))
    assert network.refusal(answer)[1] == "InvalidResourceReference"


def test_a_bastion_takes_its_subnet_and_its_address(network: Arm) -> None:
    assert net.make(network, net.BASTION, net.bastion_body(enableTunneling=True))["properties"]["dnsName"]
    part = f"{net.BASTION}/bastionHostIpConfigurations/only"
    assert network.get(net.ADDRESS)["properties"]["ipConfiguration"] == {"id": part}
    for path, code in (
        (net.ADDRESS, "PublicIPAddressCannotBeDeleted"),
        (net.BASTION_SUBNET, "InUseSubnetCannotBeDeleted"),
    ):
        _, found, message = network.refusal(network.call("DELETE", path))
        assert found == code
        assert part in message


def test_a_bastions_subnet_has_its_name_and_its_size(network: Arm) -> None:
    wrong = network.put(net.BASTION, net.bastion_body(subnet=net.ENDPOINTS))
    assert "A bastion needs a subnet named AzureBastionSubnet, of /26 or larger" in network.refusal(wrong)[2]
    net.make(network, net.BASTION_SUBNET, net.subnet_body("10.16.17.0/27"))
    assert "of /26 or larger" in network.refusal(network.put(net.BASTION, net.bastion_body()))[2]


def test_native_clients_need_a_standard_bastion(network: Arm) -> None:
    basic = network.put(net.BASTION, net.bastion_body(sku="Basic", enableTunneling=True))
    assert "needs a bastion of the sku Standard" in network.refusal(basic)[2]


def test_a_machine_without_a_disk_in_its_request_has_azures(network: Arm) -> None:
    """As in a recorded run of azure-native's tests (tests/contract/recordings/azure_native.yaml, run `machine`)."""
    body = net.machine_body()
    del body["properties"]["storageProfile"]["osDisk"]
    shown = net.make(network, net.MACHINE, body)["properties"]["storageProfile"]["osDisk"]
    assert (shown["createOption"], shown["caching"], shown["deleteOption"]) == ("FromImage", "ReadWrite", "Detach")
