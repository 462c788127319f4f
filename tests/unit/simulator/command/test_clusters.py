"""Whether the clusters of a stack's objects are there, by its state and by simulated Azure."""

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


def test_a_stacks_clusters_are_those_of_its_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = {"type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": CLUSTER}}
    as_user = {"type": "pulumi:providers:kubernetes", "inputs": {"clusterIdentifier": CLUSTER}}
    state(monkeypatch, provider, as_user, {"type": "pulumi:pulumi:Stack"})
    assert clusters.of_stack("olmo") == {CLUSTER}


def test_one_that_azure_has_not_is_gone(store: Store) -> None:
    assert clusters.are_gone({CLUSTER})
    store.put(Record(parse_id(f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/other"), {}))
    assert clusters.are_gone({CLUSTER})


@pytest.mark.parametrize("provisioning", ["Succeeded", "Deleting", "Failed"])
def test_one_that_azure_has_is_there_in_whatever_state_and_spelling(store: Store, provisioning: str) -> None:
    store.put(Record(parse_id(CLUSTER), {"properties": {"provisioningState": provisioning}}))
    assert not clusters.are_gone({CLUSTER.upper().replace("/SUBSCRIPTIONS", "/subscriptions")})


def test_as_long_as_one_is_there_or_is_not_known_none_is_forgotten(store: Store) -> None:
    """A provider may not name its cluster in the state."""
    assert not clusters.are_gone(set())
    assert not clusters.are_gone({CLUSTER, ""})
    store.put(Record(parse_id(CLUSTER), {}))
    assert not clusters.are_gone({CLUSTER, f"{CLUSTER}-2"})


def test_a_diagnosis_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = paths.cluster(CLUSTER)
    folder.mkdir(parents=True)
    (folder / "admin.kubeconfig").touch()

    def failing(_: Path) -> Object:
        raise diagnosed.DiagnosisFailed("no kubectl")

    monkeypatch.setattr(diagnosed, "platform", failing)
    assert clusters.held_up({CLUSTER}) == ["  python -m diagnosis cannot tell which pods do not end: no kubectl"]
