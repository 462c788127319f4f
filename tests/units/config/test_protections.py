"""Suggested fixes never drop, invert or widen a protection, and keep values, whatever name the user knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workloads
from config.problems.errors import SettingsError
from tests.support.settings import H100, load

KNOWN = workloads.find()
GROUP = "00000000-0000-4000-8000-000000000001"
OFFICE = "198.51.100.8/29"
SPOT = {"vmSku": H100, "spot": True}


def changed(path: str) -> str:
    return f"change {path} in the stack file to what is allowed"


def fix_of(keys: dict[str, Any]) -> str:
    """Returns the fix of the first problem of a stack with these keys."""
    pool = {} if "pools" in keys else {"vmSku": H100, "nodeCount": 2}
    with pytest.raises(SettingsError) as caught:
        load(pool | keys, known=KNOWN)
    return caught.value.problems[0].fix


def by_hand(place: str, key: str) -> str:
    return f"set {place} to what you need in the stack file, and remove {key}"


def replaced_by_nothing(key: str) -> str:
    return f"remove {key} if you do not need it: no setting of this program replaces it"


def chosen(place: str, key: str) -> str:
    return f"{place} has another value: keep the one that you need there in the stack file, and remove {key}"


def moved(there: str, value: object, key: str) -> str:
    path = "--path " if "." in key else ""
    return f"pulumi config set --path {there} {value} && pulumi config rm {path}{key}"


RANGES = "'cluster.authorizedIpRanges[0]'"
AUTOSCALER = "cluster.autoscaler"
PRIVATE = (
    " && pulumi config set --path network.addressSpace 10.0.0.0/16 && pulumi config set --path registry.sku Premium"
)


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        # the opposite, in Azure's words
        (
            {"cluster": {"disableLocalAccounts": True}},
            by_hand("cluster.localAccounts (its opposite)", "cluster.disableLocalAccounts"),
        ),
        (
            {"storage": {"publicNetworkAccess": "Disabled"}},
            by_hand("network.private (its opposite)", "storage.publicNetworkAccess"),
        ),
        ({"network": {"public": False}}, by_hand("network.private (its opposite)", "network.public")),
        ({"storage": {"unprotected": True}}, by_hand("storage.protect (its opposite)", "storage.unprotected")),
        (
            {"storage": {"allowSharedKeyAccess": False}},
            by_hand("storage.auth (its opposite)", "storage.allowSharedKeyAccess"),
        ),
        # the wrong section
        ({"cluster": {"private": True}}, moved("network.private", "true", "cluster.private") + PRIVATE),
        ({"network": {"authorizedIpRanges": [OFFICE]}}, moved(RANGES, OFFICE, "network.authorizedIpRanges")),
        ({"storage": {"authorizedIpRanges": [OFFICE]}}, moved(RANGES, OFFICE, "storage.authorizedIpRanges")),
        (
            {"network": {"adminGroupObjectIds": [GROUP]}},
            moved("'cluster.adminGroupObjectIds[0]'", GROUP, "network.adminGroupObjectIds"),
        ),
        ({"storage": {"sas": "user-delegation"}}, by_hand("storage.containers.<name>.sas", "storage.sas")),
        ({"protect": True}, moved("storage.protect", "true", "protect")),
        ({"cluster": {"protect": True}}, by_hand("storage.protect", "cluster.protect")),
        ({"lendingLimit": 0}, by_hand("teams.<name>.lendingLimit", "lendingLimit")),
        (
            {"operators": {"kueue": {"borrowingLimit": 0}}},
            by_hand("teams.<name>.borrowingLimit", "operators.kueue.borrowingLimit"),
        ),
        ({"maintenance": {"day": "Sunday"}}, by_hand("cluster.maintenanceWindow", "maintenance")),
        # names of Azure, Terraform and Kueue
        ({"cluster": {"privateCluster": True}}, by_hand("network.private", "cluster.privateCluster")),
        (
            {"cluster": {"apiServerAccessProfile": {"authorizedIPRanges": [OFFICE], "enablePrivateCluster": True}}},
            by_hand("cluster.authorizedIpRanges or network.private", "cluster.apiServerAccessProfile"),
        ),
        ({"storage": {"networkAcls": {"defaultAction": "Deny"}}}, by_hand("network.private", "storage.networkAcls")),
        ({"storage": {"lock": "CanNotDelete"}}, by_hand("storage.protect", "storage.lock")),
        ({"storage": {"prevent_destroy": True}}, moved("storage.protect", "true", "storage.prevent_destroy")),
        (
            {"storage": {"minimumTlsVersion": "TLS1_2"}},
            replaced_by_nothing("storage.minimumTlsVersion"),
        ),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"nominalQuota": 4}}},
            moved("teams.blue.gpus", 4, "teams.blue.nominalQuota"),
        ),
        # a misspelt key beside the right one
        ({"storage": {"protected": True, "protect": False}}, by_hand("storage.protect", "storage.protected")),
        (
            {"cluster": {"localaccounts": False, "localAccounts": True}},
            by_hand("cluster.localAccounts", "cluster.localaccounts"),
        ),
        ({"cluster.private": True}, by_hand("network.private", "cluster.private")),
        (
            {"storage": {"authentication": "identity"}},
            "pulumi config set --path storage.auth identity && pulumi config rm --path storage.authentication",
        ),
        ({"cluster": {"admins": [GROUP]}}, moved("'cluster.adminGroupObjectIds[0]'", GROUP, "cluster.admins")),
        (
            {"cluster": {"authorizedIpRange": OFFICE}},
            f"pulumi config rm --path cluster.authorizedIpRange && pulumi config set --path {RANGES} {OFFICE}",
        ),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": "eight"}}},
            "change teams.blue.gpus in the stack file to what is allowed",
        ),
        # values that do not fit
        (
            {"storage": {"containers": {"data": {"ays": True}}}},
            by_hand("storage.containers.data.days", "storage.containers.data.ays"),
        ),
        (
            {"storage": {"containers": {"data": {"days": "3d"}}}},
            "pulumi config set --path storage.containers.data.days 3",
        ),
        (
            {"storage": {"containers": {"data": {"days": "12h"}}}},
            "change storage.containers.data.days in the stack file to what is allowed",
        ),
        ({"pools": {"x": {**SPOT, "spotMaxPrice": "$4,50"}}}, "pulumi config set --path pools.x.spotMaxPrice 4.5"),
        (
            {"pools": {"x": {**SPOT, "spotMaxPrice": "cheap"}}},
            "change pools.x.spotMaxPrice in the stack file to what is allowed",
        ),
        (
            {"cluster": {"systemPool": {"taint": "CriticalAddonsOnly=true:NoSchedule"}}},
            "change cluster.systemPool.taint in the stack file to what is allowed",
        ),
        (
            {"network": {"outbound": "UserDefinedRouting"}},
            "set network.outbound to userDefinedRouting with the other settings that it needs",
        ),
        (
            {"network": {"outbound": ["userDefinedRouting"]}},
            "pulumi config set --path network.outbound userDefinedRouting",
        ),
        ({"network": {"outbound": "secret"}}, "change network.outbound in the stack file to what is allowed"),
        (
            {"cluster": {"localAccounts": True, "entra": {"enabled": False}}},
            "pulumi config set --path cluster.entra false",
        ),
        ({"storage": {"identity": True}}, by_hand("storage.auth", "storage.identity")),
        ({"storage": {"allowDelete": False}}, by_hand("storage.protect (its opposite)", "storage.allowDelete")),
        (
            {"operators": {"kueue": {"enabled": True}}, "teams": {"blue": {"gpus": 4, "maxBorrow": 0}}},
            moved("teams.blue.borrowingLimit", 0, "teams.blue.maxBorrow"),
        ),
        (
            {"operators": {"nodeHealth": {"enabled": "disabled"}}},
            "pulumi config set --path operators.nodeHealth.enabled false",
        ),
        # other namespaces
        ({"aks:authorizedIpRanges": [OFFICE]}, moved(RANGES, OFFICE, "aks:authorizedIpRanges")),
        ({"aks:private": True}, moved("network.private", "true", "aks:private") + PRIVATE),
        ({"network:private": True}, moved("network.private", "true", "network:private") + PRIVATE),
        (
            {"aks:disableLocalAccounts": True},
            by_hand("cluster.localAccounts (its opposite)", "aks:disableLocalAccounts"),
        ),
    ],
    ids=json.dumps,
)
def test_no_fix_weakens_a_protection(keys: dict[str, Any], fix: str) -> None:
    assert fix_of(keys) == fix


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"nodeCount": "1001"}, "pulumi config set nodeCount 1000"),
        ({"nodeCount": "1e2"}, "pulumi config set nodeCount 100"),
        ({"nodeCount": "8 nodes"}, "pulumi config set nodeCount 8"),
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
            by_hand("cluster.resourceGroup", "cluster.node_resource_group"),
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
        ({"cluster": {"nodeResourceGroup": "nodes"}}, by_hand("cluster.resourceGroup", "cluster.nodeResourceGroup")),
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


def test_a_key_of_another_namespace_replaces_only_a_default() -> None:
    stack = {"vmSku": H100, "aks:nodeCount": "8"}
    assert fix_of(stack) == "pulumi config set nodeCount 8 && pulumi config rm aks:nodeCount"
    assert fix_of({**stack, "nodeCount": "4"}) == chosen("nodeCount", "aks:nodeCount")
