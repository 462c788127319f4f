"""AKS's checks of a pool's properties, which must contain the defaults."""

from __future__ import annotations

import math

from config.data import skus
from simulator.azure.errors import Problem, bad_request, invalid
from simulator.azure.store import Body, Record
from simulator.azure.types.agent_pool import labels, os_disks

_SYSTEM_PODS = 30
VERSIONS_HELP = (
    "is not supported in this region. Please use [az aks get-versions] command to get the supported version list "
    "in this region. For more information, please check https://aka.ms/supported-version-list"
)


def check(properties: Body, name: str, sku: skus.VmSku, *, scaled: bool) -> None:
    """Raises ArmError for invalid properties. `scaled` is whether the pool was autoscaled before."""
    labels.check(properties)
    _check_spot_upgrades(properties)
    os_disks.check(properties, sku)
    checks = {
        "properties.minCount": _autoscale_problem(properties, scaled=scaled),
        "properties.scaleSetEvictionPolicy": _spot_problem(properties),
        "properties.spotMaxPrice": _price_problem(properties),
        "properties.scaleDownMode": _deallocation_problem(properties),
        "properties.gpuProfile": _gpu_problem(properties, sku),
        "properties.upgradeSettings": _upgrade_problem(properties),
    }
    problems = [Problem(path, f"Agent pool '{name}': {text}") for path, text in checks.items() if text]
    if problems:
        raise invalid(problems)


def _autoscale_problem(properties: Body, *, scaled: bool) -> str:
    """If the pool was autoscaled before, AKS accepts bounds that exclude the count, and changes the count later."""
    least, most = properties.get("minCount"), properties.get("maxCount")
    if not is_scaled(properties):
        return "minCount and maxCount need enableAutoScaling." if least is not None or most is not None else ""
    if least is None or most is None:
        return "enableAutoScaling needs minCount and maxCount."
    if not scaled and not least <= properties["count"] <= most:
        # AKS's text (kubernetes-sigs/cluster-api-provider-azure#5947).
        return (
            f"agentPoolProfile.count was {properties['count']}. It must be greater or equal to minCount:{least} and "
            f"less than or equal to maxCount:{most}."
        )
    return ""


def _spot_problem(properties: Body) -> str:
    if properties.get("scaleSetPriority") != "Spot":
        given = [name for name in ("scaleSetEvictionPolicy", "spotMaxPrice") if name in properties]
        return f"{' and '.join(given)} can only be set with scaleSetPriority Spot." if given else ""
    return "a Spot pool cannot have mode System." if is_system(properties) else ""


def _price_problem(properties: Body) -> str:
    """Source: AKS's page on Spot node pools, Limitations. AKS's text is unknown."""
    price = properties.get("spotMaxPrice", -1)
    if price == -1 or (price > 0 and round(price, 5) == price):
        return ""
    return f"spotMaxPrice {price} must be -1, or a positive value with up to five decimal places."


def _deallocation_problem(properties: Body) -> str:
    if properties["osDiskType"] == "Ephemeral" and properties["scaleDownMode"] == "Deallocate":
        return "scaleDownMode Deallocate needs osDiskType Managed."
    return ""


def _check_spot_upgrades(properties: Body) -> None:
    """Error texts: hashicorp/terraform-provider-azurerm#19355 and #31129."""
    settings = properties.get("upgradeSettings", {})
    more = " Please see https://aka.ms/aks-naming-rules for more details."
    for name, target, what in (
        ("maxSurge", "agentPoolProfile.upgrade.maxSurge", f"max surge.{more}"),
        ("maxUnavailable", "agentPoolProfile.upgradeSettings.maxUnavailable", "maxUnavailable."),
    ):
        if properties.get("scaleSetPriority") == "Spot" and settings.get(name):
            message = f"The value of parameter {target} is invalid. Error details: Spot pools can't set {what}"
            raise bad_request(message, code="InvalidParameter", target=target)


def _upgrade_problem(properties: Body) -> str:
    """Source: AKS's page on rolling upgrades. AKS's text is unknown."""
    settings = properties.get("upgradeSettings", {})
    if is_system(properties) and _amount(settings.get("maxUnavailable", "0"), 100):
        return "a system pool cannot have maxUnavailable."
    if "maxSurge" in settings and not _amount(settings["maxSurge"], 100):
        return "" if _amount(settings.get("maxUnavailable", "0"), 100) else "without maxSurge it needs maxUnavailable."
    return ""


def surge(properties: Body, existing: Record | None) -> int:
    """Returns how many nodes an update must add: 1 for a version upgrade with surge nodes, else 0.

    Since Kubernetes 1.35, AKS continues with one surge node if the quota is too small (page on rolling upgrades).
    """
    if existing is None or existing.properties["orchestratorVersion"] == properties["orchestratorVersion"]:
        return 0
    return min(_amount(properties.get("upgradeSettings", {}).get("maxSurge", "0"), properties["count"]), 1)


def _amount(text: str, of: int) -> int:
    return math.ceil(int(text[:-1]) * of / 100) if text.endswith("%") else min(int(text), of)


def _gpu_problem(properties: Body, sku: skus.VmSku) -> str:
    if not sku.gpus and ("gpuProfile" in properties or "gpuInstanceProfile" in properties):
        return f"{sku.name} has no GPU: leave gpuProfile and gpuInstanceProfile out."
    driver = properties.get("gpuProfile", {}).get("driver", "Install")
    if sku.gpu_vendor == "amd" and driver == "Install":
        return f"{sku.name} needs gpuProfile.driver None: AKS installs no AMD drivers."
    return ""


def check_system(properties: Body, existing: Record | None) -> None:
    """Raises ArmError for a system pool without nodes, or a new system pool that can run fewer than 30 pods.

    Sources: AKS's page "Manage system node pools", and "Configure maximum - new clusters" in the page on Azure CNI. An
    existing pool can shrink (Azure/AKS#1422). The error text is from Azure/AKS#931, with the reason added.
    """
    if properties["count"] < 1:
        message = "A system agent pool must have at least one node."
        raise bad_request(message, code="InvalidParameter", target="properties.count")
    if is_scaled(properties) and properties["minCount"] < 1:
        message = (  # rancher/dashboard#11922
            "agentPoolProfile.minCount was 0. It must be greater or equal to minCount:1 and less than or equal to "
            "maxCount:1000. If allowedMinCount was expected to be 0 but is 1: 1) The nodepool is a VMAS pool. 2) api "
            "Version is less than 2020-03-01. 3) The node is a system pool."
        )
        raise bad_request(message, code="InvalidParameter", target="agentPoolProfile.minCount")
    pods = properties["count"] * properties["maxPods"]
    if pods < _SYSTEM_PODS and not (existing and is_system(existing.properties)):
        message = (
            f"The value of parameter maxPods is invalid: all nodes of a system pool must take {_SYSTEM_PODS} pods, not "
            f"{pods}."
        )
        raise bad_request(message, code="InvalidParameter", target="properties.maxPods")


def is_scaled(properties: Body) -> bool:
    return bool(properties.get("enableAutoScaling"))


def is_system(properties: Body) -> bool:
    return bool(properties.get("mode") == "System")
