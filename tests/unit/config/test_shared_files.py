"""What shared files are kept on, what follows of it, and what stacks on the platform are told."""

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
def test_nothing_private_is_on_a_public_address(stack: dict[str, Any], kept_on: str, entrances: list[str]) -> None:
    settings = load(stack)
    assert settings.shared_files == kept_on
    assert list(settings.entrances()) == entrances
    paid = hourly_cost(settings, {}).output()["resources"].get("private endpoint", 0)
    assert paid == pytest.approx(0.01 * len(entrances))


def test_protect_is_the_files_accounts_too() -> None:
    """Beside other accounts it would else be of one that is not there."""
    storage = {"sharedFiles": "nfs", "protect": False, "accounts": {"input": {"containers": {"data": {}}}}}
    assert load(OWN | {"storage": storage}).storage.protect is False


@pytest.mark.parametrize(("shared_platform", "kept_on"), [({"vmSku": H100}, "smb"), (PRIVATE | BY_NFS, "nfs")])
def test_a_stack_on_the_platform_has_the_platforms(shared_platform: dict[str, Any], kept_on: str) -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook"}
    assert load(consumer, name="mine", others={"dev": platform(shared_platform)}).shared_files == kept_on


def test_a_notebook_on_a_private_platform_without_them_is_refused_by_the_platforms_name() -> None:
    password = {"jupyterlab": {"password": "open-sesame"}}
    consumer = {"platformStack": "dev", "workloads": "jupyterlab", "workloadOptions": password}
    others = {"dev": platform(PRIVATE)}
    (problem,) = problems(consumer, name="mine", others=others, known=workloads.find(), secret=SECRET)
    assert str(problem).startswith("storage.sharedFiles of stack dev is none, and workload jupyterlab has shared files")
    assert "change storage.sharedFiles in the stack file of dev to what is allowed" in problem.text("mine")


OWN_CLASS = {"storage": {"sharedClass": "fast"}}


@case_table(__file__, "classes")
def test_one_class_is_for_all_that_share_files(stack: dict[str, Any], kept_on: str, shared_class: str | None) -> None:
    """Where nothing is said, that of an operator which brings one."""
    settings = load(stack)
    assert (settings.shared_files, settings.shared_class) == (kept_on, shared_class)
    consumer = load({"platformStack": "dev", "workloads": "notebook"}, name="mine", others={"dev": platform(stack)})
    assert consumer.shared_class == shared_class


def test_a_notebook_may_be_on_a_private_platform_that_has_a_class() -> None:
    options = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}
    load(PRIVATE | OWN_CLASS | options, known=workloads.find(), secret=SECRET)


def test_the_known_classes_are_those_that_simulated_aks_makes() -> None:
    made = addons.objects({field: {"enabled": True} for field in ("fileCSIDriver", "diskCSIDriver", "blobCSIDriver")})
    assert {obj["metadata"]["name"] for obj in made if obj["kind"] == "StorageClass"} == set(aks_classes().all)


@pytest.mark.parametrize("name", ["azurefile-csi-nfs", "azurefile-csi2", "azurefile-nfs", "nfs", "nas", "fast.example"])
def test_a_class_of_ones_own_may_be_called_like_others(name: str) -> None:
    assert load({"vmSku": H100, "storage": {"sharedClass": name}}).shared_class == name
