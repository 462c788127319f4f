"""The NFS provisioner: what its chart is told, and who comes after it."""

from __future__ import annotations

from typing import Any

from config.data.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from operators import nfs_subdir_external_provisioner
from operators.nfs_subdir_external_provisioner import NfsProvisionerSettings
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import T4, load

ON = {"enabled": True, "server": "10.1.0.4", "path": "/exports/ai"}
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}


def deployed(keys: dict[str, Any], azure: Azure | None = None, name: str = "test") -> Recorder:
    return program(keys, azure or Azure(), name, secret=["workloadOptions"])


def test_its_chart_is_told_of_server_and_class_and_keeps_folders_as_it_does_by_itself() -> None:
    assert load({"vmSku": T4}).shared_class is None, "it is off unless it is asked for"
    made = nfs_subdir_external_provisioner.values(NfsProvisionerSettings(server="10.1.0.4", path="/exports/ai"))
    assert made == {
        "nfs": {"server": "10.1.0.4", "path": "/exports/ai"},
        "storageClass": {
            "name": "nfs-client-pokprod",
            "provisionerName": "k8s-sigs.io/pokprod-nfs-subdir-external-provisioner",
        },
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
    }


def test_shared_files_are_of_its_class_and_come_after_it_and_another_stack_has_the_class_too() -> None:
    platform = deployed(
        {"vmSku": T4, "operators": {"nfsSubdirExternalProvisioner": {**ON, "storageClass": "fast"}}} | NOTEBOOK
    )
    assert platform.one("helm.sh/v3:Release", nfs_subdir_external_provisioner.NAME).inputs["name"] == "pokprod"
    claim = platform.one(":PersistentVolumeClaimPatch")
    assert claim.inputs["spec"]["storageClassName"] == "fast"
    assert claim.inputs["metadata"]["name"] == "jupyterlab-fast"
    assert f"kubernetes:helm.sh/v3:Release {nfs_subdir_external_provisioner.NAME}" in claim.dependencies
    consumer = deployed({"platformStack": "dev", **NOTEBOOK}, Azure(stacks={"dev": platform}), "mine")
    assert consumer.one(":PersistentVolumeClaimPatch").inputs["spec"]["storageClassName"] == "fast"
    assert not [*platform.names(":StorageClass"), *consumer.names(":StorageClass")]
