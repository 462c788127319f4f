"""Values and custom resources of the operators."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
import yaml

from components import images
from config.facts.chart_values import value_problems
from config.facts.scheduling import tolerates
from config.facts.versions import versions
from config.schema.operators import DriverUpgrades
from config.schema.pools import PoolSettings
from operators import blob_csi_driver, gpu_operator, kueue, network_operator, nfd, scheduler_plugins, volcano
from operators._release import ChartLocation, locate, merge
from operators.gpu_operator.settings import GpuOperatorSettings
from operators.network_operator.settings import NetworkOperatorSettings

ANY_TAINT = [{"operator": "Exists"}]
UPGRADES = get_args(DriverUpgrades)
T4, A100 = "Standard_NC4as_T4_v3", "Standard_NC48ads_A100_v4"
SHARED = {
    "t4": PoolSettings(vm_sku=T4, gpu_slices=2),
    "t4od": PoolSettings(vm_sku=T4, gpu_slices=2),
    "more": PoolSettings(vm_sku=T4, gpu_slices=4),
    "a100": PoolSettings(vm_sku=A100, mig_profile="all-1g.10gb"),
    "whole": PoolSettings(vm_sku=A100),
}


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        (nfd.NAME, nfd.values()),
        (network_operator.NAME, network_operator.values()),
        (gpu_operator.NAME, gpu_operator.values("when-idle", rdma=True, pools={})),
        (gpu_operator.NAME, gpu_operator.values("manual", rdma=False, pools=SHARED)),
        (volcano.NAME, volcano.values(autoscaled=True)),
        (blob_csi_driver.NAME, blob_csi_driver.values()),
        (kueue.NAME, kueue.values()),
        (scheduler_plugins.NAME, scheduler_plugins.values()),
    ],
)
def test_the_pinned_charts_have_every_value_that_is_set(chart: str, values: dict[str, Any]) -> None:
    assert value_problems(chart, values) == []


def test_charts_come_from_their_own_places_unless_redirected() -> None:
    volcano_chart, nfd_chart = versions().charts["volcano"], versions().charts["node-feature-discovery"]
    assert locate(volcano_chart, None) == ChartLocation(
        "volcano", "https://volcano-sh.github.io/helm-charts", volcano_chart.version
    )
    assert locate(nfd_chart, None) == ChartLocation(
        "oci://registry.k8s.io/nfd/charts/node-feature-discovery", None, nfd_chart.version
    )
    assert locate(volcano_chart, "oci://mirror.example.com/charts/") == ChartLocation(
        "oci://mirror.example.com/charts/volcano", None, volcano_chart.version
    )


def test_a_folder_of_charts_stays_relative_and_decides_the_version() -> None:
    assert locate(versions().charts["volcano"], "simulator/charts") == ChartLocation(
        "simulator/charts/volcano", None, None
    )


def test_the_users_values_win_key_by_key() -> None:
    values = {"driver": {"enabled": True, "version": "1"}, "list": [1, 2]}
    assert merge(values, {"driver": {"version": "2"}, "list": [3], "new": None}) == {
        "driver": {"enabled": True, "version": "2"},
        "list": [3],
        "new": None,
    }


def test_nfd_sees_gpus_and_infiniband_but_no_ethernet() -> None:
    worker = nfd.values()["worker"]
    assert worker["nodeSelector"] == {"ai-on-aks/gpu": "true"}
    assert worker["config"]["sources"]["pci"]["deviceClassWhitelist"] == ["03", "0300", "0302", "0207"]


def test_the_infiniband_rule_needs_device_and_class() -> None:
    rule = nfd.infiniband_rule()
    assert rule["labels"] == {"feature.node.kubernetes.io/pci-15b3.present": "true"}
    assert rule["matchFeatures"][0]["matchExpressions"] == {
        "vendor": {"op": "In", "value": ["15b3"]},
        "device": {"op": "In", "value": ["101c", "101e"]},
        "class": {"op": "In", "value": ["0207"]},
    }


def test_only_where_nodes_come_for_pods_that_wait_are_pods_made_before_there_are_nodes() -> None:
    assert "scheduler_config_override" not in volcano.values(autoscaled=False)["custom"]
    scheduler = yaml.safe_load(volcano.values(autoscaled=True)["custom"]["scheduler_config_override"])
    plugins = [plugin["name"] for tier in scheduler["tiers"] for plugin in tier["plugins"]]
    assert "gang" in plugins
    assert not {"overcommit", "proportion"} & set(plugins)  # all that hold pods back in upstream's configuration


def policy(upgrades: DriverUpgrades = "manual", **settings: Any) -> dict[str, Any]:
    return network_operator.policy_spec(NetworkOperatorSettings.model_validate(settings), upgrades, None)


def test_one_device_plugin_offers_infiniband_only_under_the_chosen_name() -> None:
    spec = policy(rdmaResource="ib")
    assert "rdmaSharedDevicePlugin" not in spec
    assert json.loads(spec["sriovDevicePlugin"]["config"]) == {
        "resourceList": [
            {
                "resourcePrefix": "nvidia.com",
                "resourceName": "ib",
                "selectors": {"vendors": ["15b3"], "linkTypes": ["infiniband"], "isRdma": True},
            }
        ]
    }


@pytest.mark.parametrize("unset", [{}, {"ofedVersion": ""}, {"ofedVersion": None}])
def test_ofed_is_the_pinned_one_unless_another_is_asked_for(unset: dict[str, Any]) -> None:
    assert policy(**unset)["ofedDriver"]["version"] == versions().images["doca-driver"].version
    asked = policy(ofedVersion="doca3.2.0-25.10-1.2.8.0-2")
    assert asked["ofedDriver"]["version"] == "doca3.2.0-25.10-1.2.8.0-2"
    assert asked["sriovDevicePlugin"] == policy()["sriovDevicePlugin"]


def test_the_drivers_container_gets_the_environment_variables_of_the_settings() -> None:
    env = {"OFED_BLACKLIST_MODULES_FILE": "/host/etc/modprobe.d/blacklist-ofed-modules.conf", "A": "1"}
    assert policy(ofedEnv=env)["ofedDriver"]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "OFED_BLACKLIST_MODULES_FILE", "value": "/host/etc/modprobe.d/blacklist-ofed-modules.conf"},
    ]
    assert "env" not in policy()["ofedDriver"], "one more key would be reported as another driver"
    with pytest.raises(ValueError, match="should match pattern"):
        policy(ofedEnv={"A B": "1"})


def test_kernel_modules_are_the_charts_default_unless_set() -> None:
    driver = gpu_operator.values("manual", rdma=False, pools={})["driver"]
    assert "kernelModuleType" not in driver, "one more key would be reported as another driver"
    chosen = gpu_operator.values("manual", rdma=False, pools={}, modules="proprietary")
    assert chosen["driver"] == {**driver, "kernelModuleType": "proprietary"}
    assert GpuOperatorSettings().kernel_module_type == "auto"
    with pytest.raises(ValueError, match="'auto', 'open' or 'proprietary'"):
        GpuOperatorSettings.model_validate({"kernelModuleType": "closed"})


@pytest.mark.parametrize("upgrades", UPGRADES)
def test_both_drivers_are_upgraded_by_themselves_only_when_asked_to_and_never_by_a_drain(
    upgrades: DriverUpgrades,
) -> None:
    for found in (policy(upgrades)["ofedDriver"], gpu_operator.values(upgrades, rdma=True, pools={})["driver"]):
        assert found["upgradePolicy"]["autoUpgrade"] is (upgrades == "when-idle")
        assert found["upgradePolicy"]["drain"] == {"enable": False}
        assert found["upgradePolicy"]["waitForCompletion"]["timeoutSeconds"] == 0  # for ever
        assert not found["upgradePolicy"].get("gpuPodDeletion")  # by default neither force nor deleteEmptyDir


def test_the_selector_survives_a_chart_that_does_not_quote_it() -> None:
    """gpu-operator v26.7.0, templates/clusterpolicy.yaml:235: YAML reads a leading `!` as a tag, and no text."""
    selector = gpu_operator.values("when-idle", rdma=True, pools={})["driver"]["upgradePolicy"]["waitForCompletion"][
        "podSelector"
    ]
    assert yaml.safe_load(f"podSelector: {selector}") == {"podSelector": selector}


def test_daemon_sets_on_gpu_nodes_tolerate_every_taint_so_that_a_taint_changes_no_driver() -> None:
    assert policy()["tolerations"] == ANY_TAINT
    assert gpu_operator.values("manual", rdma=True, pools={})["daemonsets"]["tolerations"] == ANY_TAINT
    assert nfd.values()["worker"]["tolerations"] == ANY_TAINT
    assert blob_csi_driver.values()["node"]["tolerations"] == ANY_TAINT


def test_a_mirror_serves_the_policys_images() -> None:
    spec = network_operator.policy_spec(NetworkOperatorSettings(), "manual", "mirror.example.com/team")
    assert spec["ofedDriver"]["repository"] == "mirror.example.com/team/nvidia/mellanox"


@pytest.mark.parametrize("chart", sorted(versions().charts))
def test_a_mirror_serves_the_charts_images(chart: str) -> None:
    values = images.chart_values(chart, "mirror.example.com")
    assert values, f"config/facts/charts/{chart}.keys has no key that names a registry or a repository of images"
    assert value_problems(chart, values) == []
    assert all(place.startswith("mirror.example.com") for place in leaves(values))
    assert images.chart_values(chart, None) == {}


def leaves(values: dict[str, Any]) -> list[str]:
    return [leaf for value in values.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


def test_a_mirrored_image_keeps_its_path() -> None:
    reference = images.reference("doca-driver", "mirror.example.com/")
    assert reference == f"mirror.example.com/nvidia/mellanox/doca-driver:{versions().images['doca-driver'].version}"
    assert images.mirrored("docker.io", "mirror.example.com") == "mirror.example.com"


def test_the_device_plugin_has_a_configuration_for_each_kind_of_slices_and_whole_gpus_by_default() -> None:
    config = gpu_operator.values("manual", rdma=False, pools=SHARED)["devicePlugin"]["config"]
    slices = {name: yaml.safe_load(text).get("sharing") for name, text in config["data"].items()}
    assert slices == {
        "tesla-t4-ts2": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}},
        "tesla-t4-ts4": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
        "whole-gpus": None,
    }
    assert config["default"] == "whole-gpus"
    assert "devicePlugin" not in gpu_operator.values("manual", rdma=False, pools={"whole": SHARED["whole"]})


def test_the_mig_manager_is_there_for_partitions_alone_and_may_reboot() -> None:
    manager = gpu_operator.values("manual", rdma=False, pools=SHARED)["migManager"]
    assert manager == {"enabled": True, "env": [{"name": "WITH_REBOOT", "value": "true"}]}
    assert not gpu_operator.values("manual", rdma=False, pools={})["migManager"]["enabled"]


def test_what_serves_gpu_nodes_tolerates_the_taint_of_nodes_that_are_not_partitioned_yet() -> None:
    """Of seed 001, which lists it."""
    served = (nfd.values()["worker"], gpu_operator.values("manual", rdma=False, pools={})["daemonsets"])
    for each in served:
        assert any(tolerates(one, "mig=notReady:NoSchedule") for one in each["tolerations"])
