"""AppWrapper's configuration, and what it is installed with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from components import manifests
from config.facts.scheduling import LOCAL_QUEUE, WRAPPER_CONFIG, WRAPPER_NAMESPACE
from operators.appwrapper import configuration
from tests.support.golden import H100
from tests.support.mocks import Recorder, program

MINUTE = 60 * 10**9
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "aws.test"}}
SPACE = {"namespace": WRAPPER_NAMESPACE}
RELEASE: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WRAPPER_NAMESPACE}},
    {**CRD, "spec": {"names": {"x-kubernetes-some": {"api_version": 1, "dashed-key": True}}}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": WRAPPER_CONFIG, **SPACE}, "data": {}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook", **SPACE}, "spec": {}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bound"},
        "roleRef": {"kind": "ClusterRole", "name": "role"},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "manager", **SPACE},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "quay.io/ibm/appwrapper:v1"}]}}},
    },
]
OPERATORS = {"kueue": {"enabled": True}, "appwrapper": {"enabled": True}, "warmUpMinutes": 45}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A stack whose charts come from a folder."""
    charts: Path = tmp_path_factory.mktemp("charts")
    for name in ("kueue", "node-feature-discovery", "gpu-operator", "network-operator", "volcano", "blob-csi-driver"):
        (charts / name).mkdir()
        (charts / name / "Chart.yaml").touch()
    (charts / "appwrapper").mkdir()
    (charts / "appwrapper" / "install.yaml").write_text(yaml.safe_dump_all(RELEASE))
    manifests.manifests.cache_clear()
    source = {"charts": {"source": str(charts)}, "cluster": {"localAccounts": True}}
    return program({"vmSku": H100, "nodeCount": 2, "operators": OPERATORS, **source})


def test_each_object_is_a_resource_as_it_was_released(stack: Recorder) -> None:
    binding = stack.one(":ClusterRoleBinding", "bound")
    assert binding.type == "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding"
    assert binding.inputs == RELEASE[4]
    assert stack.one(":CustomResourceDefinition").inputs == RELEASE[1]
    assert binding.parent.endswith("AppWrapper appwrapper")
    assert stack.one(":core/v1:Namespace", "namespace-appwrapper-system")


def test_it_has_memory_for_all_pods_of_a_cluster_and_not_what_its_release_has(stack: Recorder) -> None:
    (container,) = stack.one(":Deployment", "manager").inputs["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["memory"] == "1000Mi"


def follows(stack: Recorder, resource: str, name: str) -> str:
    return " ".join(stack.one(resource, name).dependencies)


def test_pods_follow_what_they_need_and_no_service_which_is_waited_for_until_it_has_pods(stack: Recorder) -> None:
    after = follows(stack, ":Deployment", "manager")
    for name in ("namespace-appwrapper-system", WRAPPER_CONFIG, "bound"):
        assert f" {name}" in after
    assert "webhook" not in after
    assert "manager" not in follows(stack, ":Service", "webhook")


def test_what_users_have_wrapped_goes_while_the_operator_is_there(stack: Recorder) -> None:
    after = follows(stack, ":CustomResourceDefinition", "aws.test")
    assert "Deployment manager" in after
    assert "Service webhook" in after


def test_kueue_comes_after_it_since_namespaces_of_teams_go_before_both(stack: Recorder) -> None:
    assert "CustomResourceDefinition aws.test" in follows(stack, ":Release", "kueue")


def test_warm_up_is_one_setting_for_both_and_kueue_waits_longer(stack: Recorder) -> None:
    text = stack.one(":ConfigMap", WRAPPER_CONFIG).inputs["data"]["config.yaml"]
    assert yaml.safe_load(text) == configuration(45, "volcano")
    assert configuration(45, None)["appwrapper"]["faultTolerance"]["warmupGracePeriod"] == 45 * MINUTE
    kueue = stack.one(":Release", "kueue").inputs["values"]["managerConfig"]["controllerManagerConfigYaml"]
    assert yaml.safe_load(kueue)["waitForPodsReady"]["timeout"] == "55m"


def test_an_appwrapper_without_a_queue_gets_the_one_of_its_team() -> None:
    """AppWrapper's mutating webhook adds the label; validating admission policies run after it."""
    assert configuration(30, None)["appwrapper"]["defaultQueueName"] == LOCAL_QUEUE


def test_wrapped_pods_get_the_scheduler_that_the_stack_installs() -> None:
    assert configuration(30, "volcano")["appwrapper"]["schedulerName"] == "volcano"
    assert "schedulerName" not in configuration(30, None)["appwrapper"]


def test_no_period_is_beyond_the_ceiling_which_would_keep_it_from_starting() -> None:
    """ValidateAppWrapperConfig of its pkg/config/config.go."""
    periods = configuration(24 * 60, None)["appwrapper"]["faultTolerance"]
    ceiling = periods["gracePeriodCeiling"]
    for name in ("deletionGracePeriod", "resetPause", "failureGracePeriod", "admissionGracePeriod"):
        assert periods[name] <= periods["warmupGracePeriod"] <= ceiling
    assert (
        configuration(1, None)["appwrapper"]["faultTolerance"]["warmupGracePeriod"] >= periods["admissionGracePeriod"]
    )


def test_jobs_leave_nodes_by_autopilots_labels_and_by_ours() -> None:
    taints = configuration(30, None)["appwrapper"]["autopilot"]["resourceTaints"]["nvidia.com/gpu"]
    evicting = {f"{each['key']}={each['value']}" for each in taints if each["effect"] == "NoExecute"}
    assert evicting == {"autopilot.ibm.com/gpuhealth=EVICT", "ai-on-aks/gpu-health=failed"}
    avoided = [each["value"] for each in taints if each["effect"] != "NoExecute"]
    assert avoided == ["WARN", "TESTING"]
