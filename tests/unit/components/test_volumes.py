"""Containers as volumes: what the blob CSI driver is told, and what changes with a SAS."""

from __future__ import annotations

from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi_kubernetes.core import v1 as core

from components.context import BlobVolume
from components.storage.container_access import ContainerAccess, Sas
from components.storage.volumes import ContainerVolume
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


def test_a_claim_that_pods_of_others_use_goes_with_its_namespace() -> None:
    recorder = declared()[0]
    assert recorder.one(":PersistentVolumeClaim").request.deletedWith.endswith("Namespace::space")
    assert recorder.one(":PersistentVolume").request.deletedWith == ""


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
