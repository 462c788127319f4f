"""What Azure has already and cannot change is found before anything is declared."""

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


def test_a_new_stack_has_nothing_to_ask_for() -> None:
    azure = check(Azure())
    (account,) = [arguments for token, arguments in azure.calls if token.endswith(":getStorageAccount")]
    assert account["resourceGroupName"] == "ai-on-aks-test"
    assert account["accountName"].startswith("aionakstest")


def test_without_containers_there_is_no_account() -> None:
    assert not [token for token, _ in check(Azure(), containers={}).calls if "torageAccount" in token]


@case_table(__file__, "accounts")
def test_an_account_that_cannot_change_is_kept_by_a_line(
    there: dict[str, Any], wanted: dict[str, Any], keep: str
) -> None:
    azure = Azure(cluster=True, account={"name": "models", "isHnsEnabled": True, **there})
    if not keep:
        check(azure, **wanted)
        return
    with pytest.raises(pulumi.RunError, match=f"pulumi config set -s test --path storage.{keep}\n") as raised:
        check(azure, **wanted)
    assert f"but the storage account models has {keep.split()[1]}." in str(raised.value)


def test_a_stopped_cluster_is_refused_with_the_command_that_starts_it() -> None:
    check(Azure(cluster=True, profiles={"powerState": {"code": "Running"}}))
    with pytest.raises(pulumi.RunError, match="is stopped") as refused:
        check(Azure(cluster=True, profiles={"powerState": {"code": "Stopped"}}), size=D8)
    assert "az aks start --resource-group ai-on-aks-test --name ai-on-aks-test\n" in f"{refused.value}\n"
    assert "systemPool" not in str(refused.value)


@case_table(__file__, "versions")
def test_a_cluster_goes_one_minor_version_forward_and_none_back(runs: str, wanted: str, why: str, fix: str) -> None:
    azure = Azure(cluster=True, profiles={"currentKubernetesVersion": runs})
    tier: Any = "Premium" if runs.endswith(".100") else "Standard"
    settings = settings_with(cluster=ClusterSettings(kubernetes_version=wanted, tier=tier))
    if not why:
        deploy(lambda: check_existing(settings), azure)
        return
    with pytest.raises(pulumi.RunError, match=f"but the cluster runs {runs}: .*{why}") as raised:
        deploy(lambda: check_existing(settings), azure)
    assert str(raised.value).endswith(f"pulumi config set -s test --path cluster.kubernetesVersion {fix}")


def test_a_cluster_with_entra_keeps_it() -> None:
    settings = settings_with(cluster=ClusterSettings(entra=False))
    deploy(lambda: check_existing(settings), Azure(cluster=True))
    with pytest.raises(pulumi.RunError, match="which AKS never turns off") as raised:
        deploy(lambda: check_existing(settings), Azure(cluster=True, profiles={"aadProfile": {"managed": True}}))
    assert str(raised.value).endswith("pulumi config set -s test --path cluster.entra true")


def test_a_system_pool_of_another_size_is_told_the_way() -> None:
    check(Azure(cluster=True, pools={"system": {"vmSize": D4}, "gpu1234": {"vmSize": D8}}))
    check(Azure(cluster=True, pools={"system": {"vmSize": D4.lower()}}))  # ARM keeps the case that it was given
    with pytest.raises(pulumi.RunError, match=f"but the system pool has nodes of {D8}"):
        check(Azure(cluster=True, pools={"system": {"vmSize": D8}}))


def test_a_system_pool_that_is_up_keeps_its_nodes_unless_others_are_set(warnings: list[str]) -> None:
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
    assert "keeps its 2 nodes of Standard_D4ads_v5; new clusters get 3 of Standard_D8ads_v5" in warning
    assert f"systemPool.vmSku {D4} && pulumi config set -s test --path cluster.systemPool.count 2" in warning
    assert kept(vm_sku=D4, count=4).count == 4
    assert len(warnings) == 1


def test_a_cluster_of_the_tier_free_is_not_said_to_have_fewer_nodes_than_aks_recommends(
    warnings: list[str],
) -> None:
    settings = settings_with(cluster=ClusterSettings(tier="Free"))
    azure = Azure(cluster=True, pools={"system": {"vmSize": D8, "count": 3}})
    deploy(lambda: keep_system_pool(settings, check_existing(settings).cluster) and None, azure)
    assert "keeps its 3 nodes of Standard_D8ads_v5; new clusters get 2 of Standard_D4ads_v5. Set" in warnings[0]


@pytest.mark.parametrize(("tier", "nodes"), [("Standard", (D8, 3)), ("Premium", (D8, 3)), ("Free", (D4, 2))])
def test_the_tier_sets_the_default_of_the_system_pool(tier: str, nodes: tuple[str, int]) -> None:
    pool = ClusterSettings.model_validate({"tier": tier}).system_pool
    assert (pool.vm_sku, pool.count) == nodes
    stated = ClusterSettings.model_validate({"tier": tier, "systemPool": {"count": 5}}).system_pool
    assert (stated.vm_sku, stated.count, stated.model_fields_set) == (nodes[0], 5, {"count"})


def test_the_way_ends_with_a_pool_as_the_program_makes_it() -> None:
    text = system_pool_refusal(SystemPool(vm_sku=D8, count=3, taint=True), D4, "dev", "-g group --cluster-name cluster")
    assert f"pulumi config set -s dev --path cluster.systemPool.vmSku {D4}" in text
    steps = [line.strip() for line in text.splitlines() if line.strip().startswith("az ")]
    assert [step.split()[3] for step in steps] == ["add", "delete", "add", "delete"]
    assert [step.split("--name ")[1].split()[0] for step in steps] == ["systemnext", "system", "system", "systemnext"]
    assert f"--node-vm-size {D8} --node-count 3" in steps[2]
    assert steps[2].endswith("--node-taints CriticalAddonsOnly=true:NoSchedule")


def test_the_new_system_pool_gets_the_subnet_and_the_zones_of_the_old_one() -> None:
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


def test_a_system_pool_with_other_pods_is_told_the_way() -> None:
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


def test_the_channel_of_a_cluster_that_is_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_pools_have_is_found() -> None:
    found: list[dict[str, Nodes]] = []
    spot = {"vmSize": D8, "count": 3, "scaleSetPriority": "Spot"}
    azure = Azure(cluster=True, pools={"system": {"vmSize": D4, "count": 2}, "gpu1234": spot, "new": {}})
    deploy(lambda: found.append(check_existing(settings_with()).pools), azure)
    assert found == [{"system": Nodes(D4, 2), "gpu1234": Nodes(D8, 3, spot=True), "new": Nodes("", 0)}]


def test_every_other_refusal_of_azure_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Azure, args: pulumi.runtime.MockCallArgs) -> object:
        if args.token.endswith(":readStackOutputs"):
            return {"outputs": {}}, []
        raise mocked_azure.EngineError('request failed: Status=403 Code="AuthorizationFailed" Message="no"')

    monkeypatch.setattr(Azure, "call", refuse)
    with pytest.raises(pulumi.RunError, match="AuthorizationFailed"):
        check(Azure())


@case_table(__file__, "previews", h100=H100)
def test_a_preview_tells_of_nodes_that_would_wait_for_images_and_of_another_tier(
    registry: str, settings: dict[str, Any], expected: list[str], warnings: list[str]
) -> None:
    """In an update it is late: `make up` on the simulator registers the images meanwhile."""
    stack, azure = load(settings, name="test"), Azure(registry=registry)
    deploy(lambda: check_existing(stack), azure)
    assert warnings == []
    deploy(lambda: check_existing(stack), azure, preview=True)
    assert len(warnings) == bool(expected)
    assert [words for words in expected if words not in warnings[0]] == []
    assert "pools.none" not in "".join(warnings)
