from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s.objects import Object
from simulator.azure.ids import parse_id
from simulator.azure.store import Record, Store
from simulator.command import clusters, diagnosed, pulumi_cli
from simulator.host import paths

GROUP = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/ai-on-aks-dev"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/dev"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(paths, "home", lambda: tmp_path)
    return Store(tmp_path / "azure")


def state(monkeypatch: pytest.MonkeyPatch, *resources: Object) -> None:
    def exported(*_: str, **__: Any) -> Object:
        return {"deployment": {"resources": list(resources)}}

    monkeypatch.setattr(pulumi_cli, "read", exported)


def test_clusters_come_from_the_stacks_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = {"type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": CLUSTER}}
    state(monkeypatch, provider, provider, {"type": "pulumi:pulumi:Stack"})
    assert clusters.of_stack("olmo") == {CLUSTER}


def test_a_cluster_is_gone_if_azure_does_not_have_it(store: Store) -> None:
    store.put(Record(parse_id(f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/other"), {}))
    assert clusters.are_gone({CLUSTER})
    store.put(Record(parse_id(CLUSTER), {"properties": {"provisioningState": "Deleting"}}))
    assert not clusters.are_gone({CLUSTER.upper().replace("/SUBSCRIPTIONS", "/subscriptions")})


def test_clusters_are_not_gone_while_one_exists_or_is_unknown(store: Store) -> None:
    """A provider may have no cluster in the state."""
    assert not clusters.are_gone(set())
    assert not clusters.are_gone({CLUSTER, ""})
    store.put(Record(parse_id(CLUSTER), {}))
    assert not clusters.are_gone({CLUSTER, f"{CLUSTER}-2"})


def test_reports_a_failed_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = paths.cluster(CLUSTER)
    folder.mkdir(parents=True)
    (folder / "admin.kubeconfig").touch()

    def failing(_: Path) -> Object:
        raise diagnosed.DiagnosisFailed("no kubectl")

    monkeypatch.setattr(diagnosed, "platform", failing)
    error = "  python -m diagnosis cannot find the pods that do not end: no kubectl"
    assert clusters.blocked_deletions({CLUSTER}) == [error]
