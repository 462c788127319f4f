"""Classes and argument types of the resources in Pulumi's installed SDK packages.

The official plugins' schemas are not available here, but the packages are generated from them. Uses functions of the
locked SDK, some of them private (pulumi/pulumi v3.272.0, sdk/python/lib/pulumi, _types.py and runtime/rpc.py).
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import pulumi
from pulumi import _types
from pulumi.runtime import rpc

SUFFIXES = ("InitArgs", "Args")
"""Suffixes of the argument classes. A package uses the first suffix if a resource and a type have the same name."""


def package(name: str) -> str:
    return f"pulumi_{name.replace('-', '_')}"


def tokens(name: str) -> list[str]:
    return sorted(token for module in _modules(name) for token in module["classes"])


def resource(token: str) -> type[pulumi.CustomResource] | None:
    """Returns a type's class, or None for a component or a type that its package lacks."""
    for module in _modules(token.partition(":")[0]):
        if token in module["classes"]:
            found = getattr(importlib.import_module(module["fqn"]), module["classes"][token])
            return found if issubclass(found, pulumi.CustomResource) else None
    return None


def arguments(made: type[pulumi.CustomResource]) -> type:
    home = importlib.import_module(made.__module__)
    found: type = next(vars(home)[made.__name__ + end] for end in SUFFIXES if made.__name__ + end in vars(home))
    return found


def properties(taken: type) -> Mapping[str, Any]:
    return _types.input_type_types(taken)


def required(taken: type) -> list[str]:
    return sorted(_types._required_property_names(taken))


def python_names(taken: type) -> Mapping[str, str]:
    return {own: name for name, own in _types.input_type_py_to_pulumi_names(taken).items()}


def outputs(made: type[pulumi.CustomResource]) -> list[str]:
    return sorted(_types.resource_pulumi_to_py_names(made))


def members(annotation: Any) -> tuple[Any, ...]:
    """Returns a value's possible types, without None and the SDK's wrapper types."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return (annotation,)
    return tuple(
        member
        for part in typing.get_args(annotation)
        if part is not type(None) and not _types._is_plumbing_arg(part)
        for member in members(part)
    )


def _modules(name: str) -> Iterable[Mapping[str, Any]]:
    importlib.import_module(package(name))
    return [
        module.mod_info  # type: ignore[attr-defined]
        for key, registered in rpc._RESOURCE_MODULES.items()
        if key.startswith(f"{name}:")
        for module in registered
    ]
