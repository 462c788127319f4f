"""Fixes of wrong settings keep the value that the user has given, or name in words where it belongs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config.facts.gpu_sharing import mig_profiles
from config.facts.skus import catalogue
from config.problems.errors import SettingsError
from tests.support.settings import H100, load
from tests.units.config.fix_words import (
    GROUP,
    KNOWN,
    SPOT,
    by_hand,
    changed,
    chosen,
    fix_of,
    moved,
    replaced_by_nothing,
)

AUTOSCALER = "cluster.autoscaler"


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"nodeCount": "1001"}, "pulumi config set nodeCount 100"),
        ({"nodeCount": "1e2"}, "pulumi config set nodeCount 100"),
        ({"nodeCount": "8 nodes"}, "pulumi config set nodeCount 8"),
        ({"location": "eu-west-1"}, changed("location")),
        ({"location": "us-east-2"}, "pulumi config set location eastus2"),
        ({"cluster": {"nodeOsChannel": False}}, changed("cluster.nodeOsChannel")),
        ({"cluster": {"autoscaler": {"maxTerminationSeconds": "15m"}}}, changed(f"{AUTOSCALER}.maxTerminationSeconds")),
        ({"cluster": {"autoscaler": {"unneededMinutes": "600s"}}}, changed(f"{AUTOSCALER}.unneededMinutes")),
        (
            {"cluster": {"autoscaler": {"unneededMinutes": "15m"}}},
            f"pulumi config set --path {AUTOSCALER}.unneededMinutes 15",
        ),
        ({"teams": {"red": {"gpus": "1 node"}}}, changed("teams.red.gpus")),
        ({"nodeCount": "1,000"}, "change nodeCount in the stack file to what is allowed"),
        (
            {"operators": {"gpuOperator": {"enable": False}}},
            moved("operators.gpuOperator.enabled", "false", "operators.gpuOperator.enable"),
        ),
        (
            {"workloadOptions": {"jupyterLab": {"gpus": 1}}},
            moved("workloadOptions.jupyterlab.gpus", 1, "workloadOptions.jupyterLab"),
        ),
        ({"tags": "CostCenter=4711"}, "pulumi config rm tags && pulumi config set --path tags.CostCenter 4711"),
        ({"tags": "CostCenter"}, "change tags in the stack file to what is allowed"),
        ({"prices": "$60"}, "change prices in the stack file to what is allowed"),
        ({"prices": {H100: "$60"}}, f"pulumi config set --path prices.{H100} 60.0"),
        (
            {"workloads": {"nccl-allreduce": {}}},
            "pulumi config rm workloads && pulumi config set --path 'workloads[0]' nccl-allreduce",
        ),
        ({"cluster": {"tags": {"team": "blue"}}}, moved("tags.team", "blue", "cluster.tags")),
        ({"network": {"nodeSubnet": "nodes"}}, "change network.nodeSubnet in the stack file to what is allowed"),
    ],
    ids=json.dumps,
)
def test_fixes_keep_values(keys: dict[str, Any], fix: str) -> None:
    assert fix_of(keys) == fix


def as_map(path: str) -> str:
    name = path.split(".")[-1]
    return f"write {path} as a map in the stack file, with each entry under its name: {name}: {{<name>: {{...}}}}"


WITH_TEAMS = {"operators": {"kueue": {"enabled": True}}}


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        # a section that has content
        ({"storage": {"protect": False, "containers": [{"name": "data"}]}}, as_map("storage.containers")),
        ({"storage": {"containers": "data"}}, as_map("storage.containers")),
        ({"storage": {"accounts": [{"name": "logs"}]}}, as_map("storage.accounts")),
        ({"pools": [{"name": "gpu", "vmSku": H100}]}, as_map("pools")),
        ({**WITH_TEAMS, "teams": [{"name": "blue", "gpus": 4}]}, as_map("teams")),
        ({"cluster": '{"authorizedIpRanges": "198.51.100.8", "login": "\\ud800"}'}, changed("cluster")),
        ({"storage": '{"protect": true'}, changed("storage")),
        # a general word of a protection in another name
        (
            {"cluster": {"node_resource_group": "nodes"}},
            replaced_by_nothing("cluster.node_resource_group"),
        ),
        ({"gpuCount": 8}, replaced_by_nothing("gpuCount")),
        ({"pools": {"x": {**SPOT, "gpuCount": 8}}}, by_hand("pools.x.count", "pools.x.gpuCount")),
        ({"pools": {"x": {**SPOT, "eviction_policy": "Delete"}}}, replaced_by_nothing("pools.x.eviction_policy")),
        ({"gpuOperator": {"enabled": True}}, moved("operators.gpuOperator.enabled", "true", "gpuOperator")),
        # a key of another level or section
        ({"pools": {"x": {"vmSku": H100, "priority": "Spot"}}}, moved("pools.x.spot", "true", "pools.x.priority")),
        ({"spot": True}, by_hand("pools.<name>.spot", "spot")),
        (
            {"pools": {"x": {"vmSku": H100, "min_count": 0, "max_count": 4}}},
            moved("pools.x.autoscale.max", 4, "pools.x.max_count"),
        ),
        (
            {"operators": {"gpuOperator": {"driver": {"version": "570"}}}},
            replaced_by_nothing("operators.gpuOperator.driver"),
        ),
        ({"cluster": {"identityType": "UserAssigned"}}, by_hand("cluster.identity", "cluster.identityType")),
        ({"subscriptionId": GROUP}, by_hand("azure-native:subscriptionId", "subscriptionId")),
        ({"network": {"vnetId": "/subscriptions/x"}}, by_hand("network.id", "network.vnetId")),
        # values
        ({"pools": {"cpu": {"vmSku": "Standard_D32ads_v5"}}}, changed("pools.cpu.vmSku")),
        ({"pools": {"cpu": {"vmSku": "Standard_D9ds_v6"}}}, changed("pools.cpu.vmSku")),
        ({"pools": {"x": {**SPOT, "osDiskGb": "1TB"}}}, changed("pools.x.osDiskGb")),
        ({"pools": {"x": {**SPOT, "count": -1}}}, changed("pools.x.count")),
        ({"pools": {"x": {**SPOT, "autoscale": True}}}, changed("pools.x.autoscale")),
        (
            {"cluster": {"maintenanceWindow": {"day": "Sunday", "utcOffset": "CET"}}},
            changed("cluster.maintenanceWindow.utcOffset"),
        ),
    ],
    ids=json.dumps,
)
def test_words_replace_a_fix_that_is_not_surely_right(keys: dict[str, Any], fix: str) -> None:
    assert fix_of(keys) == fix


RANGE = "10.244.0.0/16"
POOL = {"vmSku": H100}


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        # names of Azure and Terraform for settings of another section, or of none
        ({"cluster": {"podCidr": RANGE}}, by_hand("network.podRange", "cluster.podCidr")),
        ({"cluster": {"dns_service_ip": "10.0.0.10"}}, replaced_by_nothing("cluster.dns_service_ip")),
        ({"network": {"podRange": RANGE}}, "set network.addressSpace or network.id too"),
        ({"cluster": {"networkPolicy": "calico"}}, moved("network.policy", "calico", "cluster.networkPolicy")),
        ({"cluster": {"nodeResourceGroup": "nodes"}}, replaced_by_nothing("cluster.nodeResourceGroup")),
        ({"network": {"bastion": True}}, by_hand("network.jumpBox", "network.bastion")),
        ({"cluster": {"agentPoolProfiles": [{"name": "a"}]}}, by_hand("pools", "cluster.agentPoolProfiles")),
        # a region or another value that is set in two places
        ({"region": "westus", "azure-native:location": "eastus"}, chosen("azure-native:location", "region")),
        ({"region": "westus", "location": "eastus"}, chosen("location", "region")),
        ({"cluster": {"region": "westus"}, "location": "eastus"}, chosen("location", "cluster.region")),
        ({"region": "westus", "location": "westus"}, "pulumi config rm region"),
        # names of Azure resources
        ({"resourceGroupName": "my-rg"}, moved("cluster.resourceGroup", "my-rg", "resourceGroupName")),
        ({"registryName": "myregistry"}, moved("registry.name", "myregistry", "registryName")),
        ({"accountName": "mystorage"}, moved("storage.accountName", "mystorage", "accountName")),
        ({"vnetName": "net"}, by_hand("network.id", "vnetName")),
        ({"clusterName": "aks"}, replaced_by_nothing("clusterName")),
        ({"cluster": {"name": "aks"}}, replaced_by_nothing("cluster.name")),
        # values of another meaning
        ({"pools": {"x": {**POOL, "gpuInstances": 1}}}, by_hand("pools.x.migProfile", "pools.x.gpuInstances")),
        ({"pools": {"x": {**POOL, "migProfile": "MIG5g"}}}, changed("pools.x.migProfile")),
        (
            {"pools": {"x": {**POOL, "enable_auto_scaling": True}}},
            by_hand("pools.x.autoscale.min and pools.x.autoscale.max", "pools.x.enable_auto_scaling"),
        ),
        (
            {"pools": {"x": {"instanceType": "p5.48xlarge"}}},
            by_hand("pools.x.vmSku", "pools.x.instanceType"),
        ),
        ({"cluster": {"systemPool": {"vmSku": "Standard_D9ds_v6"}}}, changed("cluster.systemPool.vmSku")),
        ({"vmSku": "p4d.24xlarge"}, changed("vmSku")),
        ({"operators": {"scheduler": "kueue"}}, changed("operators.scheduler")),
        (
            {"operators": {"nodeHealth": {"wipeForeign": True}}},
            by_hand("operators.localNvmeScratch.wipeForeign", "operators.nodeHealth.wipeForeign"),
        ),
    ],
    ids=json.dumps,
)
def test_no_command_loses_a_value_or_sets_another(keys: dict[str, Any], fix: str) -> None:
    assert fix_of(keys) == fix


@pytest.mark.parametrize(
    ("keys", "there"),
    [
        ({"nodecount": 3, "node_count": 4}, "nodeCount"),
        ({"node_count": 3, "nodes": 4, "nodecount": 3}, "nodeCount"),
        ({"cluster.resource_group": "a", "cluster.resourcegroup": "b"}, "cluster.resourceGroup"),
        ({"clusterTier": "Free", "cluster.Tier": "Standard"}, "cluster.tier"),
        ({"azureRegion": "westus", "region": "eastus"}, "location"),
    ],
)
def test_no_command_chooses_between_two_spellings(keys: dict[str, Any], there: str) -> None:
    stack: dict[str, Any] = {"vmSku": H100, "cluster": {}}
    for key, value in keys.items():
        section, _, name = key.rpartition(".")
        (stack[section] if section else stack)[name] = value
    words = f"{', '.join(sorted(keys))} have different values: set {there} to the one that you need in the stack file"
    with pytest.raises(SettingsError) as caught:
        load(stack, known=KNOWN)
    assert [problem.fix for problem in caught.value.problems] == [f"{words}, and remove them"] * len(keys)


def test_two_spellings_with_one_value_become_one_key() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "node_count": 3, "nodecount": 3}, known=KNOWN)
    moved_once = "pulumi config set nodeCount 3 && pulumi config rm node_count"
    assert [problem.fix for problem in caught.value.problems] == [moved_once, "pulumi config rm nodecount"]


@pytest.mark.parametrize(
    ("size", "profile", "read"),
    [
        ("Standard_ND96asr_v4", "1g.10gb", "all-1g.10gb"),  # four in each GPU of 40 GB
        (H100, "MIG3g", "all-3g.40gb"),
        (H100, "nvidia.com/mig-1g.10gb", "all-1g.10gb"),
        (H100, "MIG1g", ""),  # all-1g.10gb or all-1g.20gb
        (H100, "1g.12gb", ""),
        (H100, "1g.18gb", ""),
        (H100, "1g.10gb+me", ""),
        ("Standard_ND96asr_v4", "all-1g.20gb", ""),
        ("Standard_ND96isr_H200_v5", "all-1g.10gb", ""),
    ],
)
def test_a_partition_of_another_gpu_is_not_replaced(size: str, profile: str, read: str) -> None:
    key = "pools.gpu.migProfile"
    fix = f"pulumi config set --path {key} {read}" if read else changed(key)
    with pytest.raises(SettingsError) as caught:
        load({"pools": {"gpu": {"vmSku": size, "migProfile": profile}}})
    (problem,) = caught.value.problems
    assert problem.fix == fix
    assert problem.allowed == ", ".join(mig_profiles(catalogue()[size].gpu_product))


@pytest.mark.parametrize("key", ["aks:nodeCount", "nodes", "nodeCuont"])
@pytest.mark.parametrize("count", [2, 4])
def test_no_command_replaces_a_stated_number_of_nodes(key: str, count: int) -> None:
    """Nor where it is the default, which Pulumi.yaml does not hand over."""
    assert fix_of({"nodeCount": count, key: 12}) == chosen("nodeCount", key)
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, key: 12})
    assert caught.value.problems[0].fix == f"pulumi config set nodeCount 12 && pulumi config rm {key}"
