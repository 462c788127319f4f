"""Holds the body that simulated Azure shows of a cluster to a recorded one (`clusters.yaml`), key by key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.arm import CLUSTER, GROUP, FakeBackend, start

RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("clusters.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Leaves of the answer by their paths, `properties` left out of these."""
    arm = start(tmp_path_factory.mktemp("recorded") / "azure", FakeBackend())
    try:
        arm.put(GROUP, {"location": "eastus"})
        assert arm.put(CLUSTER, RECORDED["request"]).status_code == 201
        arm.done()
        body = arm.get(CLUSTER)
    finally:
        arm.stop()
    own = {name: body.pop(name) for name in ("kind", "eTag") if name in body}
    return own | dict(leaves(body["properties"], ""))


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Values at their paths; `[]` stands for the items of a list, and what is empty counts as a value."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


def test_values_are_azures(shown: dict[str, Any]) -> None:
    assert {path: shown.get(path) for path in RECORDED["shown"]} == RECORDED["shown"]


def test_keys_are_azures_but_for_those_that_are_open(shown: dict[str, Any]) -> None:
    alone, ours = RECORDED["open"]["shown by azure alone"], RECORDED["open"]["shown by the simulator alone"]
    recorded = {*RECORDED["shown"], *RECORDED["named"], *alone}
    assert (recorded - shown.keys(), shown.keys() - recorded) == (set(alone), set(ours))
