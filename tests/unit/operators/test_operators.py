"""Golden files have the defaults."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import yaml

import operators
from components import images
from config.data.chart_values import value_problems
from config.data.scheduling import GPU_RESOURCE, LOCAL_QUEUE, SYSTEM_NODES, SYSTEM_TOLERATIONS, VOLCANO
from config.data.versions import versions
from config.schema.operators import DriverUpgrades
from config.schema.pools import PoolSettings
from operators import (
    appwrapper,
    autopilot,
    blob_csi_driver,
    gpu_operator,
    network_operator,
    nfs_subdir_external_provisioner,
    training_operator,
    volcano,
)
from operators._lib.release import ChartLocation, locate, merge
from operators.gpu_operator.settings import GpuOperatorSettings
from operators.network_operator.settings import NetworkOperatorSettings
from operators.nfs_subdir_external_provisioner import NfsProvisionerSettings
from tests.support import charts
from tests.support.case_files import case_table
from tests.support.mocked_azure import Azure
from tests.support.mocks import Recorder, program
from tests.support.settings import load
from tests.support.sizes import T4

KNOWN = operators.find()
UPGRADES = get_args(DriverUpgrades)
A100 = "Standard_NC48ads_A100_v4"
SHARED = {
    "t4": PoolSettings(vm_sku=T4, gpu_slices=2),
    "t4od": PoolSettings(vm_sku=T4, gpu_slices=2),
    "more": PoolSettings(vm_sku=T4, gpu_slices=4),
    "a100": PoolSettings(vm_sku=A100, mig_profile="all-1g.10gb"),
    "unshared": PoolSettings(vm_sku=A100),
}


CHANGED = {
    gpu_operator.NAME: gpu_operator.values("manual", rdma=False, pools=SHARED),
    volcano.NAME: volcano.values(autoscaled=True),
}


@pytest.mark.parametrize(("chart", "values"), [*charts.VALUES.items(), *CHANGED.items()])
def test_the_pinned_charts_have_all_values(chart: str, values: dict[str, Any]) -> None:
    assert value_problems(chart, values) == []


@case_table(__file__, "places")
def test_locates_charts_in_their_repository_or_below_the_source(
    name: str, source: str | None, chart: str, repository: str | None, pinned: bool
) -> None:
    known = versions().charts[name]
    assert locate(known, source) == ChartLocation(chart, repository, known.version if pinned else None)


def test_merges_the_users_values_over_the_programs() -> None:
    values = {"driver": {"enabled": True, "version": "1"}, "list": [1, 2]}
    assert merge(values, {"driver": {"version": "2"}, "list": [3], "new": None}) == {
        "driver": {"enabled": True, "version": "2"},
        "list": [3],
        "new": None,
    }


def policy(upgrades: DriverUpgrades = "manual", **settings: Any) -> dict[str, Any]:
    return network_operator.policy_spec(NetworkOperatorSettings.model_validate(settings), upgrades, None)


@pytest.mark.parametrize("unset", [{}, {"ofedVersion": ""}, {"ofedVersion": None}])
def test_uses_the_pinned_ofed_unless_a_version_is_set(unset: dict[str, Any]) -> None:
    assert policy(**unset)["ofedDriver"]["version"] == versions().images["doca-driver"].version
    asked = policy(ofedVersion="doca3.2.0-25.10-1.2.8.0-2")
    assert asked["ofedDriver"]["version"] == "doca3.2.0-25.10-1.2.8.0-2"
    assert asked["sriovDevicePlugin"] == policy()["sriovDevicePlugin"]


def test_sets_environment_variables_of_the_ofed_driver() -> None:
    env = {"OFED_BLACKLIST_MODULES_FILE": "/host/etc/modprobe.d/blacklist-ofed-modules.conf", "A": "1"}
    assert policy(ofedEnv=env)["ofedDriver"]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "OFED_BLACKLIST_MODULES_FILE", "value": "/host/etc/modprobe.d/blacklist-ofed-modules.conf"},
    ]
    assert "env" not in policy()["ofedDriver"], "another key would be reported as a change of the driver"
    with pytest.raises(ValueError, match="should match pattern"):
        policy(ofedEnv={"A B": "1"})


def test_kernel_modules_are_the_charts_default_unless_set() -> None:
    driver = gpu_operator.values("manual", rdma=False, pools={})["driver"]
    assert "kernelModuleType" not in driver, "another key would be reported as a change of the driver"
    chosen = gpu_operator.values("manual", rdma=False, pools={}, modules="proprietary")
    assert chosen["driver"] == {**driver, "kernelModuleType": "proprietary"}
    assert GpuOperatorSettings().kernel_module_type == "auto"
    with pytest.raises(ValueError, match="'auto', 'open' or 'proprietary'"):
        GpuOperatorSettings.model_validate({"kernelModuleType": "closed"})


@pytest.mark.parametrize("upgrades", UPGRADES)
def test_driver_upgrades_are_automatic_only_if_set_and_never_drain(
    upgrades: DriverUpgrades,
) -> None:
    for found in (policy(upgrades)["ofedDriver"], gpu_operator.values(upgrades, rdma=True, pools={})["driver"]):
        assert found["upgradePolicy"]["autoUpgrade"] is (upgrades == "when-idle")
        assert found["upgradePolicy"]["drain"] == {"enable": False}
        assert found["upgradePolicy"]["waitForCompletion"]["timeoutSeconds"] == 0  # no timeout
        assert not found["upgradePolicy"].get("gpuPodDeletion")  # default: neither force nor deleteEmptyDir


def test_the_selector_is_valid_yaml_without_quotes() -> None:
    """gpu-operator v26.7.0, templates/clusterpolicy.yaml:235: YAML reads a leading `!` as a tag."""
    selector = gpu_operator.values("when-idle", rdma=True, pools={})["driver"]["upgradePolicy"]["waitForCompletion"][
        "podSelector"
    ]
    assert yaml.safe_load(f"podSelector: {selector}") == {"podSelector": selector}


@pytest.mark.parametrize("chart", sorted(versions().charts))
def test_all_images_of_charts_come_from_the_mirror(chart: str) -> None:
    values = images.chart_values(chart, "mirror.example.com")
    assert values, f"config/data/charts/{chart}.keys has no key that names a registry or a repository of images"
    assert value_problems(chart, values) == []
    assert all(place.startswith("mirror.example.com") for place in leaves(values))
    assert images.chart_values(chart, None) == {}


def leaves(values: dict[str, Any]) -> list[str]:
    return [leaf for value in values.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


def test_the_device_plugin_has_a_configuration_for_each_slicing() -> None:
    config = gpu_operator.values("manual", rdma=False, pools=SHARED)["devicePlugin"]["config"]
    slices = {name: yaml.safe_load(text).get("sharing") for name, text in config["data"].items()}
    assert slices == {
        "tesla-t4-ts2": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}},
        "tesla-t4-ts4": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
        "whole-gpus": None,
    }
    assert config["default"] == "whole-gpus"
    assert "devicePlugin" not in gpu_operator.values("manual", rdma=False, pools={"unshared": SHARED["unshared"]})


def test_enables_the_mig_manager_for_partitions_only() -> None:
    manager = gpu_operator.values("manual", rdma=False, pools=SHARED)["migManager"]
    assert manager == {"enabled": True, "env": [{"name": "WITH_REBOOT", "value": "true"}]}
    assert not gpu_operator.values("manual", rdma=False, pools={})["migManager"]["enabled"]


def wanted(**stack: Any) -> set[str]:
    settings = load({"vmSku": "Standard_ND96isr_H100_v5", "workloads": "training", **stack})
    return {name for name, each in KNOWN.items() if each.is_wanted(settings)}


@case_table(__file__, "blob_driver")
def test_installs_the_chart_of_the_blob_driver_if_selected_and_needed(
    driver: str, containers: dict[str, Any], expected: bool
) -> None:
    found = wanted(storage={"driver": driver, "containers": containers})
    assert (blob_csi_driver.NAME in found) is expected


@case_table(__file__, "training_operator")
def test_arguments_of_the_training_operator(
    scheduler: str | None, registry: str | None, minutes: int, expected: dict[str, str]
) -> None:
    words = training_operator.arguments(scheduler, registry, minutes)
    found = dict(word.removeprefix("--").split("=") for word in words)
    assert expected.items() <= found.items()
    assert ("gang-scheduler-name" in found) is (scheduler is not None)


@pytest.mark.parametrize(
    ("tested_class", "checks"), [(None, "pciebw,remapped,gpupower,ping"), ("f", "pciebw,remapped,gpupower,pvc,ping")]
)
def test_autopilot_tests_shared_files_only_if_set_and_never_takes_gpus(tested_class: str | None, checks: str) -> None:
    values = autopilot.values(tested_class)
    env = {each["name"]: each["value"] for each in values["env"]}
    assert (env["PERIODIC_CHECKS"], env["PVC_TEST_STORAGE_CLASS"]) == (checks, tested_class or "")
    assert values["invasive"] >= 24 * 365, "with 0, it exits"


@pytest.mark.parametrize("minutes", [1, 45, 24 * 60])
def test_grace_periods_of_appwrapper_are_below_their_ceiling(minutes: int) -> None:
    """ValidateAppWrapperConfig of pkg/config/config.go."""
    periods = appwrapper.configuration(minutes, None)["appwrapper"]["faultTolerance"]
    assert periods["warmupGracePeriod"] == minutes * 60 * 10**9
    assert periods["admissionGracePeriod"] <= periods["warmupGracePeriod"] <= periods["gracePeriodCeiling"]
    for name in ("deletionGracePeriod", "resetPause", "failureGracePeriod"):
        assert periods[name] <= periods["gracePeriodCeiling"]


def test_appwrapper_sets_queue_and_scheduler_and_leaves_bad_nodes() -> None:
    found = appwrapper.configuration(30, VOLCANO)["appwrapper"]
    assert (found["defaultQueueName"], found["schedulerName"]) == (LOCAL_QUEUE, VOLCANO)
    assert "schedulerName" not in appwrapper.configuration(30, None)["appwrapper"]
    taints = found["autopilot"]["resourceTaints"][GPU_RESOURCE]
    evicting = {f"{each['key']}={each['value']}" for each in taints if each["effect"] == "NoExecute"}
    assert evicting == {"autopilot.ibm.com/gpuhealth=EVICT", "ai-on-aks/gpu-health=failed"}
    assert [each["value"] for each in taints if each["effect"] != "NoExecute"] == ["WARN", "TESTING"]


ON = {"enabled": True, "server": "10.1.0.4", "path": "/exports/ai"}
NOTEBOOK = {"workloads": "jupyterlab", "workloadOptions": {"jupyterlab": {"password": "open-sesame"}}}


def deployed(keys: dict[str, Any], azure: Azure | None = None, name: str = "test") -> Recorder:
    return program(keys, azure or Azure(), name, secret=["workloadOptions"])


def test_values_of_the_nfs_provisioner() -> None:
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


def test_shared_files_use_the_class_of_the_nfs_provisioner() -> None:
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
