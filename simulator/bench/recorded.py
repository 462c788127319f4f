"""Converts a deployment's resources for the bare program in `bare/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simulator.bench.deployment import label

Entry = dict[str, Any]
_CLUSTER = "azure-native:containerservice:ManagedCluster"
_PROVIDER = "pulumi:providers:kubernetes"
_STACK = "pulumi:pulumi:Stack"
_SECRET = "4dabf18193072939515e22adb298388d"  # noqa: S105 - Pulumi's mark of secrets in exported state
_PLAIN = "plaintext"
_PLUGINS = {"__defaults", "azureApiVersion"}
"""Inputs that plugins add themselves."""


def entries(export: Mapping[str, Any]) -> list[Entry]:
    """Returns every resource, including components, in the order of the state: dependencies come first.

    `export` is the output of `pulumi stack export --show-secrets`.
    """
    resources = export["deployment"]["resources"]
    kept = [found for found in resources if found["type"] != _STACK and not _default_provider(found)]
    labels = {found["urn"]: label(found["urn"]) for found in kept}
    return [_entry(found, labels, resources) for found in kept]


def _entry(resource: Mapping[str, Any], labels: Mapping[str, str], resources: list[dict[str, Any]]) -> Entry:
    provider = str(resource.get("provider", "")).rpartition("::")[0]
    kind = resource["type"]
    entry = {
        "label": labels[resource["urn"]],
        "type": kind,
        "custom": bool(resource.get("custom")),
        "name": resource["urn"].rpartition("::")[2],
        "inputs": opened(resource.get("inputs") or {}),
        "after": sorted({labels[urn] for urn in resource.get("dependencies") or [] if urn in labels}),
        "provider": labels.get(provider, ""),
        "retained": bool(resource.get("retainOnDelete")),
    }
    if kind == _PROVIDER:
        cluster = next(found for found in resources if found["type"] == _CLUSTER)
        names = (cluster["inputs"]["resourceGroupName"], cluster["inputs"]["resourceName"])
        entry |= {"inputs": {}, "cluster": label(cluster["urn"]), "names": names}
    return entry


def opened(value: Any) -> Any:
    """Returns the value as a program passes it: with plain secrets, and without inputs that plugins add."""
    if isinstance(value, dict):
        if _SECRET in value:
            return json.loads(value[_PLAIN])
        return {key: opened(item) for key, item in value.items() if key not in _PLUGINS}
    return [opened(item) for item in value] if isinstance(value, list) else value


def _default_provider(resource: Mapping[str, Any]) -> bool:
    return str(resource["type"]).startswith("pulumi:providers:") and resource["type"] != _PROVIDER
