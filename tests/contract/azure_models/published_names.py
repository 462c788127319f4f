"""Rules of names in Azure's published requests, which azure-mgmt packages check before sending."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from typing import Any
from unittest import mock

from simulator.azure.schema import schemas


@dataclass(frozen=True)
class NameRules:
    min_length: int = 0
    max_length: int | None = None
    pattern: str = ""

    def take(self, name: str) -> bool:
        short = self.max_length is None or len(name) <= self.max_length
        return len(name) >= self.min_length and short and bool(re.match(self.pattern, name))


@dataclass(frozen=True)
class Request:
    api_version: str
    name: NameRules


def request(resource_type: str) -> Request:
    source = schemas()[resource_type.lower()].published
    where, _, builder = source.request.rpartition(".")
    module = importlib.import_module(f"{source.package}.operations.{where}")
    build = getattr(module, builder)
    given = [name for name, each in inspect.signature(build).parameters.items() if each.kind is not each.VAR_KEYWORD]
    serializer = _Recorder()
    with mock.patch.object(module, "_SERIALIZER", serializer):
        build(**dict.fromkeys(given, "x"))
    rules = serializer.rules[source.name]
    names = NameRules(**{key: rules[key] for key in ("min_length", "max_length", "pattern") if key in rules})
    return Request(serializer.api_version, names)


class _Recorder:
    """A fake serializer of the packages, which records rules of path parameters."""

    def __init__(self) -> None:
        self.rules: dict[str, dict[str, Any]] = {}
        self.api_version = ""

    def url(self, name: str, _value: Any, _kind: str, **rules: Any) -> str:
        self.rules[name] = rules
        return "x"

    def query(self, name: str, value: str, *_arguments: Any, **_rules: Any) -> str:
        if name == "api_version":
            self.api_version = value
        return "x"

    def header(self, *_arguments: Any, **_rules: Any) -> str:
        return "x"
