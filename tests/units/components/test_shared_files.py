"""Shared files by NFS: an account that the network alone reaches, the class of its shares, and who has them."""

from __future__ import annotations

from typing import Any

import pytest

from components.roles import STORAGE_ACCOUNT_CONTRIBUTOR
from components.shared_files import storage_class
from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import PRINCIPAL, Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import T4

SECRET = ["workloadOptions"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
OWN: dict[str, Any] = {"vmSku": T4, "network": {"addressSpace": "10.0.0.0/16"}}
BY_NFS = {"storage": {"sharedFiles": "nfs"}}
PRIVATE = {"network": {"addressSpace": "10.0.0.0/16", "private": True}, "registry": {"sku": "Premium"}}
ACCOUNT = "aionakstest0files"


def deployed(**keys: Any) -> Recorder:
    return program({**OWN, **NOTEBOOK, **BY_NFS, **keys}, Azure(), secret=SECRET)


def test_the_class_is_of_shares_in_the_stacks_own_account_at_its_private_endpoint() -> None:
    made = storage_class("files1", "ai")
    assert made["provisioner"] == "file.csi.azure.com"
    assert made["parameters"] == {
        "protocol": "nfs",
        "skuName": "Premium_LRS",
        "resourceGroup": "ai",
        "storageAccount": "files1",
        "networkEndpointType": "privateEndpoint",
    }


@pytest.mark.parametrize("network", [{}, PRIVATE])
def test_nobody_reaches_the_account_but_by_its_endpoint(network: dict[str, Any]) -> None:
    """NFS is no secure transfer, and has no login: so no key opens the account either."""
    recorder = deployed(**network)
    account = recorder.one(":StorageAccount").inputs
    assert (account["kind"], account["sku"]["name"]) == ("FileStorage", "Premium_LRS")
    assert account["publicNetworkAccess"] == "Disabled"
    closed = ("enableHttpsTrafficOnly", "allowSharedKeyAccess", "allowBlobPublicAccess")
    assert [account[key] for key in closed] == [False, False, False]
    endpoint = recorder.one(":PrivateEndpoint", "endpoint-file").inputs
    (connection,) = endpoint["privateLinkServiceConnections"]
    assert connection["groupIds"] == ["file"]
    zone = recorder.one(":PrivateZone", "zone-file").inputs["privateZoneName"]
    assert zone == "privatelink.file.core.windows.net"


def test_a_public_stack_keeps_its_other_doors_open() -> None:
    recorder = deployed(storage={"sharedFiles": "nfs", "containers": {"data": {}}})
    assert recorder.names(":PrivateEndpoint") == ["endpoint-file"]
    assert "publicNetworkAccess" not in recorder.one(":StorageAccount", "storage-account").inputs
    assert recorder.one("containerregistry:Registry").inputs.get("publicNetworkAccess", "Enabled") == "Enabled"


def test_the_users_zone_takes_the_record() -> None:
    zone = f"{ZONES}/privatelink.file.core.windows.net"
    subnets = {"nodeSubnet": f"{HUB}/subnets/nodes", "endpointSubnet": f"{HUB}/subnets/endpoints"}
    recorder = deployed(network={"id": HUB, **subnets, "outbound": "loadBalancer", "zones": [zone]})
    (records,) = recorder.one(":PrivateDnsZoneGroup").inputs["privateDnsZoneConfigs"]
    assert records["privateDnsZoneId"] == zone
    assert not recorder.names(":PrivateZone") + recorder.names(":VirtualNetworkLink")


def test_the_control_plane_makes_shares_there_by_a_role_on_that_account_alone() -> None:
    recorder = deployed()
    role = recorder.one(":RoleAssignment", "cluster-files").inputs
    assert role["principalId"] == PRINCIPAL
    assert role["roleDefinitionId"].endswith(STORAGE_ACCOUNT_CONTRIBUTOR)
    assert ACCOUNT in role["scope"]
    waits = {name.split()[-1] for name in recorder.one(":StorageClass").dependencies}
    assert {"cluster-files", "names-file", "link-file"} <= waits


def test_the_account_needs_no_cluster_and_is_kept() -> None:
    recorder = deployed()
    account = recorder.one(":StorageAccount")
    assert not [name for name in account.dependencies if "ManagedCluster" in name]


def test_the_notebooks_claim_is_of_that_class_and_no_other_is_made() -> None:
    """Under another name than a claim of SMB, which a pod may still have when this one comes."""
    recorder = deployed()
    assert recorder.names(":StorageClass") == ["shared-files"]
    claim = recorder.one(":PersistentVolumeClaimPatch").inputs
    assert claim["spec"]["storageClassName"] == "shared-files"
    (work,) = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in recorder.one(":Deployment").inputs["spec"]["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert work == claim["metadata"]["name"] == "jupyterlab-nfs"


def test_by_smb_the_notebook_has_the_class_and_the_claim_that_it_had() -> None:
    recorder = program({**OWN, **NOTEBOOK}, Azure(), secret=SECRET)
    assert recorder.names(":StorageClass") == ["jupyterlab"]
    assert recorder.one(":PersistentVolumeClaimPatch").inputs["metadata"]["name"] == "jupyterlab"
    assert not recorder.names(":PrivateEndpoint")


def test_a_stack_on_the_platform_has_the_platforms_class() -> None:
    platform = program({**OWN, **BY_NFS}, Azure())
    lodger = program({"platformStack": "dev", **NOTEBOOK}, Azure(stacks={"dev": platform}), "mine", secret=SECRET)
    assert lodger.one(":PersistentVolumeClaimPatch").inputs["spec"]["storageClassName"] == "shared-files"
    assert not lodger.names(":StorageClass")


def test_a_class_that_somebody_else_has_made_is_read_from_the_cluster_before_claims_are_of_it() -> None:
    recorder = program({**OWN, **NOTEBOOK, "storage": {"sharedClass": "fast"}}, Azure(), secret=SECRET)
    claim = recorder.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == "fast"
    assert claim.inputs["metadata"]["name"] == "jupyterlab-fast"
    assert "kubernetes:storage.k8s.io/v1:StorageClass storage.sharedClass" in claim.dependencies
    assert not recorder.names(":StorageClass")


def test_a_class_of_akss_is_there_for_certain() -> None:
    recorder = program({**OWN, **NOTEBOOK, "storage": {"sharedClass": "azurefile-csi"}}, Azure(), secret=SECRET)
    claim = recorder.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == "azurefile-csi"
    assert not [each for each in claim.dependencies if "StorageClass" in each]


def test_a_stack_on_the_platform_reads_it_too() -> None:
    platform = program({**OWN, "storage": {"sharedClass": "fast"}}, Azure())
    lodger = program({"platformStack": "dev", **NOTEBOOK}, Azure(stacks={"dev": platform}), "mine", secret=SECRET)
    claim = lodger.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == "fast"
    assert "kubernetes:storage.k8s.io/v1:StorageClass storage.sharedClass" in claim.dependencies
