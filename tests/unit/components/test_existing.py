from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.preflight.existing import check_existing
from components.preflight.existing_system_pool import keep_system_pool, system_pool_refusal
from config.rules.vcpu_quota import Nodes
from config.schema.cluster import ClusterSettings, SystemPool
from config.schema.network import NetworkSettings
from config.schema.storage import StorageSettings
from tests.support import mocked_azure
from tests.support.case_files import case_table
from tests.support.mocked_azure import Azure
from tests.support.mocks import deploy
from tests.support.settings import load, settings_with
from tests.support.sizes import H100

D4, D8 = "Standard_D4ads_v5", "Standard_D8ads_v5"
CONTAINERS: dict[str, Any] = {"containers": {"data": {}}}


def check(azure: Azure, size: str = D4, **storage: object) -> Azure:
    settings = settings_with(
        cluster=ClusterSettings(system_pool=SystemPool(vm_sku=size)),
        storage=StorageSettings.model_validate({**CONTAINERS, **storage}),
    )
    deploy(lambda: check_existing(settings), azure)
    return azure


def test_a_new_stack_looks_up_its_account_by_name() -> None:
    azure = check(Azure())
    (account,) = [arguments for token, arguments in azure.calls if token.endswith(":getStorageAccount")]
    assert account["resourceGroupName"] == "ai-on-aks-test"
    assert account["accountName"].startswith("aionakstest")


def test_does_not_look_up_an_account_without_containers() -> None:
    assert not [token for token, _ in check(Azure(), containers={}).calls if "torageAccount" in token]


@case_table(__file__, "accounts")
def test_rejects_changes_of_an_account_with_the_command_that_keeps_it(
    there: dict[str, Any], wanted: dict[str, Any], keep: str
) -> None:
    azure = Azure(cluster=True, account={"name": "models", "isHnsEnabled": True, **there})
    if not keep:
        check(azure, **wanted)
        return
    with pytest.raises(pulumi.RunError, match=f"pulumi config set -s test --path storage.{keep}\n") as raised:
        check(azure, **wanted)
    assert f"but the storage account models has {keep.split()[1]}." in str(raised.value)


def test_rejects_a_stopped_cluster_with_the_command_that_starts_it() -> None:
    check(Azure(cluster=True, profiles={"powerState": {"code": "Running"}}))
    with pytest.raises(pulumi.RunError, match="is stopped") as refused:
        check(Azure(cluster=True, profiles={"powerState": {"code": "Stopped"}}), size=D8)
    assert "az aks start --resource-group ai-on-aks-test --name ai-on-aks-test\n" in f"{refused.value}\n"
    assert "systemPool" not in str(refused.value)


@case_table(__file__, "versions")
def test_rejects_downgrades_and_skipped_minor_versions(runs: str, wanted: str, why: str, fix: str) -> None:
    azure = Azure(cluster=True, profiles={"currentKubernetesVersion": runs})
    tier: Any = "Premium" if runs.endswith(".100") else "Standard"
    settings = settings_with(cluster=ClusterSettings(kubernetes_version=wanted, tier=tier))
    if not why:
        deploy(lambda: check_existing(settings), azure)
        return
    with pytest.raises(pulumi.RunError, match=f"but the cluster runs {runs}: .*{why}") as raised:
        deploy(lambda: check_existing(settings), azure)
    assert str(raised.value).endswith(f"pulumi config set -s test --path cluster.kubernetesVersion {fix}")


def test_rejects_a_cluster_that_loses_entra() -> None:
    settings = settings_with(cluster=ClusterSettings(entra=False))
    deploy(lambda: check_existing(settings), Azure(cluster=True))
    with pytest.raises(pulumi.RunError, match="which AKS cannot turn off") as raised:
        deploy(lambda: check_existing(settings), Azure(cluster=True, profiles={"aadProfile": {"managed": True}}))
    assert str(raised.value).endswith("pulumi config set -s test --path cluster.entra true")


def test_rejects_another_size_of_the_system_pool() -> None:
    check(Azure(cluster=True, pools={"system": {"vmSize": D4}, "gpu1234": {"vmSize": D8}}))
    check(Azure(cluster=True, pools={"system": {"vmSize": D4.lower()}}))  # ARM keeps the case of names
    with pytest.raises(pulumi.RunError, match=f"but the system pool has nodes of {D8}"):
        check(Azure(cluster=True, pools={"system": {"vmSize": D8}}))


def test_an_existing_system_pool_keeps_its_nodes_unless_they_are_set(warnings: list[str]) -> None:
    azure = Azure(cluster=True, pools={"system": {"vmSize": D4, "count": 2}})

    def kept(**given: Any) -> SystemPool:
        found: list[SystemPool] = []
        settings = settings_with(cluster=ClusterSettings(system_pool=SystemPool(**given)))

        def keep() -> None:
            found.append(keep_system_pool(settings, check_existing(settings).cluster).cluster.system_pool)

        deploy(keep, azure)
        return found[0]

    pool = kept(taint=True)
    assert (pool.vm_sku, pool.count, pool.taint) == (D4, 2, True)
    (warning,) = warnings
    assert "keeps its 2 nodes of Standard_D4ads_v5; new clusters get 3 nodes of Standard_D8ads_v5" in warning
    assert f"systemPool.vmSku {D4} && pulumi config set -s test --path cluster.systemPool.count 2" in warning
    assert kept(vm_sku=D4, count=4).count == 4
    assert len(warnings) == 1


def test_does_not_call_the_nodes_of_the_free_tier_recommended(
    warnings: list[str],
) -> None:
    settings = settings_with(cluster=ClusterSettings(tier="Free"))
    azure = Azure(cluster=True, pools={"system": {"vmSize": D8, "count": 3}})
    deploy(lambda: keep_system_pool(settings, check_existing(settings).cluster) and None, azure)
    assert "keeps its 3 nodes of Standard_D8ads_v5; new clusters get 2 nodes of Standard_D4ads_v5. To" in warnings[0]


def test_the_commands_replace_the_system_pool_with_an_equal_one() -> None:
    text = system_pool_refusal(SystemPool(vm_sku=D8, count=3, taint=True), D4, "dev", "-g group --cluster-name cluster")
    assert f"pulumi config set -s dev --path cluster.systemPool.vmSku {D4}" in text
    steps = [line.strip() for line in text.splitlines() if line.strip().startswith("az ")]
    assert [step.split()[3] for step in steps] == ["add", "delete", "add", "delete"]
    assert [step.split("--name ")[1].split()[0] for step in steps] == ["systemnext", "system", "system", "systemnext"]
    assert f"--node-vm-size {D8} --node-count 3" in steps[2]
    assert steps[2].endswith("--node-taints CriticalAddonsOnly=true:NoSchedule")


def test_the_new_system_pool_has_the_subnet_and_zones_of_the_old_one() -> None:
    group = f"/subscriptions/{mocked_azure.SUBSCRIPTION}/resourceGroups/net"
    subnet = f"{group}/providers/Microsoft.Network/virtualNetworks/hub/subnets/nodes"
    pool = {"vmSize": D8, "vnetSubnetID": subnet, "availabilityZones": ["1", "2"]}
    azure = Azure(cluster=True, pools={"system": pool})
    network = NetworkSettings.model_validate({"id": subnet.partition("/subnets")[0], "nodeSubnet": subnet})
    settings = settings_with(cluster=ClusterSettings(system_pool=SystemPool(vm_sku=D4)), network=network)
    with pytest.raises(pulumi.RunError) as raised:
        deploy(lambda: check_existing(settings), azure)
    steps = [line for line in str(raised.value).splitlines() if " nodepool add " in line]
    assert len(steps) == 2
    assert all(f" --vnet-subnet-id {subnet} --zones 1 2 --name " in f"{step} " for step in steps)


def test_rejects_another_max_pods_of_the_system_pool() -> None:
    azure = Azure(cluster=True, pools={"system": {"vmSize": D4, "maxPods": 250}})

    def check_pods(pods: int | None) -> None:
        pool = SystemPool(vm_sku=D4, max_pods=pods)
        deploy(lambda: check_existing(settings_with(cluster=ClusterSettings(system_pool=pool))), azure)

    check_pods(None)
    check_pods(250)
    with pytest.raises(pulumi.RunError, match="maxPods is 100, but nodes of the system pool have 250") as raised:
        check_pods(100)
    assert "pulumi config set -s test --path cluster.systemPool.maxPods 250" in str(raised.value)
    assert "--max-pods 100 --name system " in str(raised.value)


def test_reads_the_os_channel_of_an_existing_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str | None] = []
    for profile, azure in (
        ({"nodeOSUpgradeChannel": "NodeImage"}, Azure(cluster=True)),
        ({}, Azure(cluster=True)),
        (None, Azure(cluster=True)),
        ({}, Azure()),
    ):
        shown = {**mocked_azure.ADDED["ManagedCluster"], "autoUpgradeProfile": profile}
        monkeypatch.setitem(mocked_azure.ADDED, "ManagedCluster", shown)
        deploy(lambda: found.append(check_existing(settings_with()).node_os_channel), azure)
    assert found == ["NodeImage", "None", "None", None]


def test_reads_the_nodes_of_existing_pools() -> None:
    found: list[dict[str, Nodes]] = []
    spot = {"vmSize": D8, "count": 3, "scaleSetPriority": "Spot"}
    azure = Azure(cluster=True, pools={"system": {"vmSize": D4, "count": 2}, "gpu1234": spot, "new": {}})
    deploy(lambda: found.append(check_existing(settings_with()).pools), azure)
    assert found == [{"system": Nodes(D4, 2), "gpu1234": Nodes(D8, 3, spot=True), "new": Nodes("", 0)}]


def test_other_errors_of_azure_are_reported_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Azure, args: pulumi.runtime.MockCallArgs) -> object:
        if args.token.endswith(":readStackOutputs"):
            return {"outputs": {}}, []
        raise mocked_azure.EngineError('request failed: Status=403 Code="AuthorizationFailed" Message="no"')

    monkeypatch.setattr(Azure, "call", refuse)
    with pytest.raises(pulumi.RunError, match="AuthorizationFailed"):
        check(Azure())


@case_table(__file__, "previews", h100=H100)
def test_a_preview_warns_of_nodes_without_images_and_of_another_registry_tier(
    registry: str, settings: dict[str, Any], expected: list[str], warnings: list[str]
) -> None:
    """An update does not warn: on the simulator, `make up` registers images during it."""
    stack, azure = load(settings, name="test"), Azure(registry=registry)
    deploy(lambda: check_existing(stack), azure)
    assert warnings == []
    deploy(lambda: check_existing(stack), azure, preview=True)
    assert len(warnings) == bool(expected)
    assert [words for words in expected if words not in warnings[0]] == []
    assert "pools.none" not in "".join(warnings)
