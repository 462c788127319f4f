"""Kubeconfigs as AKS hands them out."""

from __future__ import annotations

import base64
from typing import Any

import yaml


def decode(value: str) -> str:
    """The YAML text of a credential's base64 value."""
    return base64.b64decode(value).decode()


def with_login(kubeconfig: str, method: str) -> str:
    """The same with kubelogin's `--login` set to `method`.

    AKS writes `devicecode`, which waits for a person (Azure/AKS#4990).
    """
    config = yaml.safe_load(kubeconfig)
    for user in config["users"]:
        if plugin := user["user"].get("exec"):
            plugin["args"] = _with_option(plugin.get("args") or [], "--login", method)
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _with_option(args: list[Any], option: str, value: str) -> list[Any]:
    if option not in args:
        return [*args, option, value]
    position = args.index(option)
    return [*args[: position + 1], value, *args[position + 2 :]]
