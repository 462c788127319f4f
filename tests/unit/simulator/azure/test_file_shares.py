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
    net.make_network(arm)
    net.make(arm, OTHER, net.network_body("10.32.0.0/16"))
    net.make(arm, FILES, files_body())
    net.make_endpoint(arm, "file", FILES, "file", ZONE)
    return arm


def mount(arm: Arm, network: str = net.NETWORK) -> str | None:
    where = parse_id(network) if network else None
    return file_shares.mount_refusal(arm.server.world, SERVER, EXPORT, where)


def test_a_file_account_has_no_blobs(network: Arm) -> None:
    assert network.get(FILES)["properties"]["primaryEndpoints"] == {"file": "https://files1.file.core.windows.net/"}
    assert network.put(f"{FILES}/blobServices/default/containers/data", {"properties": {}}).status_code == 404
    assert "files1" not in network.blobs.accounts


def test_mounts_a_share_in_the_network_of_its_endpoint(network: Arm) -> None:
    assert mount(network) is None


@pytest.mark.parametrize("other", ["", OTHER])
def test_denies_a_mount_by_the_public_address(network: Arm, other: str) -> None:
    assert mount(network, other) == DENIED


def test_a_mount_fails_if_the_linked_zone_lacks_the_name(network: Arm) -> None:
    network.call("DELETE", f"{net.endpoint('file')}/privateDnsZoneGroups/default")
    network.done()
    assert mount(network) == f"mount.nfs: Failed to resolve server {SERVER}: Name or service not known"


def test_a_mount_times_out_at_an_address_of_another_network(network: Arm) -> None:
    net.make(network, net.link(ZONE, "other"), net.link_body(OTHER))
    assert mount(network, OTHER) == "mount.nfs: Connection timed out"


def test_denies_a_mount_with_secure_transfer(network: Arm) -> None:
    net.make(network, FILES, files_body(secure=True))
    assert mount(network) == DENIED


def create_share(arm: Arm, group: str = "rg", account: str = "files1") -> str | None:
    cluster = arm.server.world.store.get(parse_id(CLUSTER))
    assert cluster
    return file_shares.refusal(arm.server.world, cluster, group, account, nfs=True)


def test_the_control_plane_needs_a_role_to_create_shares(network: Arm) -> None:
    net.make(network, CLUSTER, cluster_body())
    error = create_share(network) or ""
    assert "ERROR CODE: AuthorizationFailed" in error
    assert "'Microsoft.Storage/storageAccounts/fileServices/shares/read'" in error
    cluster = network.server.world.store.get(parse_id(CLUSTER))
    assert cluster
    principal, _ = identities(cluster)
    network.assign(STORAGE_ACCOUNT_CONTRIBUTOR, FILES, principal)
    assert create_share(network) is None


@pytest.mark.parametrize(("group", "account"), [("rg", "gone"), ("other", "files1"), ("", "files1")])
def test_rejects_a_share_without_its_account(network: Arm, group: str, account: str) -> None:
    """Without a group, the driver uses the node resource group."""
    net.make(network, CLUSTER, cluster_body())
    assert "ERROR CODE: ResourceNotFound" in (create_share(network, group, account) or "")
