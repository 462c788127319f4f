"""A stack of an earlier version of the program, whose patches wait for policies to be ready, updated by this version.

pulumi-kubernetes, provider/pkg: the wait is read off the live object, where the patch has put it, but not where the
inputs say skipAwait (metadata/overrides.go:108); patches that go give up their fields, after all updates
(await/await.go:960, ssa/actions.go:34).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from operators import network_operator
from operators.network_operator.settings import NetworkOperatorSettings
from simulator.host import paths
from simulator.kube.client import KubeClient, NoKindMatch
from tests.support.plugin_stack import PluginStack
from tests.support.waiting import eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long]
CRD = paths.ROOT / "simulator/charts/network-operator/crds/mellanox.com_nicclusterpolicies.yaml"
POLICY = ("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")
WAIT_FOR = "pulumi.com/waitFor"
PROGRAM = """
k8s.apiextensions.CustomResource(
    "nic-cluster-policy",
    api_version="mellanox.com/v1alpha1",
    kind="NicClusterPolicy",
    metadata={{"name": "nic-cluster-policy", **{metadata}}},
    spec={spec},
    opts=pulumi.ResourceOptions(provider=provider, custom_timeouts=pulumi.CustomTimeouts(update="3s")),
)
"""
PATCH = """
k8s.apiextensions.CustomResourcePatch(
    "nic-cluster-policy-ready",
    api_version="mellanox.com/v1alpha1",
    kind="NicClusterPolicy",
    metadata={"name": "nic-cluster-policy", "annotations": {"pulumi.com/waitFor": "jsonpath={.status.state}=ready"}},
    opts=options,
)
"""


@pytest.fixture
def stack(tmp_path: Path, kubeconfig: str, kube: KubeClient) -> Iterator[PluginStack]:
    crd = kube.create(yaml.safe_load(CRD.read_text()))
    eventually(lambda: served(kube), "the API server serves policies")
    stack = PluginStack(tmp_path / "stack", kubeconfig)
    yield stack
    assert stack.pulumi("destroy", "--yes", "--skip-preview").code == 0
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd["metadata"]["name"])


def served(kube: KubeClient) -> bool:
    try:
        kube.resource(*POLICY[:2])
    except NoKindMatch:
        return False
    return True


def policy(version: str, **metadata: Any) -> str:
    spec = network_operator.policy_spec(NetworkOperatorSettings(ofed_version=version), "manual", None)
    return PROGRAM.format(metadata=json.dumps(metadata), spec=json.dumps(spec).replace("false", "False"))


def report(kube: KubeClient, state: str) -> None:
    kube.patch(*POLICY, None, {"status": {"state": state}}, subresource="status")


def test_the_update_succeeds_at_once_and_leaves_no_annotation(stack: PluginStack, kube: KubeClient) -> None:
    stack.program(policy("26.01-1.0.0.0-0"))
    assert stack.up().code == 0
    report(kube, "ready")
    stack.program(policy("26.01-1.0.0.0-0") + PATCH)
    assert stack.up().code == 0
    assert WAIT_FOR in kube.get(*POLICY)["metadata"]["annotations"]
    report(kube, "notReady")  # OFED pods of the older template stay until somebody deletes them

    stack.program(policy("26.04-1.1.0.0-0") + PATCH)  # the defect, with three seconds in place of ten minutes
    failed = stack.up()
    assert failed.code != 0
    assert "Waiting for {.status.state}=ready" in failed.output, failed.output

    stack.program(policy("26.07-1.0.0.0-0", annotations={"pulumi.com/skipAwait": "true"}))
    succeeded = stack.up()
    assert succeeded.code == 0, succeeded.output
    live = kube.get(*POLICY)
    assert live["spec"]["ofedDriver"]["version"] == "26.07-1.0.0.0-0"
    assert live["status"]["state"] == "notReady"
    assert WAIT_FOR not in live["metadata"]["annotations"]
