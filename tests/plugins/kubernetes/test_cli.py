"""The plugin under the real engine and the Python SDK."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.kube.client import KubeClient
from tests.plugins.kubernetes.stack import Stack

pytestmark = pytest.mark.simulator

PROGRAM = """
ns = k8s.core.v1.Namespace("team", opts=options)
meta = {{"namespace": ns.metadata.name}}
k8s.core.v1.ConfigMap("settings", metadata=meta, data={{"a": "{value}"}}, opts=options)
password = pulumi.Output.secret("hunter2")
k8s.core.v1.Secret("keys", metadata=meta, string_data={{"password": password}}, opts=options)
account = k8s.core.v1.ServiceAccount("runner", metadata=meta, opts=options)
role = k8s.rbac.v1.Role("reader", metadata=meta, opts=options,
    rules=[{{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}}])
k8s.rbac.v1.RoleBinding("reads", metadata=meta, opts=options,
    role_ref={{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata.name}},
    subjects=[{{"kind": "ServiceAccount", "name": account.metadata.name, "namespace": ns.metadata.name}}])
release = k8s.helm.v3.Release("rel", name="rel", chart="{chart}", namespace=ns.metadata.name, values={{"size": {size}}},
    opts=options)
pulumi.export("namespace", ns.metadata.name)
pulumi.export("status", release.status.status)
"""


@pytest.fixture
def stack(tmp_path: Path, kubeconfig: str) -> Stack:
    return Stack(tmp_path / "stack", kubeconfig)


def test_a_stack_comes_up_changes_and_goes(stack: Stack, kube: KubeClient, chart: Path) -> None:
    stack.program(PROGRAM.format(value="1", size=2, chart=chart))
    assert stack.pulumi("preview").code == 0
    first = stack.up()
    assert first.code == 0, first.output
    namespace = stack.pulumi("stack", "output", "namespace").output.strip()
    assert namespace.startswith("team-")
    assert stack.pulumi("stack", "output", "status").output.strip() == "deployed"

    again = stack.pulumi("preview", "--expect-no-changes", "--diff")
    assert again.code == 0, again.output
    refreshed = stack.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    assert refreshed.code == 0, refreshed.output

    stack.program(PROGRAM.format(value="2", size=3, chart=chart))
    changed = stack.up()
    assert changed.code == 0, changed.output
    assert kube.get("v1", "ConfigMap", "rel", namespace)["data"] == {"size": "3"}

    kept = "".join(path.read_text() for path in (stack.folder / "state").rglob("*.json"))
    assert "hunter2" not in kept
    assert "client-key-data" not in kept
    down = stack.pulumi("destroy", "--yes", "--skip-preview")
    assert down.code == 0, down.output
    assert kube.find("v1", "Namespace", namespace) is None
