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


def warned(stack: dict[str, Any], **options: Any) -> list[str]:
    return list(warnings(load({**stack, "storage": storage(**options)}, known=KNOWN)))


def test_containers_without_a_driver() -> None:
    (text,) = warned(OLMO, driver="none")
    assert text == (
        "storage.driver is none, so workload olmo waits until another driver mounts olmo-data, olmo-checkpoints\n"
        "    allowed: addon or chart\n"
        "    fix:     pulumi config set -s dev --path storage.driver addon"
    )


def test_containers_that_no_workload_mounts_need_no_driver() -> None:
    assert warned({"vmSku": H100, "workloads": "health-check"}, driver="none") == []


TEAMS = {"vmSku": H100, "operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": 8, "users": ["alice"]}}}
SAS = {"containers": {"data": {"permissions": "racwdl"}}}


@pytest.mark.parametrize(
    ("stack", "what", "fix"),
    [
        (
            {"vmSku": H100, "cluster": {"nodeOsChannel": "NodeImage"}},
            "cluster.maintenanceWindow is not set: with cluster.nodeOsChannel NodeImage, AKS reimages nodes",
            "pulumi config set -s dev --path cluster.maintenanceWindow.day Sunday",
        ),
        (
            {"pools": {"gpu": {"vmSku": H100, "maxPods": 20}}},
            "pools.gpu.maxPods is 20, but AKS and operators alone run about 25 pods",
            "pulumi config set -s dev --path pools.gpu.maxPods 250",
        ),
        (
            TEAMS,
            "network.policy is none, so the NetworkPolicies of teams have no effect",
            "pulumi config set -s dev --path network.policy cilium",
        ),
        (
            {"vmSku": H100, "storage": SAS},
            "storage.containers.data.permissions is racwdl, but in a hierarchical namespace mounts",
            "add m and p if mounts create files there, or remove w if mounts only read",
        ),
    ],
)
def test_warns_about_settings(stack: dict[str, Any], what: str, fix: str) -> None:
    (text,) = warnings(load(stack, known=KNOWN))
    assert text.startswith(what)
    assert text.endswith(fix)


@case_table(__file__, "endless")
def test_a_training_without_an_end_runs_longer_than_its_sas(sas: dict[str, Any], days: int, rotation: str) -> None:
    (text,) = warned(ENDLESS, **sas)
    what = "without stopAt, workload olmo runs longer than the SAS, and then fails"
    assert text.startswith(f'storage.containers["olmo-data"].days is {days}, but {what}\n')
    assert text.endswith(f"set stopAt, or change storage.rotation before the SAS expires, for example to {rotation}")


def test_a_training_with_an_end_or_a_sas_for_a_year_causes_no_warning() -> None:
    assert warned(OLMO) == []
    assert warned(ENDLESS, days=365) == []


def test_a_model_size_that_no_workload_reads() -> None:
    stack = {"vmSku": H100, "workloads": "health-check,nccl-allreduce", "modelSize": "6.7b"}
    (text,) = unread_options(load(stack, known=KNOWN), KNOWN)
    assert text == (
        "modelSize is set, but no workload of this stack reads it (health-check, nccl-allreduce)\n"
        "    allowed: a stack with metaseq or pytorch-pretraining\n"
        "    fix:     pulumi config rm -s dev modelSize"
    )
    (text,) = unread_options(load({**stack, "workloads": ""}, known=KNOWN), KNOWN)
    assert text.startswith("modelSize is set, but no workload of this stack reads it (the stack has none)\n")
    for read in ({"workloads": "metaseq,health-check"}, {"modelSize": ""}):
        assert not list(unread_options(load({**stack, **read}, known=KNOWN), KNOWN))


@case_table(__file__, "no_effect")
def test_settings_without_effect(stack: dict[str, Any], warnings_by_key: dict[str, str]) -> None:
    assert list(warnings(load({"vmSku": H100, **stack}))) == [
        f"{key} has no effect without {lacking}\n    allowed: no value, or {lacking}\n"
        f"    fix:     pulumi config rm -s dev --path {key}"
        for key, lacking in warnings_by_key.items()
    ]


def test_a_warning_names_the_stack_of_the_platform() -> None:
    others = {"dev": platform({"vmSku": H100, "storage": storage("none")}, KNOWN)}
    stack = {"platformStack": "dev", "workloads": "olmo", "workloadOptions": {"olmo": {"stopAt": 5}}}
    (text,) = warnings(load(stack, name="olmo", others=others, known=KNOWN))
    assert text.startswith("storage.driver of stack organization/ai-on-aks/dev is none")
    on_dev = "-s organization/ai-on-aks/dev"
    assert text.endswith(f"pulumi config set {on_dev} --path storage.driver addon && pulumi up {on_dev}")


def test_the_program_logs_warnings_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: logged.append(text))
    recorder = mocks.program({**OLMO, "storage": storage("none"), "cluster": {"localAccounts": True}})
    assert [text.partition(",")[0] for text in logged] == ["storage.driver is none"]
    assert recorder.one(":Job", "olmo")


def test_keys_that_nothing_reads() -> None:
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
        "this program does not read the key kubernetes:context: its providers use the cluster's own kubeconfig",
        "this program does not read the key finops:owner",
        "this program does not read the key gcp:nodeCount; similar: ai-on-aks:nodeCount",
    ]


FIXED: dict[str, Any] = {"vmSku": H100, "count": 4}
SCALED: dict[str, Any] = {"vmSku": H100, "autoscale": {"min": 0, "max": 2}}


def test_a_fixed_gpu_pool_with_an_autoscaled_one() -> None:
    (warning,) = warnings(load({"pools": {"train": FIXED, "burst": SCALED}}))
    assert warning == (
        "pools.train has a fixed count (4), but pools.burst autoscales: while a node of pools.train offers "
        "no GPUs, such as during a driver build, AKS adds no nodes to any pool\n"
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
def test_times_of_the_autoscaler_that_are_shorter_than_a_driver_build(
    size: str, operators: dict[str, Any], profile: dict[str, int], expected: list[list[Any]]
) -> None:
    pools = {"gpu": {"vmSku": size, "autoscale": {"min": 1, "max": 2}}}
    found = list(warnings(load({"pools": pools, "operators": operators, "cluster": {"autoscaler": profile}})))
    begun = [
        f"cluster.autoscaler.{name} is {minutes}, but a node of pools.gpu builds drivers" for name, minutes in expected
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
        {**TEAMS, "network": {"policy": "cilium"}},
        {"vmSku": H100, "storage": {**SAS, "hierarchicalNamespace": False}},
        {"vmSku": H100, "cluster": {"nodeOsChannel": "NodeImage", "maintenanceWindow": {"day": "Sunday"}}},
    ],
)
def test_good_settings_cause_no_warning(keys: dict[str, Any]) -> None:
    assert not list(warnings(load(keys)))
