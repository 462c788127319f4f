"""Results of stacks in simulated Azure, the cluster and Pulumi's state, by path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from k8s.objects import Object
from simulator.azure.store import records
from simulator.kube.client import ApiError, KubeClient
from tests.support.world import Stack, eventually

State = dict[str, Any]
Reasons = Mapping[str, str]
"""Reasons for different values, by regular expressions of paths."""


def wait_until_settled(stack: Stack, reasons: Reasons) -> State:
    found: list[State] = [{}]

    def same_again() -> bool:
        try:
            found.append(left(stack))
        except ApiError as error:  # the API server does not serve a new kind yet
            if not error.passing:
                raise
            return False
        return not unexplained(found[-2], found[-1], reasons)

    eventually(same_again, "nothing changes any more", 400, every=10)
    return found[-1]


def unexplained(one: State, other: State, reasons: Reasons) -> dict[str, tuple[Any, Any]]:
    return {path: values for path, values in differing(one, other).items() if not used(reasons, [path])}


def differing(one: State, other: State) -> dict[str, tuple[Any, Any]]:
    """A missing value is None."""
    paths = sorted(one.keys() | other.keys())
    return {path: (one.get(path), other.get(path)) for path in paths if one.get(path) != other.get(path)}


def used(reasons: Reasons, paths: Iterator[str] | list[str]) -> set[str]:
    return {each for path in paths for each in reasons if re.search(each, path)}


def left(stack: Stack) -> State:
    group, state = f"/resourcegroups/ai-on-aks-{stack.name}", State()
    for record in records(stack.world.home / "azure"):
        if group in record.id.text.lower():
            place = record.id.text.partition("/resourceGroups/")[2]
            state |= flat({"body": record.body, "error": record.error}, f"azure {place}")
    for name, obj in _objects(stack.kube):
        state |= flat(obj, name)
    exported = json.loads(stack.pulumi("stack", "export", "--stack", stack.name))
    for resource in exported["deployment"]["resources"]:
        state[f"pulumi {resource['urn'].partition('::ai-on-aks::')[2]}"] = "is in the state"
    return state


def flat(value: Any, path: str) -> State:
    """Returns a value's leaves by path. Unique names of list entries are their keys."""
    if isinstance(value, list):
        names = [each.get("name") if isinstance(each, dict) else None for each in value]
        by_name = None not in names and len({*names}) == len(names)
        value = dict(zip(names if by_name else range(len(value)), value, strict=True))
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {place: leaf for name, each in value.items() for place, leaf in flat(each, f"{path}.{name}").items()}


def _objects(kube: KubeClient) -> Iterator[tuple[str, Object]]:
    groups = kube.raw("GET", "/apis")["groups"]
    for version in ("v1", *(group["preferredVersion"]["groupVersion"] for group in groups)):
        for entry in kube.raw("GET", f"/{'apis' if '/' in version else 'api'}/{version}")["resources"]:
            if "list" not in entry["verbs"] or "/" in entry["name"]:
                continue
            for obj in kube.list(version, entry["kind"]):
                place = "/".join(filter(None, (obj["metadata"].get("namespace"), obj["metadata"]["name"])))
                yield f"{version.rpartition('/')[0] or 'core'}/{entry['kind']} {place}", obj
