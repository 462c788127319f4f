"""Kubeconfigs from AKS."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import yaml


def decode(value: str) -> str:
    return base64.b64decode(value).decode()


def private_server(kubeconfig: str) -> str | None:
    """Returns the host and port of a private cluster's API server, or None for a public one.

    The name of a private API server is in or below the zone `privatelink.<region>.azmk8s.io` (AKS's page on private
    clusters).
    """
    clusters = yaml.safe_load(kubeconfig).get("clusters") or [{}]
    place = urlsplit(clusters[0].get("cluster", {}).get("server", ""))
    return place.netloc if ".privatelink." in (place.hostname or "") else None


def login_of(kubeconfig: str) -> str | None:
    """Returns the login method of kubelogin, or None if the kubeconfig has a certificate."""
    plugin = yaml.safe_load(kubeconfig)["users"][0]["user"].get("exec")
    return str(plugin["args"][plugin["args"].index("--login") + 1]) if plugin else None


_OF_DEVICE_CODES = ("--environment", "--client-id", "--tenant-id")
"""Options of the login `devicecode`. If they stayed, `msi` would use the client as a user-assigned identity, and
`azurecli` would switch to the tenant, which a managed identity cannot do (Azure/kubelogin#123).
"""


def with_login(kubeconfig: str, method: str) -> str:
    """Returns the kubeconfig with the login `method` instead of `devicecode`, which needs a person (Azure/AKS#4990).

    Keeps the options that kubelogin's converter keeps (Azure/kubelogin, pkg/internal/converter).
    """
    config = yaml.safe_load(kubeconfig)
    gone = ("--login", *(() if method == "spn" else _OF_DEVICE_CODES))
    for user in config["users"]:
        if plugin := user["user"].get("exec"):
            plugin["args"] = [*_without(plugin.get("args") or [], gone), "--login", method]
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _without(args: list[Any], options: Iterable[str]) -> list[Any]:
    left = list(args)
    for option in options:
        if option in left:
            position = left.index(option)
            del left[position : position + 2]
    return left


def as_user(kubeconfig: str, user: str) -> str:
    """Returns a kubeconfig that impersonates `user`. The login needs the right to impersonate."""
    config = yaml.safe_load(kubeconfig)
    for each in config["users"]:
        each["user"]["as"] = user
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text
