"""What counts as a change, and which changes replace, as in pulumi-azure-native.

The rules are in provider/pkg/provider/diff.go and in Diff of provider.go.
"""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.azure_native.resources import DEFINITIONS
from simulator.plugins.marshal import UNKNOWN, Properties
from tests.support.azure_plugin import CLUSTER, GROUP, POOL, ROLE, AzurePlugin, cluster_inputs, pool_inputs

Kind = provider_pb2.PropertyDiff
NETWORK = "azure-native:network:VirtualNetwork"
KEYS = {"ssh": {"publicKeys": [{"keyData": "a"}]}}


def sku(name: str, tier: str, **more: str) -> Properties:
    return {"sku": {"name": name, "tier": tier, **more}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"resourceGroupName": "rg"}, {"resourceGroupName": "RG"}),
        ({"location": "West US 2"}, {"location": "westus2"}),
        (sku("Basic", "Paid"), sku("Base", "Standard")),
        (sku("Base", "Free"), sku("Basic", "Free")),
        ({"networkProfile": {"podCidr": None}}, {"networkProfile": {}}),
        ({"agentPoolProfiles": [{"name": "a", "count": None}]}, {"agentPoolProfiles": [{"name": "a"}]}),
        ({"addonProfiles": {"__defaults": []}}, {"addonProfiles": {}}),
    ],
)
def test_no_change(plugin: AzurePlugin, old: Properties, new: Properties) -> None:
    for olds, news in ((old, new), (new, old)):
        answer = plugin.diff(CLUSTER, cluster_inputs(**olds), cluster_inputs(**news))
        assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


@pytest.mark.parametrize(
    ("old", "new", "path", "kind"),
    [
        ({"resourceGroupName": "rg"}, {"resourceGroupName": "rg2"}, "resourceGroupName", Kind.UPDATE_REPLACE),
        ({"resourceName": "aks"}, {"resourceName": "AKS"}, "resourceName", Kind.UPDATE_REPLACE),
        (sku("Base", "Free"), sku("Basic", "Paid"), "sku.name", Kind.UPDATE),
        (sku("Basic", "Free"), sku("Base", "Standard"), "sku.tier", Kind.UPDATE),
        (sku("Base", "Free"), sku("Basic", "Free", size="x"), "sku.name", Kind.UPDATE),
        ({"sku": {"name": "Base"}}, {"sku": {"name": "Basic"}}, "sku.name", Kind.UPDATE),
        (sku("Base", "Free"), {"sku": UNKNOWN}, "sku", Kind.UPDATE),
        ({"tags": {"region": "West US"}}, {"tags": {"region": "westus"}}, "tags.region", Kind.UPDATE),
        # In an object that replaces, updates replace at any depth, in its lists too; what is added or gone does not.
        ({"linuxProfile": KEYS}, {"linuxProfile": {"ssh": {"publicKeys": [{"keyData": "b"}]}}},
         "linuxProfile.ssh.publicKeys[0].keyData", Kind.UPDATE_REPLACE),
        ({"linuxProfile": KEYS}, {"linuxProfile": KEYS | {"adminUsername": "a"}},
         "linuxProfile.adminUsername", Kind.ADD),
        ({"linuxProfile": KEYS}, {"linuxProfile": {"ssh": {"publicKeys": []}}},
         "linuxProfile.ssh.publicKeys[0]", Kind.DELETE),
        ({}, {"linuxProfile": KEYS}, "linuxProfile", Kind.ADD_REPLACE),
        # Of a list that replaces, only the whole of it does.
        ({"networkProfile": {"serviceCidrs": ["10.0.0.0/16"]}}, {"networkProfile": {"serviceCidrs": ["10.1.0.0/16"]}},
         "networkProfile.serviceCidrs[0]", Kind.UPDATE),
        ({"networkProfile": {"serviceCidrs": ["10.0.0.0/16"]}}, {"networkProfile": {}},
         "networkProfile.serviceCidrs", Kind.DELETE_REPLACE),
        # What replaces a pool as a resource does not replace the cluster.
        ({"agentPoolProfiles": [{"name": "a", "vmSize": "x"}]}, {"agentPoolProfiles": [{"name": "a", "vmSize": "y"}]},
         "agentPoolProfiles[0].vmSize", Kind.UPDATE),
        ({"tags": {"a": 1}}, {"tags": {"a": True}}, "tags.a", Kind.UPDATE),
    ],
)  # fmt: skip
def test_change(plugin: AzurePlugin, old: Properties, new: Properties, path: str, kind: int) -> None:
    answer = plugin.diff(CLUSTER, cluster_inputs(**old), cluster_inputs(**new))
    assert answer.detailedDiff[path].kind == kind
    assert (path in answer.replaces) == (kind not in (Kind.ADD, Kind.UPDATE, Kind.DELETE))
    assert path.split(".")[0] in answer.diffs


@pytest.mark.parametrize(("shown", "kind"), [({"gpuInstanceProfile": "MIG1g"}, Kind.ADD), ({}, Kind.ADD_REPLACE)])
def test_value_that_azure_has_already_replaces_nothing(plugin: AzurePlugin, shown: Properties, kind: int) -> None:
    news = pool_inputs(gpuInstanceProfile="MIG1g")
    answer = plugin.diff(POOL, pool_inputs(), news, state=pool_inputs(**shown))
    assert answer.detailedDiff["gpuInstanceProfile"].kind == kind
    assert list(answer.replaces) == ([] if shown else ["gpuInstanceProfile"])


@pytest.mark.parametrize(
    ("token", "olds", "added", "changes"),
    [
        (NETWORK, {"virtualNetworkName": "n"}, {"enableVmProtection": False, "enableDdosProtection": False}, False),
        (NETWORK, {"virtualNetworkName": "n"}, {"enableVmProtection": True}, True),
        (NETWORK, {"enableVmProtection": True}, {"enableVmProtection": False}, True),
        (ROLE, {"principalId": "p"}, {"principalType": "User"}, False),
        (ROLE, {"principalId": "p"}, {"principalType": "ServicePrincipal"}, True),
    ],
)
def test_default_of_the_sdk_that_is_added_is_no_change(
    plugin: AzurePlugin, token: str, olds: Properties, added: dict[str, Any], changes: bool
) -> None:
    answer = plugin.diff(token, olds, olds | added)
    assert (answer.changes == provider_pb2.DiffResponse.DIFF_SOME) == changes


def test_api_version_of_an_import_is_that_of_the_state(plugin: AzurePlugin) -> None:
    version = {"azureApiVersion": DEFINITIONS[GROUP].api_version}
    olds = {"resourceGroupName": "rg", "location": "eastus"}
    for state, changes in (
        (olds | version, provider_pb2.DiffResponse.DIFF_NONE),
        (olds, provider_pb2.DiffResponse.DIFF_SOME),
        (olds | {"azureApiVersion": "2020-10-01"}, provider_pb2.DiffResponse.DIFF_SOME),
    ):
        assert plugin.diff(GROUP, olds, olds | version, state=state).changes == changes
