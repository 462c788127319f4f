"""The provider's settings, from its inputs or the environment (PULUMI_K8S_...)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GOES_ON = "SIMULATOR_GOES_ON"
"""An environment variable, which `make up` and `make down` set to resume a failed update.

The official plugin can only upsert all objects, and needs a refresh if a release is gone.
"""
_PREFIX = "kubernetes:config:"
# Settings of the official plugin that this emulation rejects, each with the reason.
UNSUPPORTED = {
    "renderYamlToDirectory": "rendering to YAML needs the official plugin",
    "alwaysRender": "rendering to YAML needs the official plugin",
    "skipUpdateUnreachable": "updating past an unreachable cluster needs the official plugin",
}


@dataclass(frozen=True)
class Options:
    """The user's settings. A boolean that is not set comes from the environment, or is False."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    delete_unreachable: bool = False
    patch_force: bool = False
    upsert: bool = False
    goes_on: bool = False
    """Whether a killed plugin may have made changes that the engine did not record.

    If so, Create updates an object of this plugin, and Delete accepts a missing release.
    """
    config_map_mutable: bool = False
    secret_mutable: bool = False
    helm: Mapping[str, str] = field(default_factory=dict)  # helmReleaseSettings: driver, repositoryCache, ...

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Options:
        given = {name.removeprefix(_PREFIX): value for name, value in variables.items()}
        return cls(
            kubeconfig=given.get("kubeconfig", ""),
            context=given.get("context", ""),
            cluster=given.get("cluster", ""),
            namespace=given.get("namespace", ""),
            delete_unreachable=_flag(given, "deleteUnreachable", "DELETE_UNREACHABLE"),
            patch_force=_flag(given, "enablePatchForce", "ENABLE_PATCH_FORCE"),
            upsert=_flag(given, "upsertExistingObjects", "UPSERT_EXISTING_OBJECTS"),
            goes_on=GOES_ON in os.environ,
            config_map_mutable=_flag(given, "enableConfigMapMutable", "ENABLE_CONFIGMAP_MUTABLE"),
            secret_mutable=_flag(given, "enableSecretMutable", "ENABLE_SECRET_MUTABLE"),
            helm=json.loads(given.get("helmReleaseSettings") or "{}"),
        )


def refusals(inputs: Mapping[str, Any]) -> dict[str, str]:
    refused = {name: reason for name, reason in UNSUPPORTED.items() if _is_set(inputs.get(name))}
    if str(inputs.get("enableServerSideApply", "true")).lower() == "false":
        refused["enableServerSideApply"] = "client-side apply needs the official plugin"
    return refused


def _is_set(value: object) -> bool:
    return str(value or "false").lower() != "false"


def _flag(given: Mapping[str, str], name: str, variable: str) -> bool:
    return given.get(name, os.environ.get(f"PULUMI_K8S_{variable}", "false")) == "true"
