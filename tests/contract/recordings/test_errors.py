from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.arm import CLUSTER, GROUP, Arm, FakeBackend, cluster_body, pool_body, pool_path, start

ERRORS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text("utf-8"))["errors"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Arm]:
    arm = start(tmp_path / "azure", FakeBackend())
    try:
        arm.put(GROUP, {"location": "eastus"})
        arm.put(CLUSTER, cluster_body())
        arm.done()
        yield arm
    finally:
        arm.stop()


def answer(arm: Arm, request: dict[str, Any]) -> httpx.Response:
    """Sends the request again with any properties in `then`. Returns the last answer."""
    if "cluster" in request:
        path = f"{CLUSTER.rpartition('/')[0]}/{request['cluster']}"
        body = cluster_body(**request["properties"]) if "properties" in request else None
        return arm.call(request["method"], path, body)
    path, properties = pool_path(request["pool"]), request["properties"]
    first = arm.put(path, pool_body(**properties))
    if "then" not in request:
        return first
    arm.done()
    return arm.put(path, pool_body(**properties | request["then"]))


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_azures_code_and_message(name: str, cluster: Arm) -> None:
    recorded = ERRORS[name]
    refused = answer(cluster, recorded["request"])
    message = recorded["message"].replace("{name}", recorded["request"].get("cluster", ""))
    assert cluster.refusal(refused) == (recorded["status"], recorded["code"], message)
