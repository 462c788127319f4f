from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.data.storage_classes import aks_classes
from config.rules.cost import hourly_cost
from simulator.cluster import addons
from tests.support.case_files import case_table
from tests.support.settings import SECRET, load, platform, problems
from tests.support.sizes import H100

OWN: dict[str, Any] = {"vmSku": H100, "network": {"addressSpace": "10.0.0.0/16"}}
PRIVATE: dict[str, Any] = {
    "vmSku": H100,
    "network": {"addressSpace": "10.0.0.0/16", "private": True},
    "registry": {"sku": "Premium"},
}
BY_NFS = {"storage": {"sharedFiles": "nfs"}}


@case_table(__file__, "entrances")
def test_storage_and_private_endpoints_of_shared_files(
    stack: dict[str, Any], kept_on: str, entrances: list[str]
) -> None:
    settings = load(stack)
    assert settings.shared_files == kept_on
    assert list(settings.entrances()) == entrances
    paid = hourly_cost(settings, {}).output()["resources"].get("private endpoint", 0)
    assert paid == pytest.approx(0.01 * len(entrances))


def test_protect_also_applies_to_the_account_of_shared_files() -> None:
    storage = {"sharedFiles": "nfs", "protect": False, "accounts": {"input": {"containers": {"data": {}}}}}
    assert load(OWN | {"storage": storage}).storage.protect is False


@pytest.mark.parametrize(("shared_platform", "kept_on"), [({"vmSku": H100}, "smb"), (PRIVATE | BY_NFS, "nfs")])
def test_a_consumer_stack_uses_the_storage_of_its_platform(shared_platform: dict[str, Any], kept_on: str) -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook"}
    assert load(consumer, name="mine", others={"dev": platform(shared_platform)}).shared_files == kept_on


def test_rejects_a_notebook_on_a_platform_without_shared_files() -> None:
    password = {"jupyterlab": {"password": "open-sesame"}}
    consumer = {"platformStack": "dev", "workloads": "jupyterlab", "workloadOptions": password}
    others = {"dev": platform(PRIVATE)}
    (problem,) = problems(consumer, name="mine", others=others, known=workloads.find(), secret=SECRET)
    assert str(problem).startswith(
        "storage.sharedFiles of stack dev is none, but workload jupyterlab needs shared files"
    )
    assert problem.fix == "pulumi config set -s dev --path storage.sharedFiles <value> && pulumi up -s dev"


OWN_CLASS = {"storage": {"sharedClass": "fast"}}


@case_table(__file__, "classes")
def test_the_class_of_shared_files(stack: dict[str, Any], kept_on: str, shared_class: str | None) -> None:
    settings = load(stack)
    assert (settings.shared_files, settings.shared_class) == (kept_on, shared_class)
    consumer = load({"platformStack": "dev", "workloads": "notebook"}, name="mine", others={"dev": platform(stack)})
    assert consumer.shared_class == shared_class


def test_a_notebook_runs_on_a_private_platform_with_a_class() -> None:
    options = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
    load(PRIVATE | OWN_CLASS | options, known=workloads.find(), secret=SECRET)


def test_simulated_aks_creates_the_known_classes() -> None:
    made = addons.objects({field: {"enabled": True} for field in ("fileCSIDriver", "diskCSIDriver", "blobCSIDriver")})
    assert {obj["metadata"]["name"] for obj in made if obj["kind"] == "StorageClass"} == set(aks_classes().all)


@pytest.mark.parametrize("name", ["azurefile-csi-nfs", "azurefile-csi2", "azurefile-nfs", "nfs", "nas", "fast.example"])
def test_accepts_custom_classes_with_similar_names(name: str) -> None:
    assert load({"vmSku": H100, "storage": {"sharedClass": name}}).shared_class == name
