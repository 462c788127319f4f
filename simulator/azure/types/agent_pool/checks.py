"""What AKS refuses of a pool's own properties, as they are once its defaults are filled in."""

from __future__ import annotations

import math

from config.facts import skus
from config.facts.scheduling import SPOT_LABEL
from config.rules import labels
from simulator.azure.errors import Problem, bad_request, invalid
from simulator.azure.store import Body, Record


def check(properties: Body, name: str, sku: skus.VmSku, *, scaled: bool) -> None:
    """Raises ArmError; `scaled` is whether the autoscaler had the pool before."""
    _check_labels(properties)
    _check_taints(properties)
    _check_spot_upgrades(properties)
    _check_ephemeral_disk(properties, sku)
    checks = {
        "properties.nodeLabels": _label_problem(properties),
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


def _check_labels(properties: Body) -> None:
    """The refusal as Azure/AKS#1538 quotes it."""
    for key, value in properties.get("nodeLabels", {}).items():
        if not (labels.is_key(key) and labels.is_value(value)):
            message = (
                f"Node label '{key}: {value}' does not meet syntax and character specifications. Please see "
                "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ for more details."
            )
            raise bad_request(message, target="properties.nodeLabels")


def _check_taints(properties: Body) -> None:
    """Those that no API server takes. That AKS looks at them says Azure/AKS#1412; the words are ours."""
    seen: set[tuple[str, str]] = set()
    for taint in properties.get("nodeTaints", []):
        pair, _, effect = taint.rpartition(":")
        key, _, value = pair.partition("=")
        if not (labels.is_key(key) and labels.is_value(value)) or (key, effect) in seen:
            message = f"Node taint '{taint}' is invalid: key and value as of labels, each key and effect once."
            raise bad_request(message, code="InvalidParameter", target="properties.nodeTaints")
        seen.add((key, effect))


def _label_problem(properties: Body) -> str:
    spot = properties.get("scaleSetPriority") == "Spot"
    for label in properties.get("nodeLabels", {}):
        reserved = label.startswith(("kubernetes.azure.com/", "kubernetes.io/")) or ".kubernetes.io/" in label
        if reserved and not (spot and label == SPOT_LABEL):
            return f"label '{label}' has a prefix that AKS or Kubernetes reserves."
    return ""


def _autoscale_problem(properties: Body, *, scaled: bool) -> str:
    """`scaled` is whether it was before: other bounds are then taken with the count that it has, and moved to later."""
    least, most = properties.get("minCount"), properties.get("maxCount")
    if not is_scaled(properties):
        return "minCount and maxCount need enableAutoScaling." if least is not None or most is not None else ""
    if least is None or most is None:
        return "enableAutoScaling needs minCount and maxCount."
    if not scaled and not least <= properties["count"] <= most:
        # The words are AKS's (kubernetes-sigs/cluster-api-provider-azure#5947).
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
    """AKS's page on Spot node pools (Limitations), in our words: nobody quotes Azure's."""
    price = properties.get("spotMaxPrice", -1)
    if price == -1 or (price > 0 and round(price, 5) == price):
        return ""
    return f"spotMaxPrice {price} must be -1, or a positive value with up to five decimal places."


def _deallocation_problem(properties: Body) -> str:
    if properties["osDiskType"] == "Ephemeral" and properties["scaleDownMode"] == "Deallocate":
        return "scaleDownMode Deallocate needs osDiskType Managed."
    return ""


def _check_ephemeral_disk(properties: Body, sku: skus.VmSku) -> None:
    """As Azure/AKS#2694 and MicrosoftDocs/azure-docs#115366 quote the refusals."""
    if properties["osDiskType"] != "Ephemeral" or sku.local_gib >= properties["osDiskSizeGB"]:
        return
    if not sku.local_gib:
        message = f"The Virtual Machine size {sku.name} does not support Ephemeral OS disk."
        raise bad_request(message, code="VMSizeDoesNotSupportEphemeralOS")
    cache, temporary, needed = (gib * 2**30 for gib in (sku.cache_gib, sku.temp_gib, properties["osDiskSizeGB"]))
    message = (
        f"The virtual machine size {sku.name} has a cache size of {cache} bytes and temporary disk size of {temporary} "
        f"bytes, but the OS disk requires {needed} bytes. "
        "Use a VM size with larger cache, larger temp disk, or disable ephemeral OS."
    )
    raise bad_request(message, code="VMCannotFitEphemeralOSDisk")


def _check_spot_upgrades(properties: Body) -> None:
    """The two refusals as hashicorp/terraform-provider-azurerm#19355 and #31129 quote them."""
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
    """Rules of AKS's page on rolling upgrades, in our words: nobody quotes Azure's."""
    settings = properties.get("upgradeSettings", {})
    if is_system(properties) and _amount(settings.get("maxUnavailable", "0"), 100):
        return "a system pool cannot have maxUnavailable."
    if "maxSurge" in settings and not _amount(settings["maxSurge"], 100):
        return "" if _amount(settings.get("maxUnavailable", "0"), 100) else "without maxSurge it needs maxUnavailable."
    return ""


def surge(properties: Body, existing: Record | None) -> int:
    """Nodes that an upgrade must add; 0 for what is no upgrade, and for one in place.

    From Kubernetes 1.35 on, AKS goes on with one where there is no quota for more (its page on rolling upgrades).
    """
    if existing is None or existing.properties["orchestratorVersion"] == properties["orchestratorVersion"]:
        return 0
    return min(_amount(properties.get("upgradeSettings", {}).get("maxSurge", "0"), properties["count"]), 1)


def _amount(text: str, of: int) -> int:
    """A number, or a percentage, rounded up."""
    return math.ceil(int(text[:-1]) * of / 100) if text.endswith("%") else min(int(text), of)


def _gpu_problem(properties: Body, sku: skus.VmSku) -> str:
    if not sku.gpus and ("gpuProfile" in properties or "gpuInstanceProfile" in properties):
        return f"{sku.name} has no GPU: leave gpuProfile and gpuInstanceProfile out."
    driver = properties.get("gpuProfile", {}).get("driver", "Install")
    if sku.gpu_vendor == "amd" and driver == "Install":
        return f"{sku.name} needs gpuProfile.driver None: AKS installs no AMD drivers."
    return ""


def is_scaled(properties: Body) -> bool:
    return bool(properties.get("enableAutoScaling"))


def is_system(properties: Body) -> bool:
    return bool(properties.get("mode") == "System")
