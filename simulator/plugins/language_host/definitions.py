"""A reader of the resource definitions that `pulumi import` writes in Pulumi's language (PCL) and converts to Python.

The definitions have HCL syntax and only literals, references and `secret` (pulumi/pulumi v3.246.0,
pkg/importer/hcl2.go).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(-?\d[\d.]*(?:[eE][+-]?\d+)?)|([^\W\d][\w-]*(?:\.[\w-]+)*)|([{}\[\]()=,]))'
)
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}


class Unreadable(Exception):
    """A definition that `pulumi import` does not write."""


@dataclass(frozen=True)
class Reference:
    """A reference to a resource (`name`) or to its property (`name.id`)."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Secret:
    value: Any


@dataclass(frozen=True)
class Definition:
    """One resource. `label` is the name of its variable. Values are Python values, Reference and Secret."""

    label: str
    token: str
    attributes: Mapping[str, Any]
    options: Mapping[str, Any]


def read(text: str) -> list[Definition]:
    """Returns all resources, in order. Raises Unreadable."""
    return _Reader(text).resources()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = []
        end = 0
        while match := _TOKEN.match(text, end):
            self._tokens.append(match)
            end = match.end()
        if text[end:].strip():
            raise Unreadable(f"the resource definition has unknown syntax: {text[end:].strip()[:40]!r}")
        self._next = 0

    def resources(self) -> list[Definition]:
        found = []
        while self._next < len(self._tokens):
            kind, labels = self._take(), []
            while not self._is("{"):
                labels.append(self._key())
            body = self._object()
            match kind, *labels:
                case "resource", label, token:
                    found.append(Definition(label, token, options=body.pop("options", {}), attributes=body))
                case "package", _:  # not needed, because the environment has one version of each package
                    continue
                case _:
                    raise Unreadable(
                        f"the resource definition has the block {kind}, but only resource and package are supported"
                    )
        return found

    def _object(self) -> dict[str, Any]:
        """Reads an object, or the block `options { ... }`."""
        found = {}
        self._take("{")
        while not self._is("}"):
            key = self._key()
            if not self._is("{"):
                self._take("=")
            found[key] = self._value()
            self._skip(",")
        self._take("}")
        return found

    def _list(self, start: str, end: str) -> list[Any]:
        found = []
        self._take(start)
        while not self._is(end):
            found.append(self._value())
            self._skip(",")
        self._take(end)
        return found

    def _value(self) -> Any:
        if self._is("{"):
            return self._object()
        if self._is("["):
            return self._list("[", "]")
        text, number, name, mark = self._peek().groups()
        if text or mark:
            return self._key()
        self._next += 1
        if number:
            return float(number) if re.search(r"[.eE]", number) else int(number)
        if self._is("("):
            if name != "secret":
                raise Unreadable(f"the resource definition calls {name}, but only secret is supported")
            return Secret(*self._list("(", ")"))
        return _CONSTANTS[name] if name in _CONSTANTS else Reference(tuple(name.split(".")))

    def _key(self) -> str:
        text, _, name, _ = self._peek().groups()
        if not (text or name):
            raise Unreadable(f"the resource definition has {self._peek()[0].strip()!r} instead of a name")
        self._next += 1
        return _string(text) if text else name

    def _peek(self) -> re.Match[str]:
        if self._next == len(self._tokens):
            raise Unreadable("the resource definition is incomplete")
        return self._tokens[self._next]

    def _is(self, mark: str) -> bool:
        return self._peek()[4] == mark

    def _skip(self, mark: str) -> None:
        self._next += self._is(mark)

    def _take(self, mark: str | None = None) -> str:
        found = self._peek()[0].strip()
        if mark and found != mark:
            raise Unreadable(f"the resource definition has {found!r} instead of {mark!r}")
        self._next += 1
        return found


def _string(text: str) -> str:
    """Decodes JSON's escapes, and HCL's doubled first character of `${` and `%{`."""
    if re.search(r"(?<![$%])(?:[$%]{2})*[$%]\{", text):
        raise Unreadable(f"the resource definition has a template, which is not supported: {text[:40]}")
    plain: str = json.loads(text, strict=False)
    return plain.replace("$${", "${").replace("%%{", "%{")
