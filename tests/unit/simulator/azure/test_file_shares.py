"""An account of files in a network: who makes shares in it, and from where they are mounted."""

from __future__ import annotations

import pytest

from simulator.azure import file_shares
from simulator.azure.ids import parse_id
from simulator.azure.types.managed_cluster.rules import identities
from tests.support import networks as net
from tests.support.arm import CLUSTER, GROUP, Arm, cluster_body
from tests.support.blob_account import account_body

FILES = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/files1"
SERVER = "files1.privatelink.file.core.windows.net"
EXPORT = "/files1/pvcn-1"
ZONE = net.zone("privatelink.file.core.windows.net")
OTHER = net.NETWORK.replace("/ai", "/other")
DENIED = f"mount.nfs: access denied by server while mounting {SERVER}:{EXPORT}"
STORAGE_ACCOUNT_CONTRIBUTOR = "17d1049b-9a84-46fb-8f53-869881c3d3ab"


def files_body(sku: str = "Premium_LRS", *, secure: bool = False) -> net.Body:
    body = account_body(publicNetworkAccess="Disabled", supportsHttpsTrafficOnly=secure)
    return body | {"kind": "FileStorage", "sku": {"name": sku}}


@pytest.fixture
def network(arm: Arm) -> Arm:
    """An account of files with its endpoint in the network `ai`, whose zone is linked there, and another network."""
    net.make_network(arm)
    net.make(arm, OTHER, net.network_body("10.32.0.0/16"))
    net.make(arm, FILES, files_body())
    net.make_endpoint(arm, "file", FILES, "file", ZONE)
    return arm


def mounting(arm: Arm, network: str = net.NETWORK) -> str | None:
    where = parse_id(network) if network else None
    return file_shares.mount_refusal(arm.server.world, SERVER, EXPORT, where)


def test_it_has_files_and_no_blobs(network: Arm) -> None:
    assert network.get(FILES)["properties"]["primaryEndpoints"] == {"file": "https://files1.file.core.windows.net/"}
    assert network.put(f"{FILES}/blobServices/default/containers/data", {"properties": {}}).status_code == 404
    assert "files1" not in network.blobs.accounts


def test_a_share_is_mounted_in_the_network_of_its_endpoint(network: Arm) -> None:
    assert mounting(network) is None


@pytest.mark.parametrize("elsewhere", ["", OTHER])
def test_elsewhere_the_name_leads_to_the_public_address_which_lets_nobody_in(network: Arm, elsewhere: str) -> None:
    assert mounting(network, elsewhere) == DENIED


def test_without_the_link_too(network: Arm) -> None:
    network.call("DELETE", net.link(ZONE))
    network.done()
    assert mounting(network) == DENIED


def test_a_linked_zone_that_lacks_the_name(network: Arm) -> None:
    network.call("DELETE", f"{net.endpoint('file')}/privateDnsZoneGroups/default")
    network.done()
    assert mounting(network) == f"mount.nfs: Failed to resolve server {SERVER}: Name or service not known"


def test_an_address_of_another_network_does_not_answer(network: Arm) -> None:
    net.make(network, net.link(ZONE, "other"), net.link_body(OTHER))
    assert mounting(network, OTHER) == "mount.nfs: Connection timed out"


def test_secure_transfer_is_in_the_way(network: Arm) -> None:
    net.make(network, FILES, files_body(secure=True))
    assert mounting(network) == DENIED


def making(arm: Arm, group: str = "rg", account: str = "files1") -> str | None:
    cluster = arm.server.world.store.get(parse_id(CLUSTER))
    assert cluster
    return file_shares.refusal(arm.server.world, cluster, group, account, nfs=True)


def test_the_control_plane_makes_shares_with_a_role_on_the_account(network: Arm) -> None:
    net.make(network, CLUSTER, cluster_body())
    told = making(network) or ""
    assert "ERROR CODE: AuthorizationFailed" in told
    assert "'Microsoft.Storage/storageAccounts/fileServices/shares/read'" in told
    cluster = network.server.world.store.get(parse_id(CLUSTER))
    assert cluster
    principal, _ = identities(cluster)
    network.assign(STORAGE_ACCOUNT_CONTRIBUTOR, FILES, principal)
    assert making(network) is None


@pytest.mark.parametrize(("group", "account"), [("rg", "gone"), ("other", "files1"), ("", "files1")])
def test_an_account_that_is_not_there_in_that_group(network: Arm, group: str, account: str) -> None:
    """Without a group, the driver looks in that of the nodes."""
    net.make(network, CLUSTER, cluster_body())
    assert "ERROR CODE: ResourceNotFound" in (making(network, group, account) or "")
