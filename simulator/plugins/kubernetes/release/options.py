"""The inputs of a Release: their defaults, and the Helm CLI's flags for them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from k8s.objects import Object
from simulator.plugins.kubernetes.kinds import urn_name
from simulator.plugins.marshal import Properties

DEFAULT_TIMEOUT_SECONDS: Final = 300
DEFAULTS: Final[Object] = {
    "allowNullValues": False,
    "atomic": False,
    "chart": "",
    "cleanupOnFail": False,
    "createNamespace": False,
    "dependencyUpdate": False,
    "description": "",
    "devel": False,
    "disableCRDHooks": False,
    "disableOpenapiValidation": False,
    "disableWebhooks": False,
    "forceUpdate": False,
    "keyring": "",
    "lint": False,
    "postrender": "",
    "recreatePods": False,
    "renderSubchartNotes": False,
    "replace": False,
    "resetValues": False,
    "reuseValues": False,
    "skipAwait": False,
    "skipCrds": False,
    "timeout": 0,
    "values": {},
    "verify": False,
    "version": "",
    "waitForJobs": False,
}
# Inputs without a default: absent from the checked inputs if not given.
_OPTIONAL: Final = {"name", "namespace", "maxHistory", "repositoryOpts", "takeOwnership"}
_REPOSITORY_FLAGS: Final = {
    "username": "--username",
    "password": "--password",
    "caFile": "--ca-file",
    "certFile": "--cert-file",
    "keyFile": "--key-file",
}
_COMMON: Final = {
    "atomic": "--atomic",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "renderSubchartNotes": "--render-subchart-notes",
    "skipCrds": "--skip-crds",
    "takeOwnership": "--take-ownership",
}
_INSTALL: Final = _COMMON | {
    "createNamespace": "--create-namespace",
    "disableWebhooks": "--no-hooks",
    "replace": "--replace",
}
_UPGRADE: Final = _COMMON | {
    "cleanupOnFail": "--cleanup-on-fail",
    "disableCRDHooks": "--no-hooks",  # for upgrades, the official plugin uses this input instead of disableWebhooks
    "forceUpdate": "--force",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
}


def complete(given: Properties, old: Mapping[str, Any], urn: str, namespace: str) -> Properties:
    """Returns the inputs with defaults, name and namespace. Unnamed releases keep their first generated name."""
    known = DEFAULTS.keys() | _OPTIONAL
    inputs = DEFAULTS | {name: value for name, value in given.items() if name in known and value is not None}
    if not inputs.get("name"):
        inputs["name"] = old.get("name") or f"{urn_name(urn)}-{uuid.uuid4().hex[:8]}"
    inputs["namespace"] = inputs.get("namespace") or namespace
    if inputs["skipAwait"] is False and "timeout" not in given:
        inputs["timeout"] = DEFAULT_TIMEOUT_SECONDS
    if inputs["verify"] is True and not inputs["keyring"]:
        inputs["keyring"] = os.path.expandvars("$HOME/.gnupg/pubring.gpg")
    return inputs


def chart_arguments(options: Object) -> list[str]:
    repository = options.get("repositoryOpts") or {}
    url, name = _resolve(repository.get("repo") or "", options["chart"].strip())
    arguments = [name]
    if version := _version(options):
        arguments += ["--version", version]
    if url:
        arguments += ["--repo", url]
    for field, flag in _REPOSITORY_FLAGS.items():
        if repository.get(field):
            arguments += [flag, repository[field]]
    if options["verify"]:
        arguments += ["--verify", "--keyring", options["keyring"]]
    return arguments


def install_arguments(options: Object) -> list[str]:
    return ["install", options["name"], *chart_arguments(options), *_flags(options, _INSTALL)]


def upgrade_arguments(options: Object) -> list[str]:
    kept = ["--history-max", str(options.get("maxHistory") or 0)]  # the CLI's default is 10
    return ["upgrade", options["name"], *chart_arguments(options), *_flags(options, _UPGRADE), *kept]


def uninstall_arguments(options: Object, *, may_be_gone: bool) -> list[str]:
    """Returns arguments that wait until the objects are deleted, if the install also waits."""
    arguments = ["uninstall", options["name"], "--namespace", options["namespace"]]
    if options.get("atomic") or not options.get("skipAwait"):
        arguments += ["--wait", "--timeout", _timeout(options)]
    return [*arguments, "--ignore-not-found"] if may_be_gone else arguments


def template_arguments(options: Object) -> list[str]:
    """Returns arguments to render the chart without a cluster, with CRDs if the install includes them."""
    crds = [] if options["skipCrds"] else ["--include-crds"]
    return ["template", options["name"], *chart_arguments(options), "--namespace", options["namespace"], *crds]


def _flags(options: Object, names: Mapping[str, str]) -> list[str]:
    arguments = ["--namespace", options["namespace"], "--timeout", _timeout(options)]
    arguments += [flag for name, flag in names.items() if options.get(name)]
    if not options["skipAwait"]:
        arguments += ["--wait", *(["--wait-for-jobs"] if options["waitForJobs"] else [])]
    if options["description"]:
        arguments += ["--description", options["description"]]
    if options["postrender"]:
        arguments += ["--post-renderer", options["postrender"]]
    return arguments


def _timeout(options: Object) -> str:
    return f"{options.get('timeout') or DEFAULT_TIMEOUT_SECONDS}s"


def _version(options: Object) -> str:
    version = str(options["version"]).strip()
    return version or (">0.0.0-0" if options["devel"] else "")


def _resolve(repository: str, name: str) -> tuple[str, str]:
    """Returns the URL for `--repo`, and the chart. `repository` is a URL, or a name from `helm repo add`."""
    if name.startswith("oci://"):
        return "", name
    parts = urlsplit(repository)
    if parts.scheme and parts.netloc:
        return repository, name
    return "", f"{repository}/{name}" if repository and "/" not in name else name
