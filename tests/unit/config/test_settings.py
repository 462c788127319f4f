from __future__ import annotations

from typing import Any

import pytest

from config.rules.mirrors import mirror_problems
from config.schema.operators import Installation
from config.schema.pools import MAX_POOL_NAME, PoolSettings, agent_pool_name
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


@pytest.mark.parametrize("region", ["eastus", "swedencentral", "usgovvirginia", "chinanorth3"])
def test_accepts_regions_of_every_cloud(region: str) -> None:
    assert load({"vmSku": H100, "location": region}).location == region


@pytest.mark.parametrize(
    ("tier", "vm_sku", "count"),
    [("Standard", "Standard_D8ads_v5", 3), ("Premium", "Standard_D8ads_v5", 3), ("Free", "Standard_D4ads_v5", 2)],
)
def test_the_tier_sets_defaults_of_the_system_pool(tier: str, vm_sku: str, count: int) -> None:
    pool = load({"vmSku": H100, "cluster": {"tier": tier}}).cluster.system_pool
    assert (pool.vm_sku, pool.count) == (vm_sku, count)
    pool = load({"vmSku": H100, "cluster": {"tier": tier, "systemPool": {"count": 5}}}).cluster.system_pool
    assert (pool.vm_sku, pool.count, pool.model_fields_set) == (vm_sku, 5, {"count"})


def test_empty_text_is_unset() -> None:
    """All keys in Pulumi.yaml have an empty default, because Pulumi requires keys without one."""
    settings = load({"vmSku": H100, "workloads": "", "cluster": "", "pools": "", "location": ""})
    assert (settings.workloads, settings.location, list(settings.gpu_pools())) == ((), "eastus", ["gpu"])


def test_an_empty_map_is_unset() -> None:
    """`pulumi config rm --path pools.gpu` leaves one."""
    settings = load({"vmSku": H100, "pools": {}, "workloads": "notebook"})
    assert (list(settings.gpu_pools()), list(settings.placements)) == (["gpu"], ["notebook"])


@pytest.mark.parametrize("version", ["1.36", 1.36, "1.36.0", "1.36.99"])
def test_kubernetes_version_may_be_a_number(version: Any) -> None:
    assert load({"vmSku": H100, "cluster": {"kubernetesVersion": version}}).cluster.kubernetes_version == str(version)


def test_the_location_falls_back_to_the_one_of_the_provider() -> None:
    of_provider = load({"vmSku": H100, "azure-native:location": "westus3"})
    assert (of_provider.location, of_provider.location_key) == ("westus3", "azure-native:location")
    assert load({"vmSku": H100, "location": "westus3"}).location_key == load({"vmSku": H100}).location_key == "location"
    assert load({"vmSku": H100, "azure-native:location": "West US 3", "location": "westus3"}).location == "westus3"


@pytest.mark.parametrize(
    "source", ["simulator/charts", "simulator/charts/", "oci://mirror.example.com:5000/charts", ""]
)
def test_charts_may_come_from_a_folder_or_a_registry(source: str) -> None:
    assert load({"vmSku": H100, "charts": {"source": source}}).charts.source == (source or None)


def test_a_folder_of_charts_needs_only_installed_ones() -> None:
    stack = {"vmSku": H100, "charts": {"source": "charts"}, "operators": {"volcano": {"enabled": False}}}
    wanted = Installation(INVENTORY.stack_file.model_validate(stack), INVENTORY.operators)
    assert list(mirror_problems(wanted, lambda path: path.endswith("/Chart.yaml") and "volcano" not in path)) == []
    (problem,) = mirror_problems(wanted, lambda path: path.endswith("/Chart.yaml") and "gpu" not in path)
    assert problem.what == "is 'charts', a folder without gpu-operator/Chart.yaml"


def test_the_pool_name_changes_with_the_size_but_not_with_the_count() -> None:
    pool = PoolSettings(vm_sku=H100)
    same = agent_pool_name("gpu", pool.model_copy(update={"count": 5, "labels": {"a": "b"}}))
    other = agent_pool_name("gpu", pool.model_copy(update={"vm_sku": T4}))
    assert agent_pool_name("gpu", pool) == same != other
    assert len(agent_pool_name("gpupools", pool)) == MAX_POOL_NAME


def test_names_in_azure() -> None:
    names = load({"vmSku": H100}, name="Team_A.prod").names
    assert (names.cluster, names.node_resource_group) == ("ai-on-aks-team-a-prod", "ai-on-aks-team-a-prod-nodes")


def test_a_consumer_stack_has_the_settings_of_its_platform() -> None:
    pools = {"gpu": {"vmSku": H100, "count": 3, "labels": {"a": "1"}}}
    operators = {"networkOperator": {"rdmaResource": "hca"}, "localNvmeScratch": {"enabled": False}}
    images = {"registry": "mirror.example.com"}
    storage = {"containers": {"data": {"permissions": "racwdl", "days": 3}}}
    shared = {"pools": pools, "operators": operators, "images": images, "storage": storage}
    consumer = {"platformStack": "dev", "workloads": "nccl-allreduce,sized", "modelSize": "small"}
    settings = load(consumer, name="jobs", others={"dev": platform({**shared, "location": "westus3"})})
    owner = load(shared)
    assert settings.gpu_pools() == owner.gpu_pools()
    assert (settings.operators, settings.storage, settings.images) == (owner.operators, owner.storage, owner.images)
    assert settings.placements["nccl-allreduce"].nodes == 3
    assert settings.shared_platform is not None
    assert str(settings.shared_platform.stack) == "organization/ai-on-aks/dev"


def test_a_consumer_stack_may_have_another_mirror() -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook", "images": {"registry": "mine.example.com"}}
    others = {"dev": platform({"vmSku": H100, "images": {"registry": "theirs.example.com"}})}
    assert load(consumer, name="jobs", others=others).images.registry == "mine.example.com"


def test_a_consumer_stack_may_have_default_values_of_platform_keys() -> None:
    consumer = {"platformStack": "dev", "workloads": "notebook", "nodeCount": "2", "azure-native:location": "westus3"}
    assert load(consumer, name="jobs", others={"dev": platform({"vmSku": H100})}).placements


def test_the_platform_output_has_no_settings_of_workloads() -> None:
    stack = {"vmSku": H100, "workloads": "sized", "modelSize": "small", "workloadOptions": {"sized": {}}}
    shared = platform({**stack, "cluster": {"localAccounts": True}, "charts": {"source": "simulator/charts"}})
    assert set(shared["platform"]["settings"]) == {"vmSku"}
