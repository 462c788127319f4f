"""Shared files by NFS: an account that the network alone reaches, the class of its shares, and who has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lookups import HUB, ZONES
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import T4

SECRET = ["workloadOptions"]
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
OWN: dict[str, Any] = {"vmSku": T4, "network": {"addressSpace": "10.0.0.0/16"}}
READ = "kubernetes:storage.k8s.io/v1:StorageClass storage.sharedClass"
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


@pytest.mark.parametrize("guest", [False, True])
@pytest.mark.parametrize(
    ("storage", "name", "waits"),
    [({"sharedFiles": "nfs"}, "shared-files", []), ({"sharedClass": "fast"}, "fast", [READ]),
     ({"sharedClass": "azurefile-csi"}, "azurefile-csi", [])],
    ids=["made", "somebody else's", "AKS's"],
)  # fmt: skip
def test_claims_are_of_the_platforms_class_which_is_read_if_somebody_else_makes_it(
    storage: dict[str, str], name: str, waits: list[str], *, guest: bool
) -> None:
    stack: dict[str, Any] = {**OWN, "storage": storage}
    if guest:
        azure = Azure(stacks={"dev": program(stack, Azure())})
        found = program({"platformStack": "dev", **NOTEBOOK}, azure, "mine", secret=SECRET)
    else:
        found = program({**stack, **NOTEBOOK}, Azure(), secret=SECRET)
    claim = found.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == name
    assert [each for each in claim.dependencies if each == READ] == waits
    assert found.names(":StorageClass") == (["shared-files"] if name == "shared-files" and not guest else [])
