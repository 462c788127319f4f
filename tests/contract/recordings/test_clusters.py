from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.arm import CLUSTER, GROUP, FakeBackend, pool_path, start
from tests.support.leaves import leaves

RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("clusters.yaml").read_text("utf-8"))

LISTED = "locations/eastus/kubernetesVersions"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Leaves of the cluster's answer by path without `properties`, and of a pool's below `pool`."""
    arm = start(tmp_path_factory.mktemp("recorded") / "azure", FakeBackend())
    try:
        arm.put(GROUP, {"location": "eastus"})
        assert arm.put(CLUSTER, RECORDED["request"]).status_code == 201
        arm.done()
        body = arm.get(CLUSTER)
        assert arm.put(pool_path("two"), RECORDED["pool"]["request"]).status_code == 201
        body["properties"]["pool"] = arm.get(pool_path("two"))["properties"]
    finally:
        arm.stop()
    own = {name: body.pop(name) for name in ("kind", "eTag") if name in body}
    return own | dict(leaves(body["properties"], ""))


@pytest.mark.parametrize(("plans", "minors"), RECORDED["upgrades"].items())
def test_a_minor_version_can_be_upgraded_as_far_as_on_azure(
    plans: str, minors: dict[str, list[str]], tmp_path: Path
) -> None:
    arm = start(tmp_path / "azure", FakeBackend())
    try:
        listed = arm.get(f"{GROUP.partition('/resource')[0]}/providers/Microsoft.ContainerService/{LISTED}")["values"]
    finally:
        arm.stop()
    alike = [each for each in listed if " and ".join(each["capabilities"]["supportPlan"]) == plans]
    (far,) = {len(become) - 1 for become in minors.values()}
    number = {each["version"]: int(each["version"].split(".")[1]) for each in listed}
    for each in alike:
        upgrades = [patch for versions in each["patchVersions"].values() for patch in versions["upgrades"]]
        reached = max(int(patch.split(".")[1]) for patch in [*upgrades, each["version"]])
        assert reached == min(number[each["version"]] + far, max(number.values()))


def test_values_agree(shown: dict[str, Any]) -> None:
    assert {path: shown.get(path) for path in RECORDED["shown"]} == RECORDED["shown"]


def test_keys_agree_except_for_listed_differences(shown: dict[str, Any]) -> None:
    alone, ours = RECORDED["open"]["shown by azure alone"], RECORDED["open"]["shown by the simulator alone"]
    recorded = {*RECORDED["shown"], *RECORDED["named"], *alone}
    own = {path for path in shown if not path.startswith("pool.")}
    assert (recorded - own, own - recorded) == (set(alone), set(ours))


def test_a_pool_agrees(shown: dict[str, Any]) -> None:
    pool = RECORDED["pool"]
    assert {path: shown.get(f"pool.{path}") for path in pool["shown"]} == pool["shown"]
    assert {path.split(".")[1] for path in shown if path.startswith("pool.")} & set(pool["hidden"]) == set()
