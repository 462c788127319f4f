"""The provider's kubeconfig (YAML text, a path, or the default file), and the cluster that it selects."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]


class KubeconfigError(ValueError):
    """The kubeconfig is missing, unreadable or invalid, or lacks the selected context or cluster."""


def load(path_or_text: str) -> Config:
    """Reads a kubeconfig from a path (`~` is allowed), from text, or if the argument is empty, the default file."""
    text = _text(path_or_text) if path_or_text else _ambient()
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise KubeconfigError(f"the kubeconfig is not YAML: {error}") from error
    if not isinstance(config, dict):
        raise KubeconfigError("the value is neither an existing file nor a kubeconfig")
    return config


def select(config: Config, context: str = "", cluster: str = "") -> Config:
    chosen = copy.deepcopy(config)
    chosen["current-context"] = context or config.get("current-context", "")
    entry = _entry(chosen, "contexts", chosen["current-context"])
    if entry is None:
        known = ", ".join(str(item.get("name")) for item in config.get("contexts") or []) or "none"
        raise KubeconfigError(f'context "{chosen["current-context"]}" does not exist (contexts: {known})')
    if cluster:
        entry["context"]["cluster"] = cluster
    if _entry(chosen, "clusters", entry["context"].get("cluster", "")) is None:
        raise KubeconfigError(f'cluster "{entry["context"].get("cluster")}" does not exist')
    return chosen


def namespace(config: Config) -> str:
    entry = _entry(config, "contexts", config.get("current-context", "")) or {}
    return str(entry.get("context", {}).get("namespace") or "default")


def servers(config: Config) -> set[str]:
    return {str(entry.get("cluster", {}).get("server", "")) for entry in config.get("clusters") or []}


def active_cluster(value: Any, overrides: Mapping[str, Any]) -> Config | None:
    if not value:
        return None
    config = value if isinstance(value, dict) else load(str(value))
    try:
        chosen = select(config, str(overrides.get("context") or ""), str(overrides.get("cluster") or ""))
    except KubeconfigError:
        return None
    entry = _entry(chosen, "contexts", chosen["current-context"]) or {}
    found = _entry(chosen, "clusters", entry["context"]["cluster"]) or {}
    return dict(found.get("cluster") or {})


def _text(path_or_text: str) -> str:
    if "\n" in path_or_text:
        return path_or_text
    path = Path(path_or_text).expanduser()
    try:
        return path.read_text() if path.is_file() else path_or_text
    except OSError as error:
        raise KubeconfigError(f"{path} cannot be read: {error.strerror}") from error


def _ambient() -> str:
    """Reads the first existing file of $KUBECONFIG, or if unset, ~/.kube/config. Does not merge files."""
    candidates = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    for path in candidates or [Path.home() / ".kube" / "config"]:
        if path.is_file():
            return path.read_text()
    raise KubeconfigError("no kubeconfig was given, and neither $KUBECONFIG nor ~/.kube/config names one")


def _entry(config: Config, section: str, name: str) -> Config | None:
    return next((entry for entry in config.get(section) or [] if entry.get("name") == name), None)
