"""The schema of an emulated plugin's package, from which `pulumi import` generates program code.

The format is PackageSpec of pulumi/pulumi v3.246.0, pkg/codegen/schema/schema.go. The schema is derived from the SDK
package. Inputs have types; outputs have only names.
"""

from __future__ import annotations

import enum
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulumi import Archive, Asset
from pulumi._types import is_input_type

from simulator.plugins import sdk

Spec = dict[str, Any]
_ANY: Spec = {"$ref": "pulumi.json#/Any"}
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(name: str, version: str, tokens: Iterable[str]) -> str:
    types: dict[str, Spec] = {}
    classes = {token: made for token in tokens if (made := sdk.resource(token))}
    return json.dumps(
        {
            "name": name,
            "version": version,
            "language": {"python": {"moduleNameOverrides": _modules(name, classes), "inputTypes": "classes-and-dicts"}},
            "resources": {
                token: {
                    "inputProperties": _properties(sdk.arguments(made), name, types),
                    "requiredInputs": sdk.required(sdk.arguments(made)),
                    "properties": dict.fromkeys(sdk.outputs(made), _ANY),
                }
                for token, made in classes.items()
            },
            "types": types,
        }
    )


def _modules(name: str, classes: Mapping[str, type]) -> dict[str, str]:
    """Returns the Python module of each API module (rbac/v1 of `rbac.authorization.k8s.io/v1`)."""
    return {token.split(":")[1]: _module(name, made) for token, made in classes.items()}


def _module(name: str, of: type) -> str:
    parts = of.__module__.removeprefix(sdk.package(name)).split(".")[1:-1]
    return "/".join(parts) or "index"


def _properties(taken: type, name: str, types: dict[str, Spec]) -> Spec:
    return {own: _type(annotation, name, types) for own, annotation in sdk.properties(taken).items()}


def _type(annotation: Any, name: str, types: dict[str, Spec]) -> Spec:
    """Returns a type's schema, and adds object types to `types`."""
    found = sdk.members(annotation)
    if any(isinstance(member, type) and issubclass(member, enum.Enum) for member in found):
        return {"type": "string"}  # a program may write values as text
    if len(found) > 1:
        return {"oneOf": [_type(member, name, types) for member in found]}
    (member,) = found
    origin, inner = typing.get_origin(member), typing.get_args(member)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _type(inner[0], name, types)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(inner[1], name, types)}
    if origin is typing.Literal:
        return _type(type(inner[0]), name, types)
    if member in (Asset, Archive):
        return {"$ref": f"pulumi.json#/{member.__name__}"}
    if isinstance(member, type) and is_input_type(member):
        return _object(member, name, types)
    return {"type": _SCALARS[member]} if member in _SCALARS else _ANY


def _object(taken: type, name: str, types: dict[str, Spec]) -> Spec:
    token = f"{name}:{_module(name, taken)}:{taken.__name__.removesuffix('Args')}"
    if token not in types:
        types[token] = {}  # registered first, because types can refer to themselves
        types[token] = {
            "type": "object",
            "properties": _properties(taken, name, types),
            "required": sdk.required(taken),
        }
    return {"$ref": f"#/types/{token}"}
