"""What is no mistake but will not go well is said, with the command that mends it, and refused by nobody."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

import workloads
from config.rules.advice import unread_options, warnings
from config.rules.provider_keys import unread_keys
from config.schema.inventory import Inventory
from tests.support import mocks
from tests.support.case_files import case_table
from tests.support.settings import load, platform
from tests.support.sizes import H100

KNOWN = workloads.find()
OLMO = {"vmSku": H100, "workloads": "olmo", "workloadOptions": {"olmo": {"stopAt": 5}}}
ENDLESS = {**OLMO, "workloadOptions": {"olmo": {}}}


def storage(driver: str = "addon", rotation: str = "1", **sas: Any) -> dict[str, Any]:
    data = {"permissions": "rl", "upload": True, **sas}
    containers = {"olmo-data": data, "olmo-checkpoints": {"permissions": "racwdlmp", "days": 365}}
    return {"driver": driver, "rotation": rotation, "containers": containers}


def said(stack: dict[str, Any], **options: Any) -> list[str]:
    return list(warnings(load({**stack, "storage": storage(**options)}, known=KNOWN)))


def test_without_a_driver_nothing_mounts_the_containers_of_a_workload() -> None:
    (text,) = said(OLMO, driver="none")
    assert text == (
        "storage.driver is none: workload olmo waits until something else mounts olmo-data, olmo-checkpoints\n"
        "    allowed: addon or chart\n"
        "    fix:     pulumi config set -s dev --path storage.driver addon"
    )


def test_containers_that_no_workload_mounts_need_no_driver() -> None:
    assert said({"vmSku": H100, "workloads": "health-check"}, driver="none") == []


def test_images_that_roll_at_any_time_are_told_the_window() -> None:
    cluster: dict[str, Any] = {"nodeOsChannel": "NodeImage"}
    (text,) = warnings(load({"vmSku": H100, "cluster": cluster}))
    assert text.startswith(
        "cluster.maintenanceWindow is not set: with cluster.nodeOsChannel NodeImage, AKS rolls nodes"
    )
    assert text.endswith("pulumi config set -s dev --path cluster.maintenanceWindow.day Sunday")


def test_pods_that_the_platform_alone_needs_are_reported() -> None:
    (warning,) = warnings(load({"pools": {"gpu": {"vmSku": H100, "maxPods": 20}}}))
    assert warning.startswith("pools.gpu.maxPods is 20: pods of AKS and of operators alone are about 25")


def test_teams_without_a_policy_engine_are_reported() -> None:
    stack = {
        "vmSku": H100,
        "operators": {"kueue": {"enabled": True}},
        "teams": {"blue": {"gpus": 8, "users": ["alice"]}},
    }
    (warning,) = warnings(load(stack, known=KNOWN))
    assert warning.startswith("network.policy is none, so nothing enforces the NetworkPolicies of teams")
    assert warning.endswith("pulumi config set -s dev --path network.policy cilium")
    assert list(warnings(load({**stack, "network": {"policy": "cilium"}}, known=KNOWN))) == []


def test_a_sas_that_writes_to_a_hierarchical_namespace_must_set_permissions_too() -> None:
    containers = {"data": {"permissions": "racwdl"}}
    (text,) = warnings(load({"vmSku": H100, "storage": {"containers": containers}}, known=KNOWN))
    assert text.startswith("storage.containers.data.permissions is racwdl: in a hierarchical namespace no mount makes")
    assert text.endswith("add m and p if mounts are to make files there, or take w out if they only read")
    flat = {"containers": containers, "hierarchicalNamespace": False}
    assert not list(warnings(load({"vmSku": H100, "storage": flat}, known=KNOWN)))


@case_table(__file__, "endless")
def test_a_training_without_an_end_outlives_its_sas(sas: dict[str, Any], days: int, rotation: str) -> None:
    """Whether a SAS may last longer is the user's decision."""
    (text,) = said(ENDLESS, **sas)
    what = "without stopAt, workload olmo runs on when the SAS has ended, and fails"
    assert text.startswith(f'storage.containers["olmo-data"].days is {days}: {what}\n')
    assert text.endswith(f"set stopAt, or change storage.rotation before the SAS ends, to {rotation} for example")


def test_a_training_with_an_end_or_a_sas_for_a_year_is_not_spoken_of() -> None:
    assert said(OLMO) == []
    assert said(ENDLESS, days=365) == []


def test_a_model_size_that_no_workload_reads_is_reported() -> None:
    stack = {"vmSku": H100, "workloads": "health-check,nccl-allreduce", "modelSize": "6.7b"}
    (text,) = unread_options(load(stack, known=KNOWN), KNOWN)
    assert text == (
        "modelSize is set, but no workload of this stack reads it (health-check, nccl-allreduce)\n"
        "    allowed: a stack with metaseq or pytorch-pretraining\n"
        "    fix:     pulumi config rm -s dev modelSize"
    )
    (text,) = unread_options(load({**stack, "workloads": ""}, known=KNOWN), KNOWN)
    assert text.startswith("modelSize is set, but no workload of this stack reads it (it runs none)\n")
    for read in ({"workloads": "metaseq,health-check"}, {"modelSize": ""}):
        assert not list(unread_options(load({**stack, **read}, known=KNOWN), KNOWN))


@case_table(__file__, "no_effect")
def test_settings_without_effect_are_reported(stack: dict[str, Any], told: dict[str, str]) -> None:
    assert list(warnings(load({"vmSku": H100, **stack}))) == [
        f"{key} has no effect without {lacking}\n    allowed: no value, or {lacking}\n"
        f"    fix:     pulumi config rm -s dev --path {key}"
        for key, lacking in told.items()
    ]


def test_on_another_stack_s_platform_that_stack_is_told_of() -> None:
    others = {"dev": platform({"vmSku": H100, "storage": storage("none")}, KNOWN)}
    stack = {"platformStack": "dev", "workloads": "olmo", "workloadOptions": {"olmo": {"stopAt": 5}}}
    (text,) = warnings(load(stack, name="olmo", others=others, known=KNOWN))
    assert text.startswith("storage.driver of stack organization/ai-on-aks/dev is none")
    on_dev = "-s organization/ai-on-aks/dev"
    assert text.endswith(f"pulumi config set {on_dev} --path storage.driver addon && pulumi up {on_dev}")


def test_the_program_says_it_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: heard.append(text))
    recorder = mocks.program({**OLMO, "storage": storage("none"), "cluster": {"localAccounts": True}})
    assert [text.partition(":")[0] for text in heard] == ["storage.driver is none"]
    assert recorder.one(":Job", "olmo")


def test_keys_that_nothing_reads_are_reported_with_the_near_name() -> None:
    keys = (
        "ai-on-aks:vmSku",
        "pulumi:tags",
        "azure-native:location",
        "kubernetes:context",
        "finops:owner",
        "gcp:nodeCount",
        "azure:location",
    )
    model = Inventory({}, KNOWN).stack_file
    assert list(unread_keys(dict.fromkeys(keys, "x"), "ai-on-aks", model)) == [
        "nothing in this program reads the key kubernetes:context: its providers use the cluster's own kubeconfig",
        "nothing in this program reads the key finops:owner",
        "nothing in this program reads the key gcp:nodeCount; near: ai-on-aks:nodeCount",
    ]


FIXED: dict[str, Any] = {"vmSku": H100, "count": 4}
SCALED: dict[str, Any] = {"vmSku": H100, "autoscale": {"min": 0, "max": 2}}


def test_a_fixed_gpu_pool_beside_an_autoscaled_one_is_reported() -> None:
    (warning,) = warnings(load({"pools": {"train": FIXED, "burst": SCALED}}))
    assert warning == (
        "pools.train has a fixed count (4) beside pools.burst, which autoscales: while one of its nodes offers no "
        "GPUs, such as during a driver build, AKS adds nodes to no pool of the cluster\n"
        "    allowed: autoscale with min and max 4, which keeps the number of nodes\n"
        "    fix:     pulumi config set -s dev --path pools.train.autoscale.min 4 && "
        "pulumi config set -s dev --path pools.train.autoscale.max 4 && "
        "pulumi config rm -s dev --path pools.train.count"
    )
    (default,) = warnings(load({"pools": {"train": {"vmSku": H100}, "burst": SCALED}}))
    assert default.endswith("pools.train.autoscale.max 2")
    bounds = {"min": 4, "max": 4}
    assert not list(warnings(load({"pools": {"train": {"vmSku": H100, "autoscale": bounds}, "burst": SCALED}})))


@case_table(__file__, "times")
def test_times_of_the_autoscaler_that_are_shorter_than_a_driver_build_are_reported(
    size: str, operators: dict[str, Any], profile: dict[str, int], expected: list[list[Any]]
) -> None:
    pools = {"gpu": {"vmSku": size, "autoscale": {"min": 1, "max": 2}}}
    found = list(warnings(load({"pools": pools, "operators": operators, "cluster": {"autoscaler": profile}})))
    begun = [
        f"cluster.autoscaler.{name} is {minutes}: a node of pools.gpu builds drivers" for name, minutes in expected
    ]
    assert len(found) == len(begun)
    assert all(text.startswith(beginning) for text, beginning in zip(found, begun, strict=True))
    assert all("pulumi config rm -s dev --path cluster.autoscaler." in text for text in found)


@pytest.mark.parametrize(
    "keys",
    [
        {"pools": {"a": FIXED, "b": FIXED}},
        {"pools": {"a": SCALED}, "cluster": {"autoscaler": {"unneededMinutes": 20}}},
        {"pools": {"a": {**FIXED, "count": 0}, "b": SCALED}},
        {"pools": {"a": {"vmSku": H100, "maxPods": 30}}},
        {"vmSku": H100, "cluster": {"nodeOsChannel": "NodeImage", "maintenanceWindow": {"day": "Sunday"}}},
    ],
)
def test_what_goes_well_is_not_warned_of(keys: dict[str, Any]) -> None:
    assert not list(warnings(load(keys)))
