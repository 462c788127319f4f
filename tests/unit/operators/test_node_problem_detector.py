from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from config.data import skus
from config.data.content_tags import IMAGES
from operators.monitoring import files
from operators.node_problem_detector import (
    NAME,
    alerts,
    daemon_set_name,
)
from operators.node_problem_detector.conditions import (
    NodeCondition,
    condition_type,
    conditions,
    conditions_of,
    configurations,
)
from tests.support.mocks import program
from tests.support.pools import A100
from tests.support.sizes import H100, H200, T4

IMAGE = IMAGES / NAME
AKS_CONDITIONS = {
    *("FilesystemCorruptionProblem", "KubeletProblem", "ContainerRuntimeProblem", "VMEventScheduled", "KernelDeadlock"),
    *("FrequentUnregisterNetDevice", "FrequentKubeletRestart", "FrequentContainerdRestart", "FrequentDockerRestart"),
    *("ReadonlyFilesystem", "GPUMissing", "IBLinkFlapping", "UnhealthyNvidiaDevicePlugin"),
    "UnhealthyNvidiaDCGMServices",
}
"""AKS's conditions (aks-docs, articles/aks/node-problem-detector.md; AgentBaker, e2e/validators.go)."""


def monitor(sku: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(configurations(skus.sku(sku), ofed=True)[f"{name}.json"])
    return found


def test_conditions_differ_from_those_of_aks() -> None:
    assert {condition_type(name) for name in conditions()} & AKS_CONDITIONS == set()
    assert all(condition_type(name).startswith("ai-on-aks/") for name in conditions())


@pytest.mark.parametrize("name", conditions())
def test_each_condition_has_an_executable_script_in_the_image(name: str) -> None:
    script = IMAGE / conditions()[name].check.split()[0]
    assert script.is_file()
    assert script.stat().st_mode & 0o111
    copied = " ".join(re.findall(r"^COPY (.*)$", (IMAGE / "Dockerfile").read_text("utf-8"), re.MULTILINE)).split()
    assert script.name in copied


def test_each_size_has_the_conditions_and_limits_of_its_hardware() -> None:
    assert set(conditions_of(skus.sku(H100), ofed=True)) == set(conditions())
    assert set(conditions()) - set(conditions_of(skus.sku(T4), ofed=True)) == {
        *("GPUMemoryErrors", "GPURowRemapFailed", "NVLinkInactive"),
        *("InfiniBandDown", "InfiniBandFlapping", "InfiniBandSlow", "OFEDMissing"),
    }
    assert set(conditions()) - set(conditions_of(skus.sku(H200), ofed=False)) == {"OFEDMissing"}
    assert monitor(H100, "InfiniBandSlow")["rules"][0]["args"] == ["rate", "400"]
    assert monitor(A100, "InfiniBandSlow")["rules"][0]["args"] == ["rate", "200"]
    assert monitor(T4, "GPUMissing")["rules"][0]["args"] == ["1"]


def test_each_condition_has_its_own_file_and_no_initial_status() -> None:
    for file in configurations(skus.sku(H100), ofed=True).values():
        found = json.loads(file)
        assert len(found["conditions"]) == len(found["rules"]) == 1
        assert found["conditions"][0]["type"] == found["rules"][0]["condition"]
        assert found["conditions"][0]["reason"] != found["rules"][0]["reason"]
        assert found["pluginConfig"]["skip_initial_status"] is True
        assert int(found["pluginConfig"]["timeout"][:-1]) < int(found["pluginConfig"]["invoke_interval"][:-1])


@pytest.mark.parametrize(
    ("key", "value"), [("where", "everywhere"), ("every_s", "often"), ("alert", {"severity": "fatal", "lasts": "2m"})]
)
def test_rejects_a_condition_with_invalid_values(key: str, value: object) -> None:
    valid = conditions()["GPUMissing"].model_dump()
    with pytest.raises(ValidationError, match=key):
        NodeCondition.model_validate({**valid, key: value})


def test_critical_xids_equal_those_of_the_alert() -> None:
    listed = {int(line) for line in (IMAGE / "xids.txt").read_text("utf-8").splitlines() if not line.startswith("#")}
    (rule,) = (r for group in files.rules()["groups"] for r in group["rules"] if r["alert"] == "GPUFailed")
    assert listed == {int(number) for number in re.findall(r"== (\d+)", rule["expr"])}


def test_does_not_check_ofed_or_create_alerts_without_their_operators() -> None:
    operators = {"nodeProblemDetector": {"enabled": True}, "networkOperator": {"enabled": False}}
    found = program({"vmSku": H100, "operators": operators})
    assert "OFEDMissing.json" not in found.one(":ConfigMap", f"{daemon_set_name(skus.sku(H100))}-config").inputs["data"]
    assert found.names(":PrometheusRule") == []


def test_each_condition_has_an_alert_with_a_unique_name() -> None:
    ours = [rule["alert"] for group in alerts.rules()["groups"] for rule in group["rules"]]
    others = [rule["alert"] for group in files.rules()["groups"] for rule in group["rules"]]
    assert ours == [*map(alerts.alert_name, conditions()), alerts.UNKNOWN, alerts.AWAY]
    assert not set(ours) & set(others)


def test_each_script_belongs_to_a_condition_or_is_shared() -> None:
    scripts = {path.name for path in Path(IMAGE).glob("*.sh")}
    assert scripts == {each.check.split()[0] for each in conditions().values()} | {"lib.sh", "log.sh"}
