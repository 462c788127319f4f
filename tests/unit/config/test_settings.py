"""Good settings, in every way that Pulumi lets people write them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from config.rules.mirrors import mirror_problems
from config.schema.operators import Installation
from config.schema.pools import MAX_POOL_NAME, PoolSettings, agent_pool_name
from simulator.host.paths import ROOT
from tests.support.case_files import case_table
from tests.support.settings import INVENTORY, load, platform
from tests.support.sizes import H100, T4


@pytest.mark.parametrize("count", [3, "3"])
def test_numbers_may_be_text(count: Any) -> None:
    assert load({"vmSku": H100, "nodeCount": count}).node_count == 3
    assert load({"pools": {"gpu": {"vmSku": H100, "count": count}}}).gpu_pools()["gpu"].count == 3


@pytest.mark.parametrize(
    "written", ["notebook,training", "notebook, training", '["notebook", "training"]', ["notebook", "training"]]
)
def test_workloads_may_be_a_list_or_text(written: Any) -> None:
    assert load({"vmSku": H100, "workloads": written}).workloads == ("notebook", "training")


@case_table(__file__, "options")
def test_options_of_the_nccl_all_reduce(options: dict[str, Any], expected: dict[str, Any]) -> None:
    stack = {"vmSku": H100, "workloads": "nccl-allreduce", "workloadOptions": {"nccl-allreduce": options}}
    placed = load(stack).placements["nccl-allreduce"].options
    assert expected.items() <= placed.model_dump().items()


def test_empty_text_is_not_set() -> None:
    """Pulumi.yaml gives keys an empty default, because Pulumi demands keys that have none."""
    settings = load({"vmSku": H100, "workloads": "", "cluster": "", "pools": "", "location": ""})
    assert (settings.workloads, settings.location, list(settings.gpu_pools())) == ((), "eastus", ["gpu"])


def test_an_empty_map_is_not_set() -> None:
    """`pulumi config rm --path pools.gpu` leaves one."""
    settings = load({"vmSku": H100, "pools": {}, "workloads": "notebook"})
    assert (list(settings.gpu_pools()), list(settings.placements)) == (["gpu"], ["notebook"])


@pytest.mark.parametrize("version", ["1.36", 1.36, "1.36.0", "1.36.99"])
def test_kubernetes_version_may_be_a_number(version: Any) -> None:
    assert load({"vmSku": H100, "cluster": {"kubernetesVersion": version}}).cluster.kubernetes_version == str(version)


def test_the_location_falls_back_to_the_provider_s() -> None:
    of_provider = load({"vmSku": H100, "azure-native:location": "westus3"})
    assert (of_provider.location, of_provider.location_key) == ("westus3", "azure-native:location")
    assert load({"vmSku": H100, "location": "westus3"}).location_key == load({"vmSku": H100}).location_key == "location"
    assert load({"vmSku": H100, "azure-native:location": "West US 3", "location": "westus3"}).location == "westus3"


@pytest.mark.parametrize("region", ["eastus", "swedencentral", "usgovvirginia", "chinanorth3"])
def test_regions_of_every_cloud_are_known(region: str) -> None:
    assert load({"vmSku": H100, "location": region}).location == region


def test_no_nodes_and_no_workload_keeps_the_pool_without_its_cost() -> None:
    assert load({"vmSku": H100, "nodeCount": 0}).gpu_pools()["gpu"].count == 0


def test_the_default_pool_is_tainted() -> None:
    assert load({"vmSku": H100}).gpu_pools() == {
        "gpu": PoolSettings(vm_sku=H100, count=2, taints=("sku=gpu:NoSchedule",))
    }


@pytest.mark.parametrize(
    "source", ["simulator/charts", "simulator/charts/", "oci://mirror.example.com:5000/charts", ""]
)
def test_charts_may_come_from_a_folder_or_a_registry(source: str) -> None:
    assert load({"vmSku": H100, "charts": {"source": source}}).charts.source == (source or None)


def test_a_folder_needs_only_the_charts_that_are_installed() -> None:
    stack = {"vmSku": H100, "charts": {"source": "charts"}, "operators": {"volcano": {"enabled": False}}}
    wanted = Installation(INVENTORY.stack_file.model_validate(stack), INVENTORY.operators)
    assert list(mirror_problems(wanted, lambda path: path.endswith("/Chart.yaml") and "volcano" not in path)) == []
    (problem,) = mirror_problems(wanted, lambda path: path.endswith("/Chart.yaml") and "gpu" not in path)
    assert problem.what == "is 'charts', a folder without gpu-operator/Chart.yaml"


def test_settings_cannot_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load({"vmSku": H100}).location = "uksouth"  # type: ignore[misc]


def test_a_new_size_gives_a_new_pool_name_and_a_new_count_does_not() -> None:
    pool = PoolSettings(vm_sku=H100)
    same = agent_pool_name("gpu", pool.model_copy(update={"count": 5, "labels": {"a": "b"}}))
    other = agent_pool_name("gpu", pool.model_copy(update={"vm_sku": T4}))
    assert agent_pool_name("gpu", pool) == same != other
    assert len(agent_pool_name("gpupools", pool)) == MAX_POOL_NAME


def test_names_in_azure_come_from_the_stack() -> None:
    names = load({"vmSku": H100}, name="Team_A.prod").names
    assert (names.cluster, names.node_resource_group) == ("ai-on-aks-team-a-prod", "ai-on-aks-team-a-prod-nodes")


def test_pulumi_yaml_describes_every_key_and_no_other() -> None:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text("utf-8"))["config"]
    assert set(declared) == {field.alias for field in INVENTORY.stack_file.model_fields.values()}
    assert all(key["description"] and key["default"] == "" and "type" not in key for key in declared.values())


def test_a_workload_stack_has_the_platform_s_settings_as_its_own() -> None:
    pools = {"gpu": {"vmSku": H100, "count": 3, "labels": {"a": "1"}}}
    operators = {"networkOperator": {"rdmaResource": "hca"}, "localNvmeScratch": {"enabled": False}}
    images = {"registry": "mirror.example.com"}
    storage = {"containers": {"data": {"permissions": "racwdl", "days": 3}}}
    lent = {"pools": pools, "operators": operators, "images": images, "storage": storage}
    consumer = {"platformStack": "dev", "workloads": "nccl-allreduce,sized", "modelSize": "small"}
    settings = load(consumer, name="jobs", others={"dev": platform({**lent, "location": "westus3"})})
    owner = load(lent)
    assert settings.gpu_pools() == owner.gpu_pools()
    assert (settings.operators, settings.storage, settings.images) == (owner.operators, owner.storage, owner.images)
    assert settings.placements["nccl-allreduce"].nodes == 3
    assert settings.shared_platform is not None
    assert str(settings.shared_platform.stack) == "organization/ai-on-aks/dev"


def test_a_workload_stack_may_have_a_mirror_of_its_own() -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook", "images": {"registry": "mine.example.com"}}
    others = {"dev": platform({"vmSku": H100, "images": {"registry": "theirs.example.com"}})}
    assert load(consumer, name="jobs", others=others).images.registry == "mine.example.com"


def test_what_pulumi_yaml_has_by_default_is_not_held_against_a_workload_stack() -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook", "nodeCount": "2", "azure-native:location": "westus3"}
    assert load(consumer, name="jobs", others={"dev": platform({"vmSku": H100})}).placements


def test_a_platform_lends_nothing_of_its_own_workloads() -> None:
    stack = {"vmSku": H100, "workloads": "sized", "modelSize": "small", "workloadOptions": {"sized": {}}}
    lent = platform({**stack, "cluster": {"localAccounts": True}, "charts": {"source": "simulator/charts"}})
    assert set(lent["platform"]["settings"]) == {"vmSku"}


def test_the_settings_of_a_public_gpu_test_suite_are_accepted() -> None:
    """As NVIDIA/aicr has them for AKS (tests/uat/azure/cluster-config.yaml), in the words of this program."""
    pool = {"vmSku": "Standard_ND96isr_H100_v5", "count": 2, "osDiskGb": 512, "maxPods": 100}
    system = {"vmSku": "Standard_D8s_v6", "count": 3, "maxPods": 100}
    found = load(
        {
            "location": "westus",
            "cluster": {
                "kubernetesVersion": "1.35",
                "adminGroupObjectIds": ["00000000-0000-4000-8000-0000000000d1"],
                "authorizedIpRanges": ["203.0.113.0/24"],
                "systemPool": system,
            },
            "pools": {"gpu": pool},
            "tags": {"owner": "uat", "expires": "2026-01-01"},
        }
    )
    assert (found.pools["gpu"].pods, found.cluster.system_pool.sku.vcpus) == (100, 8)
