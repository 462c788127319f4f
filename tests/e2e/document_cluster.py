from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from simulator.plugins.azure_native import convert
from simulator.plugins.azure_native.resources import DEFINITIONS
from tests.support import golden
from tests.support.arm import SUBSCRIPTION, Arm

DIFFERENCES: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
"""Reasons for different values, by path."""
OWN = {
    *(
        "id",
        "name",
        "resourceGroup",
        "nodeResourceGroup",
        "resourceUid",
        "eTag",
        "fqdn",
        "azurePortalFqdn",
        "dnsPrefix",
    ),
    *("identityProfile", "principalId", "effectiveOutboundIPs", "issuerUrl"),
    *("agentpool", "kubernetes.azure.com/agentpool", "kubernetes.azure.com/cluster", "kubernetes.io/hostname"),
    *("addresses", "bootID", "machineID", "providerID", "systemUUID"),
}


def program_cluster(arm: Arm) -> str:
    declared = golden.reviewed("dev").items()
    inputs = {name.split(" ")[0]: each["inputs"] for name, each in declared if name.startswith("azure-native:")}
    ids: dict[str, str] = {}
    for kind in ("resources:ResourceGroup", "containerservice:ManagedCluster", "containerservice:AgentPool"):
        definition, asked = DEFINITIONS[f"azure-native:{kind}"], inputs[f"azure-native:{kind}"]
        path = convert.path(definition, asked, SUBSCRIPTION.subscription_id)
        answer = arm.call("PUT", path, convert.body(definition, asked, {}), **{"api-version": definition.api_version})
        assert answer.status_code == 201, answer.text
        arm.done()
        ids[kind] = answer.json()["id"]
    return ids["containerservice:ManagedCluster"]


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [flat(inner, f"{path}.{name}".strip(".")) for name, inner in value.items() if name not in OWN]
        return {name: leaf for part in parts for name, leaf in part.items()}
    return {} if value in (None, [], "") else {path: value}


def unexplained(pairs: Iterable[tuple[Any, Any]], reasons: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Returns paths that differ without a reason, and reasons without a difference."""
    flattened = [(flat(ours), flat(theirs)) for ours, theirs in pairs]
    differing = {path for a, b in flattened for path in a.keys() | b.keys() if a.get(path) != b.get(path)}
    explained = {(path, known) for path in differing for known in reasons if f"{path}.".startswith(f"{known}.")}
    return differing - {path for path, _ in explained}, set(reasons) - {known for _, known in explained}
