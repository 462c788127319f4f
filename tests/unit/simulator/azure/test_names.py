from __future__ import annotations

from dataclasses import dataclass

import pytest

from simulator.azure import names
from simulator.azure.ids import parse_id
from simulator.azure.names import Answer
from tests.support import networks as net
from tests.support.arm import Arm
from tests.support.blob_account import ACCOUNT, account_body

ZONE = net.zone("privatelink.blob.core.windows.net")
BLOBS, ALIAS = "models.blob.core.windows.net", "models.privatelink.blob.core.windows.net"
PUBLIC = Answer(of=parse_id(ACCOUNT))
BEHIND_ALIAS = Answer((ALIAS,), of=parse_id(ACCOUNT))
PRIVATE = Answer((ALIAS,), "10.16.16.4", parse_id(ACCOUNT))


@dataclass
class Dns:
    arm: Arm

    def inside(self, name: str = BLOBS) -> Answer | None:
        return names.resolve(self.arm.server.world, name, parse_id(net.NETWORK))

    def outside(self, name: str = BLOBS) -> Answer | None:
        return names.resolve(self.arm.server.world, name)


@pytest.fixture
def dns(arm: Arm) -> Dns:
    net.make_network(arm)
    net.make(arm, ACCOUNT, account_body())
    net.make(arm, net.endpoint("blob"), net.endpoint_body(ACCOUNT, "blob"))
    net.make(arm, ZONE, {"location": "global"})
    return Dns(arm)


def write_record(dns: Dns) -> None:
    net.make(dns.arm, f"{net.endpoint('blob')}/privateDnsZoneGroups/default", net.group_body(ZONE))


def test_only_a_linked_network_finds_the_private_address(dns: Dns) -> None:
    write_record(dns)
    net.make(dns.arm, net.link(ZONE), net.link_body())
    assert dns.inside() == dns.inside(BLOBS.upper() + ".") == PRIVATE
    assert dns.outside() == BEHIND_ALIAS


def test_a_network_without_link_finds_the_public_address(dns: Dns) -> None:
    write_record(dns)
    assert dns.inside() == dns.outside() == BEHIND_ALIAS


def test_a_linked_zone_without_the_record_hides_the_name(dns: Dns) -> None:
    net.make(dns.arm, net.link(ZONE), net.link_body())
    assert dns.inside() is None
    assert dns.outside() == BEHIND_ALIAS


def test_a_link_may_redirect_missing_names_to_public_dns(dns: Dns) -> None:
    net.make(dns.arm, net.link(ZONE), net.link_body(resolutionPolicy="NxDomainRedirect"))
    assert dns.inside() == BEHIND_ALIAS


def test_an_account_without_an_endpoint_has_no_alias(dns: Dns) -> None:
    """A linked zone therefore does not hide public accounts."""
    net.make(dns.arm, net.link(ZONE), net.link_body())
    dns.arm.call("DELETE", net.endpoint("blob"))
    assert dns.inside() == dns.outside() == PUBLIC


@pytest.mark.parametrize("name", ["other.blob.core.windows.net", "other.azurecr.io", "aks.eastus.azmk8s.io"])
def test_unknown_azure_names_do_not_exist(dns: Dns, name: str) -> None:
    assert dns.inside(name) is dns.outside(name) is None


def test_resolves_an_alias(dns: Dns) -> None:
    write_record(dns)
    net.make(dns.arm, net.link(ZONE), net.link_body())
    assert dns.inside(ALIAS) == Answer((), "10.16.16.4", parse_id(ACCOUNT))
    assert dns.outside(ALIAS) == PUBLIC
    assert dns.outside("other.privatelink.blob.core.windows.net") is None


def test_resolves_names_outside_azure(dns: Dns) -> None:
    assert dns.inside("github.com") == dns.outside("github.com") == Answer()


def test_resolves_both_names_of_a_registry(dns: Dns) -> None:
    net.make(dns.arm, net.REGISTRY, net.REGISTRY_BODY)
    net.make_endpoint(dns.arm, "images", net.REGISTRY, "registry", net.zone("privatelink.azurecr.io"))
    registry = parse_id(net.REGISTRY)
    assert dns.inside("aiimages.azurecr.io") == Answer(("aiimages.privatelink.azurecr.io",), "10.16.16.6", registry)
    data = "aiimages.eastus.data.privatelink.azurecr.io"
    assert dns.inside("aiimages.eastus.data.azurecr.io") == Answer((data,), "10.16.16.5", registry)
    assert dns.outside("aiimages.eastus.data.azurecr.io") == Answer((data,), of=registry)
