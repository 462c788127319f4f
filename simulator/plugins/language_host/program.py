"""Generates a Python program from resource definitions, as Pulumi's own host does for `pulumi import`.

Function names in comments are those of pulumi/pulumi v3.246.0, pkg/codegen/python.
"""

from __future__ import annotations

import json
import keyword
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi._types import is_input_type

from simulator.plugins import sdk
from simulator.plugins.language_host.definitions import Definition, Reference, Secret, Unreadable

_STEP = "    "
_LOGICAL_NAME = "__logicalName"


def program(definitions: list[Definition]) -> str:
    """Returns the program with its imports. Raises Unreadable for a type that the installed SDKs lack."""
    packages = sorted({definition.token.partition(":")[0] for definition in definitions})
    imports = [f"import {sdk.package(name)} as {_variable(name)}" for name in packages]
    return "\n".join(["import pulumi", *imports, "", *map(_resource, definitions), ""])


def _resource(definition: Definition) -> str:
    made = sdk.resource(definition.token)
    if made is None:
        raise Unreadable(f"{definition.token} is not a type of the Python packages here")
    taken, package = sdk.arguments(made), definition.token.partition(":")[0]
    inside = made.__module__.removeprefix(sdk.package(package)).rpartition(".")[0]
    attributes = dict(definition.attributes)
    parts = [json.dumps(attributes.pop(_LOGICAL_NAME, definition.label))]
    parts += [f"{_parameter(name)}={value}" for name, value in _fields(attributes, taken, _STEP)]
    if definition.options:
        options = [f"{_option(own)}={_literal(value, Any, _STEP)}" for own, value in definition.options.items()]
        parts.append(f"opts=pulumi.ResourceOptions({', '.join(options)})")
    arguments = f",\n{_STEP}".join(parts)
    return f"{_variable(definition.label)} = {_variable(package)}{inside}.{made.__name__}({arguments})"


def _fields(values: Mapping[str, Any], taken: type, indent: str) -> Iterator[tuple[str, str]]:
    """Keeps unknown names, because the SDK passes them on."""
    names, types = sdk.python_names(taken), sdk.properties(taken)
    for own, value in values.items():
        yield names.get(own, own), _literal(value, types.get(own, Any), indent)


def _literal(value: Any, annotation: Any, indent: str) -> str:
    """Returns the value as Python code. Its type `annotation` distinguishes property names from map keys."""
    if isinstance(value, Reference):
        return ".".join((_variable(value.path[0]), *map(_snake, value.path[1:])))
    if isinstance(value, Secret):
        return f"pulumi.Output.secret({_literal(value.value, annotation, indent)})"
    members = sdk.members(annotation)
    if isinstance(value, list):
        inner = next((typing.get_args(each)[0] for each in members if typing.get_args(each)), Any)
        return _enclosed("[", [_literal(item, inner, indent + _STEP) for item in value], "]", indent)
    if isinstance(value, dict):
        return _enclosed("{", _items(value, members, indent + _STEP), "}", indent)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _items(value: Mapping[str, Any], members: tuple[Any, ...], indent: str) -> list[str]:
    for member in members:
        if isinstance(member, type) and is_input_type(member):
            return [f"{json.dumps(name)}: {text}" for name, text in _fields(value, member, indent)]
    inner = next((typing.get_args(each)[1] for each in members if len(typing.get_args(each)) == 2), Any)
    return [f"{json.dumps(key, ensure_ascii=False)}: {_literal(item, inner, indent)}" for key, item in value.items()]


def _enclosed(start: str, items: list[str], end: str, indent: str) -> str:
    lines = "".join(f"\n{indent}{_STEP}{item}," for item in items)
    return f"{start}{lines}\n{indent}{end}" if items else start + end


def _parameter(name: str) -> str:
    """Renames a property that collides with a parameter of every resource (InitParamName)."""
    return f"{name}_" if name in ("resource_name", "opts") else name


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _option(name: str) -> str:
    return _snake(name) + "_" * keyword.iskeyword(name)  # `import_`


def _variable(label: str) -> str:
    name = re.sub(r"\W", "_", _snake(label))
    return f"_{name}" if name[0].isdigit() else name + "_" * keyword.iskeyword(name)
