from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.azure.types.agent_pool import life
from tests.support.arm import CLUSTER, GROUP, Arm, FakeBackend, cluster_body, start
from tests.support.azure_plugin import AzurePlugin, serve
from tests.support.networks import make
from tests.support.scaled_cluster import ScaledCluster


@pytest.fixture
def arm(tmp_path: Path) -> Iterator[Arm]:
    started = start(tmp_path / "azure", FakeBackend())
    yield started
    started.stop()


@pytest.fixture
def group(arm: Arm) -> Arm:
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    return arm


@pytest.fixture
def cluster(group: Arm) -> Arm:
    make(group, CLUSTER, cluster_body())
    return group


@pytest.fixture
def scaled(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> ScaledCluster:
    """Allocates machines at once."""
    monkeypatch.setattr(life, "ALLOCATION_S", 0.01)
    return ScaledCluster(cluster)


@pytest.fixture
def plugin(arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzurePlugin]:
    with serve(arm, tmp_path, monkeypatch) as served:
        yield served
