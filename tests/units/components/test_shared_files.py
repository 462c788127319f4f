"""Shared files by NFS: an account that the network alone reaches, the class of its shares, and who has them."""

from __future__ import annotations

from typing import Any

from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import T4

SECRET = ["workloadOptions"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
OWN: dict[str, Any] = {"vmSku": T4, "network": {"addressSpace": "10.0.0.0/16"}}
BY_NFS = {"storage": {"sharedFiles": "nfs"}}


def deployed(**keys: Any) -> Recorder:
    return program({**OWN, **NOTEBOOK, **BY_NFS, **keys}, Azure(), secret=SECRET)


def test_the_users_zone_takes_the_record() -> None:
    zone = f"{ZONES}/privatelink.file.core.windows.net"
    subnets = {"nodeSubnet": f"{HUB}/subnets/nodes", "endpointSubnet": f"{HUB}/subnets/endpoints"}
    recorder = deployed(network={"id": HUB, **subnets, "outbound": "loadBalancer", "zones": [zone]})
    (records,) = recorder.one(":PrivateDnsZoneGroup").inputs["privateDnsZoneConfigs"]
    assert records["privateDnsZoneId"] == zone
    assert not recorder.names(":PrivateZone") + recorder.names(":VirtualNetworkLink")


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
