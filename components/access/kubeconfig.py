"""Kubeconfigs as AKS hands them out."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import yaml


def decode(value: str) -> str:
    """The YAML text of a credential's base64 value."""
    return base64.b64decode(value).decode()


def private_server(kubeconfig: str) -> str | None:
    """Host and port of a private cluster's API server; None for a public one.

    Names of private ones are in a zone `privatelink.<region>.azmk8s.io`, or in one below (AKS's page on private
    clusters).
    """
    clusters = yaml.safe_load(kubeconfig).get("clusters") or [{}]
    place = urlsplit(clusters[0].get("cluster", {}).get("server", ""))
    return place.netloc if ".privatelink." in (place.hostname or "") else None


def login_of(kubeconfig: str) -> str | None:
    """How it has kubelogin log in; None where it holds a certificate."""
    plugin = yaml.safe_load(kubeconfig)["users"][0]["user"].get("exec")
    return str(plugin["args"][plugin["args"].index("--login") + 1]) if plugin else None


_OF_DEVICE_CODES = ("--environment", "--client-id", "--tenant-id")
"""What AKS states for its own login. `msi` would take the client for an identity that somebody has assigned, and
`azurecli` the tenant for one to go to, which a managed identity cannot (Azure/kubelogin#123).
"""


def with_login(kubeconfig: str, method: str) -> str:
    """The same for another login than AKS's, which is `devicecode` and waits for a person (Azure/AKS#4990).

    Leaves the options that kubelogin's own converter leaves (Azure/kubelogin, pkg/internal/converter).
    """
    config = yaml.safe_load(kubeconfig)
    gone = ("--login", *(() if method == "spn" else _OF_DEVICE_CODES))
    for user in config["users"]:
        if plugin := user["user"].get("exec"):
            plugin["args"] = [*_without(plugin.get("args") or [], gone), "--login", method]
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _without(args: list[Any], options: Iterable[str]) -> list[Any]:
    """Arguments without these options and the values that follow them."""
    left = list(args)
    for option in options:
        if option in left:
            position = left.index(option)
            del left[position : position + 2]
    return left


def as_user(kubeconfig: str, user: str) -> str:
    """The same, but all is done as that user: whoever logs in must be allowed to impersonate (the field `as`)."""
    config = yaml.safe_load(kubeconfig)
    for each in config["users"]:
        each["user"]["as"] = user
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text
