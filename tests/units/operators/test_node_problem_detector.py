"""node-problem-detector: its configuration for each VM size, where it runs and what it may, and its alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_kubernetes.core.v1 import Namespace
from pydantic import ValidationError

from components.node_pools import gpu_pools
from components.operators import Installed, Site
from config.facts import skus
from config.facts.content_tags import IMAGES
from config.schema.operators import MONITORING, NODE_TOOLS_NAMESPACE, OperatorSettings
from operators.monitoring import files
from operators.node_problem_detector import (
    NAME,
    OPERATOR,
    NodeProblemDetector,
    NodeProblemDetectorSettings,
    alerts,
    called_for,
    pod_spec,
)
from operators.node_problem_detector.conditions import (
    NodeCondition,
    condition_type,
    conditions,
    configurations,
    of_size,
)
from tests.support.mocks import Recorder, deploy
from tests.support.pools import A100, H100, H200, T4
from tests.support.settings import load

IMAGE = IMAGES / NAME
OF_AKS = {
    *("FilesystemCorruptionProblem", "KubeletProblem", "ContainerRuntimeProblem", "VMEventScheduled", "KernelDeadlock"),
    *("FrequentUnregisterNetDevice", "FrequentKubeletRestart", "FrequentContainerdRestart", "FrequentDockerRestart"),
    *(
        "ReadonlyFilesystem",
        "GPUMissing",
        "IBLinkFlapping",
        "UnhealthyNvidiaDevicePlugin",
        "UnhealthyNvidiaDCGMServices",
    ),
}
"""That AKS's own sets (aks-docs, articles/aks/node-problem-detector.md; Azure/AgentBaker, e2e/validators.go)."""
POOLS = {"h100": {"vmSku": H100}, "more": {"vmSku": H100}, "h200": {"vmSku": H200}}


class Other(Installed[OperatorSettings]):
    """An operator beside it, which makes nothing."""

    def create(self, site: Site, settings: OperatorSettings) -> None:
        pass


def registered(pools: Any = POOLS, others: Sequence[str] = ("network-operator", MONITORING)) -> Recorder:
    """What the component registers beside these operators."""

    def declare() -> None:
        settings = load({"pools": pools})
        site = Site(
            settings=settings,
            pools=gpu_pools(settings),
            image=lambda name: f"registry.test/{name}:1",
            registry=Namespace("registry", metadata={"name": "stands-for-it"}),
            installed={},
            namespace=Namespace("namespace", metadata={"name": NODE_TOOLS_NAMESPACE}),
            scheduler=None,
        )
        found = {name: Other(name, site, OperatorSettings()) for name in others}
        NodeProblemDetector(NAME, replace(site, installed=found), NodeProblemDetectorSettings())

    return deploy(declare)


@pytest.fixture(scope="module")
def made() -> Recorder:
    return registered()


def monitor(sku: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(configurations(skus.sku(sku), ofed=True)[f"{name}.json"])
    return found


# -- conditions --------------------------------------------------------------------------------------------------------


def test_no_condition_is_one_that_aks_sets() -> None:
    assert {condition_type(name) for name in conditions()} & OF_AKS == set()
    assert all(condition_type(name).startswith("ai-on-aks/") for name in conditions())


@pytest.mark.parametrize("name", conditions())
def test_each_has_a_script_in_the_image_which_can_be_run(name: str) -> None:
    script = IMAGE / conditions()[name].check.split()[0]
    assert script.is_file()
    assert script.stat().st_mode & 0o111
    copied = " ".join(re.findall(r"^COPY (.*)$", (IMAGE / "Dockerfile").read_text("utf-8"), re.MULTILINE)).split()
    assert script.name in copied


def test_each_size_has_the_conditions_that_it_can_have_with_its_own_limits() -> None:
    assert set(of_size(skus.sku(H100), ofed=True)) == set(conditions())
    assert set(conditions()) - set(of_size(skus.sku(T4), ofed=True)) == {
        *("GPUMemoryErrors", "GPURowRemapFailed", "NVLinkInactive"),
        *("InfiniBandDown", "InfiniBandFlapping", "InfiniBandSlow", "OFEDMissing"),
    }
    assert set(conditions()) - set(of_size(skus.sku(H200), ofed=False)) == {"OFEDMissing"}
    assert monitor(H100, "InfiniBandSlow")["rules"][0]["args"] == ["rate", "400"]
    assert monitor(A100, "InfiniBandSlow")["rules"][0]["args"] == ["rate", "200"]
    assert monitor(T4, "GPUMissing")["rules"][0]["args"] == ["1"]


def test_a_condition_has_a_file_of_its_own_and_nobody_says_anything_before_the_first_look() -> None:
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
def test_a_condition_that_says_what_nobody_knows_is_refused(key: str, value: object) -> None:
    whole = conditions()["GPUMissing"].model_dump()
    with pytest.raises(ValidationError, match=key):
        NodeCondition.model_validate({**whole, key: value})


def test_xids_are_critical_for_which_the_alert_on_gpus_is_raised() -> None:
    listed = {int(line) for line in (IMAGE / "xids.txt").read_text("utf-8").splitlines() if not line.startswith("#")}
    (rule,) = (r for group in files.rules()["groups"] for r in group["rules"] if r["alert"] == "GPUFailed")
    assert listed == {int(number) for number in re.findall(r"== (\d+)", rule["expr"])}


# -- its pods ----------------------------------------------------------------------------------------------------------


def test_nodes_of_a_size_have_one_daemon_set_with_their_limits(made: Recorder) -> None:
    assert sorted(made.names(":DaemonSet")) == [called_for(skus.sku(H100)), called_for(skus.sku(H200))]
    pod = made.one(":DaemonSet", "node-problem-detector-nd96isr-h100-v5").inputs["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"ai-on-aks/gpu": "true", "node.kubernetes.io/instance-type": H100}
    (config,) = (volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    found = made.one(":ConfigMap", "node-problem-detector-nd96isr-h100-v5-config").inputs
    assert found["metadata"]["name"] == config
    (told,) = (word for word in pod["containers"][0]["args"] if word.startswith("--config.custom-plugin-monitor="))
    assert told.partition("=")[2].split(",") == [f"/config/{name}" for name in sorted(found["data"])]


def test_without_ofed_of_ours_nobody_misses_it() -> None:
    found = registered(others=()).one(":ConfigMap", "node-problem-detector-nd96isr-h100-v5-config").inputs["data"]
    assert "OFEDMissing.json" not in found


def test_it_tolerates_every_taint_opens_no_port_and_holds_no_gpu() -> None:
    pod = pod_spec("r.test/node-problem-detector:1", skus.sku(H100), "config", ["GPUMissing.json"])
    (container,) = pod["containers"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert {"--port=0", "--prometheus-port=0"} <= set(container["args"])
    assert "runtimeClassName" not in pod
    assert "limits" in container["resources"]
    assert not [name for kind in container["resources"].values() for name in kind if "/" in name]
    assert not pod.get("hostNetwork")


def test_what_it_mounts_of_the_node_it_cannot_write_and_drivers_that_come_later_show() -> None:
    pod = pod_spec("r.test/node-problem-detector:1", skus.sku(H100), "config", [])
    of_node = {volume["name"] for volume in pod["volumes"] if "hostPath" in volume}
    mounts = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] in of_node]
    assert [mount["mountPath"] for mount in mounts] == ["/var/log", "/run/nvidia", "/run/mellanox"]
    assert all(mount["readOnly"] and mount["mountPropagation"] == "HostToContainer" for mount in mounts)


def test_it_may_read_nodes_patch_their_status_and_write_events_of_nodes(made: Recorder) -> None:
    assert made.one(":ClusterRole").inputs["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    events = made.one(":Role").inputs
    assert (events["metadata"]["namespace"], events["rules"]) == (
        "default",
        [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}],
    )
    for binding in (":ClusterRoleBinding", ":RoleBinding"):
        assert made.one(binding).inputs["subjects"] == [
            {"kind": "ServiceAccount", "name": NAME, "namespace": NODE_TOOLS_NAMESPACE}
        ]


@pytest.mark.parametrize(
    ("stack", "wanted"),
    [
        ({"vmSku": H100}, False),
        ({"vmSku": H100, "operators": {"nodeProblemDetector": {"enabled": True}}}, True),
    ],
)
def test_a_stack_has_it_where_it_asks_for_it(stack: dict[str, Any], wanted: bool) -> None:
    assert OPERATOR.is_wanted(load(stack)) is wanted


# -- alerts ------------------------------------------------------------------------------------------------------------


def test_alerts_are_there_where_monitoring_is(made: Recorder) -> None:
    assert made.one(":PrometheusRule").inputs["spec"] == alerts.rules()
    assert registered(others=()).names(":PrometheusRule") == []


def test_each_condition_has_an_alert_of_a_name_that_no_other_rule_has() -> None:
    ours = [rule["alert"] for group in alerts.rules()["groups"] for rule in group["rules"]]
    others = [rule["alert"] for group in files.rules()["groups"] for rule in group["rules"]]
    assert ours == [*map(alerts.alert_name, conditions()), alerts.UNKNOWN, alerts.AWAY]
    assert not set(ours) & set(others)


def test_each_script_is_of_a_condition_or_shared() -> None:
    scripts = {path.name for path in Path(IMAGE).glob("*.sh")}
    assert scripts == {each.check.split()[0] for each in conditions().values()} | {"lib.sh", "log.sh"}
