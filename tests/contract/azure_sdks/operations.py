"""The azure-mgmt packages' operations on a type, found by the names of Microsoft's generator."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from azure.core.credentials import TokenCredential

from simulator.azure.ids import parse_id
from simulator.azure.schema import schemas
from tests.support.arm import SUBSCRIPTION
from tests.support.azure_resources import EXAMPLES, Body

_REQUEST = re.compile(r"_(\w*?)_?operations\.build_(\w*?)_?(create(?:_or_update)?)_request")
"""The group of operations, before or after `build`, and the creating function."""
_LISTS = ("list_by_resource_group", "list_by_managed_cluster", "list_for_scope", "list")


class Operations:
    def __init__(self, resource_type: str, endpoint: str, credential: TokenCredential) -> None:
        schema = schemas()[resource_type.lower()]
        module = importlib.import_module(schema.published.package)
        self._model = getattr(importlib.import_module(f"{module.__name__}.models"), schema.published.models[-1])
        self._version = {"api_version": schema.api_versions[-1]}
        (client,) = (getattr(module, name) for name in module.__all__ if name.endswith("Client"))
        self.client = client(
            credential, SUBSCRIPTION.subscription_id, base_url=endpoint, credential_scopes=[f"{endpoint}/.default"]
        )
        found = _REQUEST.fullmatch(schema.published.request)
        assert found
        self._group = getattr(self.client, found[1] or found[2])
        self._create = found[3]
        self.arguments = _arguments(EXAMPLES[resource_type].id)

    def put(self, body: Body) -> Body:
        return _shown(self._call(self._create, *self.arguments, self._model.deserialize(body)))

    def get(self) -> Body:
        return _shown(self._call("get" if hasattr(self._group, "get") else "get_properties", *self.arguments))

    def list(self) -> list[Body]:
        name = next(name for name in _LISTS if hasattr(self._group, name))
        wanted, around = inspect.signature(getattr(self._group, name)).parameters, self.arguments[:-1]
        if next(iter(wanted), "") not in ("resource_group_name", "scope"):  # zone groups: the endpoint comes first
            around = around[::-1]
        return [_shown(found) for found in self._call(name, *around)]

    def delete(self) -> None:
        self._call("delete", *self.arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Long-running operations have the prefix `begin_`."""
        awaited = getattr(self._group, f"begin_{name}", None)
        if awaited:
            return awaited(*arguments, **self._version).result()
        return getattr(self._group, name)(*arguments, **self._version)


def _arguments(identity: str) -> tuple[str, ...]:
    parsed = parse_id(identity)
    if parsed.type == "Microsoft.Authorization/roleAssignments":
        return parsed.scope, parsed.name
    named = zip(parsed.type.split("/")[1:], parsed.names, strict=True)
    names = tuple(name for kind, name in named if kind != "blobServices")  # always `default`
    return names if parsed.group in (None, names[0]) else (parsed.group, *names)


def _shown(answer: Any) -> Body:
    found: Body = answer.serialize(keep_readonly=True)
    return found
