"""Names that Azure, Kubernetes and other tools give to settings: a message names the setting, or that none exists."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.alias_generators import to_snake

from config.facts import data
from config.problems.errors import SettingsError
from config.rules.provider_keys import provider_keys
from config.schema.inventory import Inventory
from config.schema.translate import paths_in
from tests.support.settings import H100, INVENTORY, load
from tests.units.config.fix_words import KNOWN, by_hand, fix_of, replaced_by_nothing

UNNEEDED = "cluster.autoscaler.unneededMinutes"
DELAY = "cluster.autoscaler.delayAfterAddMinutes"
TERMINATION = "cluster.autoscaler.maxTerminationSeconds"
SYSTEM_SIZE = "cluster.systemPool.count or cluster.systemPool.vmSku"
TTL, LEAVE_OUT = 'workloadOptions["health-check"].ttlSeconds', 'workloadOptions["health-check"].leaveOut'
PLACES = [
    (key, place)
    for place, keys in {
        UNNEEDED: "scaleDownUnneededTime cluster.scaleDownUnneededTime cluster.autoscaler.scaleDownUnneeded",
        DELAY: "scaleDownDelayAfterAdd cluster.scaleDownDelayAfterAdd cluster.autoscaler.scaleDownDelayAfterAdd",
        TERMINATION: "maxGracefulTerminationSec cluster.autoscaler.maxGracefulTerminationSec",
        "cluster.autoscaler.provisionMinutes": "maxNodeProvisionTime",
        "cluster.autoscaler.unreadyMinutes": "cluster.scaleDownUnreadyTime",
        "cluster.autoscaler.unreadyNodes": "cluster.autoscaler.okTotalUnreadyCount",
        "cluster.autoscaler.unreadyPercent": "maxTotalUnreadyPercentage",
        "registry.sku": "registry.tier registry.skuName registryTier",
        "images.registry": "imageRegistry images.imageRegistry registry.loginServer",
        "images.registry or registry.name or registry.sku": "containerRegistry",
        SYSTEM_SIZE: "cluster.systemPool.size",
        "pools.gpu.count or pools.gpu.vmSku": "pools.gpu.size",
        "pools.gpu.osDiskGb": "pools.gpu.nodeOsdiskSize",
        "pools.gpu.autoscale.max": "pools.gpu.maxNodeCount",
        "pools.<name>.labels": "nodepoolLabels cluster.nodeLabels operators.nodeLabels",
        "operators.kuberay": "operators.kuberayOperator kuberayOperator operators.ray",
        TTL: "ttlSecondsAfterFinished workloadOptions.health-check.ttlSecondsAfterFinished",
        LEAVE_OUT: "workloadOptions.health-check.skip",
        "charts.source": "charts.registry helmRepository",
        "storage.protect": "storage.deleteProtection",
        "storage.sku": "storage.accountReplicationType storage.replicationType",
        "storage.accounts.more.sku": "storage.accounts.more.accountTier",
        "storage.containers.<name>.sizeGib": "storage.quota",
        "cluster.resourceGroup": "storage.resourceGroup registry.resourceGroupName",
        "cluster.identity or storage.auth": "identity",
        "cluster.kubernetesVersion": "pools.gpu.orchestratorVersion k8sVersion",
        "network.jumpBox.sshPublicKey": "cluster.sshPublicKey",
        "network.zones": "network.privateDnsZone",
        "cluster.authorizedIpRanges": "masterAuthorizedNetworks",
    }.items()
    for key in keys.split()
]
NOTHING = """
nodeResourceGroup cluster.nodeResourceGroup pools.gpu.osType pools.gpu.osSku pools.gpu.kubeletDiskType
pools.gpu.gpus pools.gpu.mode network.podSubnetId network.networkPlugin cluster.loadBalancerManagedOutboundIpCount
cluster.extendedLocation cluster.kubeletIdentity storage.keyPolicy storage.routing storage.vnetName
registry.geoReplications workloadOptions.metaseq.ttlSecondsAfterFinished operators.gpuOperator.image
cluster.systemPool.minCount cluster.upgradeChannel nodepoolZones teams.blue.memory
"""


def spellings(key: str) -> list[str]:
    """The key with its last name in camelCase, snake_case, kebab-case and capitals."""
    section, dot, name = key.rpartition(".")
    snake = to_snake(name)
    return [f"{section}{dot}{each}" for each in (name, snake, snake.replace("_", "-"), snake.upper())]


def stack_with(key: str) -> dict[str, Any]:
    """A stack with a value at a path."""
    value: Any = "abc"
    for part in reversed(key.split(".")):
        value = {part: value}
    if "pools" in value:
        value["pools"]["gpu"]["vmSku"] = H100
        return {"cluster": {}, **value}
    return {"cluster": {}, "vmSku": H100, **value}


def shown(key: str) -> str:
    """The path of a key as messages show it."""
    parts = key.split(".")
    quoted = [f'["{part}"]' if "-" in part and index else f".{part}" for index, part in enumerate(parts)]
    return "".join(quoted).removeprefix(".")


def answer(key: str) -> tuple[str, str]:
    """What is wrong with an unknown key, and its fix."""
    with pytest.raises(SettingsError) as caught:
        load(stack_with(key), known=KNOWN)
    (problem,) = (each for each in caught.value.problems if each.path == tuple(key.split(".")))
    return problem.what, problem.fix


@pytest.mark.parametrize(("key", "place"), PLACES)
def test_a_name_from_elsewhere_leads_to_the_setting(key: str, place: str) -> None:
    for each in spellings(key):
        assert answer(each)[1] == by_hand(place, shown(each))


@pytest.mark.parametrize("key", NOTHING.split())
def test_a_name_without_a_setting_leads_to_no_other(key: str) -> None:
    for each in spellings(key):
        assert answer(each) == ("is an unknown key", replaced_by_nothing(shown(each)))


def test_every_place_is_a_setting() -> None:
    options = (paths_in(spec.options, ("workloadOptions", name)) for name, spec in KNOWN.items())
    known = {path for each in options for path in each} | {*paths_in(Inventory(INVENTORY.operators, KNOWN).stack_file)}
    known |= {("workloadOptions", "*", *path[2:]) for path in known if path[0] == "workloadOptions"}
    known |= {(f"azure-native:{key}",) for key in provider_keys("azure-native")}
    assert {tuple(place.split(".")) for place in data.read("other_places.yaml")} - known == {("nothing",)}


def test_an_empty_value_is_removed() -> None:
    key = "cluster.scaleDownUnneededTime"
    assert fix_of({"cluster": {"scaleDownUnneededTime": {}}}) == f"pulumi config rm --path {key}"
