"""Containers as volumes: what the blob CSI driver is told, and what changes with a SAS."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from google.protobuf import json_format
from pulumi_kubernetes.core import v1 as core

from components.container_access import ContainerAccess, Sas
from components.context import BlobVolume
from components.volumes import ContainerVolume
from config.schema.storage import ContainerSettings
from tests.support.mocked_azure import SECRET, WINDOW
from tests.support.mocks import Recorder, Registered, deploy

SAS = "sp=rl&sig=abc"


def access(*, sas: str = SAS, generation: str = "a1b2", hns: bool = False, **settings: Any) -> ContainerAccess:
    chosen = ContainerSettings.model_validate(settings)
    return ContainerAccess(
        account="account",
        container="olmo-data",
        hierarchical_namespace=hns,
        settings=chosen,
        generation=generation,
        url="https://account.blob.core.windows.net/olmo-data",
        sas=Sas(
            rotation="1",
            **WINDOW,
            mount=pulumi.Output.secret(sas),
            upload=pulumi.Output.secret("sp=rcwl&sig=def") if chosen.upload else None,
        ),
        scope="/containers/olmo-data",
    )


def declared(namespace: str = "ai", **given: Any) -> tuple[Recorder, BlobVolume]:
    """What is registered, and the volume as workloads get it."""
    volumes: list[BlobVolume] = []

    def declare() -> None:
        space = core.Namespace("space", metadata={"name": namespace})
        made = ContainerVolume("olmo-data", access(**given), namespace=namespace, space=space, hooks=None)
        volumes.append(made.volume)
        pulumi.export("annotations", dict(volumes[0].annotations))

    return deploy(declare), volumes[0]


def contents(secret: Registered) -> dict[str, str]:
    """What a Secret holds, which the mocks would not tell."""
    assert secret.inputs["stringData"] == SECRET
    held: dict[str, str] = json_format.MessageToDict(secret.request.object)["stringData"]["value"]
    return held


def test_the_secret_has_the_keys_that_the_driver_reads_a_sas_from() -> None:
    secret = declared()[0].one(":Secret")
    assert contents(secret) == {"azurestorageaccountname": "account", "azurestorageaccountsastoken": SAS}
    assert secret.inputs["metadata"] == {"name": "olmo-data-sas-a1b2", "namespace": "ai"}


def test_the_volume_tells_the_driver_all_it_needs() -> None:
    spec = declared()[0].one(":PersistentVolume").inputs["spec"]
    assert spec["csi"] == {
        "driver": "blob.csi.azure.com",
        "volumeHandle": "account_ai-olmo-data-a1b2",
        "nodeStageSecretRef": {"name": "olmo-data-sas-a1b2", "namespace": "ai"},
        "volumeAttributes": {
            "protocol": "fuse2",
            "storageAccount": "account",
            "containerName": "olmo-data",
            "AzureStorageAuthType": "SAS",
        },
    }
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["mountOptions"][0] == "-o allow_other"


def test_volume_and_claim_are_for_each_other_only() -> None:
    recorder, volume = declared(sizeGib=8192)
    found, claim = recorder.one(":PersistentVolume").inputs, recorder.one(":PersistentVolumeClaim").inputs
    assert found["spec"]["claimRef"] == {"namespace": "ai", "name": "olmo-data-a1b2"} == {**claim["metadata"]}
    assert claim["spec"]["volumeName"] == found["metadata"]["name"] == "ai-olmo-data-a1b2"
    assert claim["spec"]["storageClassName"] == found["spec"]["storageClassName"]
    assert claim["spec"]["resources"]["requests"] == found["spec"]["capacity"] == {"storage": "8192Gi"}


def test_a_claim_that_pods_of_others_use_goes_with_its_namespace() -> None:
    recorder = declared()[0]
    assert recorder.one(":PersistentVolumeClaim").request.deletedWith.endswith("Namespace::space")
    assert recorder.one(":PersistentVolume").request.deletedWith == ""


@pytest.mark.parametrize(("permissions", "mode"), [("rl", "ReadOnlyMany"), ("racwdl", "ReadWriteMany")])
def test_what_the_sas_cannot_write_is_mounted_read_only(permissions: str, mode: str) -> None:
    recorder, volume = declared(permissions=permissions)
    assert recorder.one(":PersistentVolume").inputs["spec"]["accessModes"] == [mode]
    assert recorder.one(":PersistentVolumeClaim").inputs["spec"]["accessModes"] == [mode]
    assert volume.read_only is (mode == "ReadOnlyMany")


def test_a_hierarchical_namespace_is_mounted_as_one() -> None:
    assert "--use-adls=true" in declared(hns=True)[0].one(":PersistentVolume").inputs["spec"]["mountOptions"]


def test_two_namespaces_have_volumes_of_their_own() -> None:
    names = {declared(namespace)[0].one(":PersistentVolume").inputs["metadata"]["name"] for namespace in ("ai", "olmo")}
    assert len(names) == 2


def test_another_sas_is_another_volume_beside_the_old_one() -> None:
    kinds = (":Secret", ":PersistentVolume", ":PersistentVolumeClaim")
    first, second = declared(generation="0000")[0], declared(generation="1111")[0]
    for kind in kinds:
        assert first.one(kind).inputs["metadata"]["name"] != second.one(kind).inputs["metadata"]["name"]


def test_pods_are_told_by_a_digest_that_is_no_secret() -> None:
    first, same, other = (declared(sas=sas)[0].outputs["annotations"] for sas in ("sig=1", "sig=1", "sig=2"))
    assert first == same != other
    assert list(first) == ["sas.ai-on-aks/olmo-data"]
    assert "sig" not in str(first)
    assert SECRET not in str(first)


def test_uploads_have_a_secret_of_their_own_where_asked_for() -> None:
    recorder, volume = declared(upload=True)
    secret = recorder.one(":Secret", "upload-olmo-data")
    url = "https://account.blob.core.windows.net/olmo-data"
    assert contents(secret) == {"url": url, "sas": "sp=rcwl&sig=def"}
    assert volume.upload_secret is not None
    assert declared()[1].upload_secret is None


def test_another_stack_gets_the_same_from_outputs() -> None:
    found: list[list[str]] = []

    def declare() -> None:
        given = access(upload=True, permissions="racwdl", sizeGib=5)
        again = ContainerAccess.of(given.plain(), pulumi.Output.all(**given.secrets()))
        assert again.settings == given.settings
        assert again.plain() == given.plain()
        assert again.sas is not None
        assert again.sas.upload is not None
        pulumi.Output.all(again.sas.mount, again.sas.upload).apply(found.append)

    deploy(declare)
    assert found == [[SAS, "sp=rcwl&sig=def"]]
