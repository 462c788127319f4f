from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from config.schema.pod_template import choices
from simulator.kube.client import KubeClient

pytestmark = pytest.mark.simulator
_TYPE = "io.k8s.api.core.v1."


def test_choices_match_the_api_server(kube: KubeClient) -> None:
    schemas = kube.raw("GET", "/openapi/v3/api/v1")["components"]["schemas"]
    below = _reached(schemas, f"{_TYPE}PodTemplateSpec", set())
    served = {
        (name.removeprefix(_TYPE), key): sorted(found)
        for name in below
        for key, schema in schemas[name].get("properties", {}).items()
        if (found := schema.get("enum") or schema.get("items", {}).get("enum"))
    }
    ours = {(name, key): sorted(found) for name, keys in choices().items() for key, found in keys.items()}
    assert ours == served


def _reached(schemas: dict[str, Any], name: str, seen: set[str]) -> set[str]:
    if name not in seen:
        seen.add(name)
        for reference in _references(schemas[name]):
            _reached(schemas, reference, seen)
    return seen


def _references(schema: Any) -> Iterator[str]:
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and "$ref" in schema:
        yield str(schema["$ref"]).rpartition("/")[2]
    for part in parts:
        yield from _references(part)
