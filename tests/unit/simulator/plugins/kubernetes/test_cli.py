from __future__ import annotations

import signal
from pathlib import Path

import pytest

from simulator.kube.client import KubeClient
from tests.support.plugin_stack import PluginStack, outcome
from tests.support.waiting import eventually

pytestmark = pytest.mark.simulator


@pytest.fixture
def stack(tmp_path: Path, kubeconfig: str) -> PluginStack:
    return PluginStack(tmp_path / "stack", kubeconfig)


NOWHERE = {"no": "such-node"}  # pods without a node are deleted at once
STUCK = """
deployment = k8s.apps.v1.Deployment("stuck", opts=options, metadata={{"name": "stuck", "namespace": "{namespace}",
    "annotations": {{"pulumi.com/timeoutSeconds": "{timeout}"}}}},
    spec={{"selector": {{"match_labels": {{"app": "a"}}}}, "template": {{
        "metadata": {{"labels": {{"app": "a"}}, "annotations": {{"simulator/run-by": "kwok"}}}},
        "spec": {{"node_selector": {selector}, "containers": [{{"name": "c", "image": "x",
            "env": [{{"name": "BIG", "value": "x" * 20000}}]}}]}}}}}})
"""


def test_an_interrupted_update_keeps_created_objects(stack: PluginStack, kube: KubeClient, namespace: str) -> None:
    stack.program(STUCK.format(namespace=namespace, timeout=300, selector=NOWHERE))
    process = stack.start("up", "--yes", "--skip-preview")
    try:
        eventually(lambda: kube.find("apps/v1", "Deployment", "stuck", namespace), "the deployment", seconds=120)
    finally:
        process.send_signal(signal.SIGINT)
        output = outcome(process, 120)
    assert process.returncode != 0
    assert 'Resource operation was cancelled for "stuck"' in output
    assert stack.state("stuck")["id"] == f"{namespace}/stuck"


UNKNOWN_CLUSTER = """
import pulumi_kubernetes.core.v1 as core

later = core.ConfigMap("holds", metadata={{"name": "holds", "namespace": "{namespace}"}}, opts=options,
    data={{"kubeconfig": os.environ["KUBECONFIG_TEXT"]}})
second = k8s.Provider("second", kubeconfig=later.data["kubeconfig"], cluster_identifier=later.metadata.uid)
inside = pulumi.ResourceOptions(provider=second)
core.ConfigMap("inside", metadata={{"namespace": "{namespace}"}}, opts=inside)
k8s.helm.v3.Release("rel", name="rel", chart="{chart}", namespace="{namespace}", opts=inside)
"""


def test_previews_objects_of_a_cluster_that_does_not_exist_yet(stack: PluginStack, namespace: str, chart: Path) -> None:
    stack.program(UNKNOWN_CLUSTER.format(namespace=namespace, chart=chart))
    preview = stack.pulumi("preview")
    assert preview.code == 0, preview.output
    up = stack.up()
    assert up.code == 0, up.output
    again = stack.pulumi("preview", "--expect-no-changes", "--diff")
    assert again.code == 0, again.output


def test_the_program_of_an_import_changes_nothing(
    stack: PluginStack, kube: KubeClient, namespace: str, kubeconfig: str, tmp_path: Path
) -> None:
    data = {"plain": "1", "special": 'say "${x}"\n\\'}
    kube.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}, "data": data}
    )
    (tmp_path / "kubeconfig").write_text(kubeconfig)
    stack.environment["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    program = stack.folder / "__main__.py"
    program.write_text("")
    imported = stack.pulumi(
        "import", "kubernetes:core/v1:ConfigMap", "found", f"{namespace}/a", "--yes", "--out", "text"
    )
    assert imported.code == 0, imported.output
    text = (stack.folder / "text").read_text()
    assert 'found = kubernetes.core.v1.ConfigMap("found",' in text
    program.write_text(text)
    again = stack.pulumi("preview", "--expect-no-changes", "--diff")
    assert again.code == 0, again.output
