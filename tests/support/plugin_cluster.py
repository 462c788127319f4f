from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.cluster.controlplane import ControlPlane
from simulator.host import paths
from simulator.kube.client import KubeClient

TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "helm", "pulumi")


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    missing = [tool for tool in TOOLS if not _have(tool)]
    assert not missing, f"missing tools: {', '.join(missing)}; `make tools` installs them"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(tmp_path_factory.mktemp("simulator")))
        plane = ControlPlane("plugin")
        plane.start()
        kube = plane.client()
        kube.create(_node())
        yield plane
        kube.close()
        plane.stop()


@pytest.fixture(scope="session")
def kubeconfig(control_plane: ControlPlane) -> str:
    return control_plane.kubeconfig()


@pytest.fixture(scope="session")
def kube(control_plane: ControlPlane) -> Iterator[KubeClient]:
    client = control_plane.client()
    yield client
    client.close()


def write_chart(folder: Path) -> Path:
    """Writes a chart with a schema: a ConfigMap, and a Deployment unless `replicas` is 0."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: '9'\n")
    (folder / "values.yaml").write_text("size: 1\nreplicas: 0\n")
    (folder / "values.schema.json").write_text(SCHEMA)
    (folder / "templates" / "all.yaml").write_text(TEMPLATE)
    return folder


SCHEMA = """{"type": "object", "additionalProperties": false,
 "properties": {"size": {"type": "integer"}, "replicas": {"type": "integer"}, "global": {"type": "object"}}}"""
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  size: {{ .Values.size | quote }}
{{- if .Values.replicas }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: demo}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers: [{name: c, image: registry.invalid/never-runs}]
{{- end }}
"""


def _have(tool: str) -> bool:
    try:
        paths.tool(tool)
    except FileNotFoundError:
        return False
    return True


def _node() -> dict[str, object]:
    status = {"capacity": {"cpu": "32", "memory": "64Gi", "pods": "110"}}
    status["allocatable"] = status["capacity"]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "status": status}
