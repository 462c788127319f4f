from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes import awaiters
from simulator.plugins.kubernetes.release import records
from simulator.plugins.marshal import Properties
from tests.support.plugin_cluster import control_plane, kube, kubeconfig, write_chart
from tests.support.plugin_engine import KubernetesPlugin
from tests.support.waiting import eventually

__all__ = ["control_plane", "kube", "kubeconfig"]


@pytest.fixture
def plugin(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesPlugin]:
    monkeypatch.setattr(awaiters, "DEFAULT_TIMEOUT_SECONDS", 60.0)  # a failing test must not take ten minutes
    plugin = KubernetesPlugin({"kubeconfig": kubeconfig, "clusterIdentifier": "test"})
    yield plugin
    plugin.close()


@pytest.fixture
def namespace(kube: KubeClient) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kube.delete("v1", "Namespace", name)


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    return write_chart(tmp_path / "demo")


@pytest.fixture
def release(chart: Path, namespace: str) -> Properties:
    return {"chart": str(chart), "name": "rel", "namespace": namespace, "values": {"size": 5}}


def wait_for_record(kube: KubeClient, namespace: str) -> None:
    def begun() -> bool:
        record = records.latest(kube, namespace, "rel")
        return record is not None and record.pending

    eventually(begun, "helm begins")
