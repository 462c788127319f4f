"""Mounts copy only on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.kubelet.csi import mount
from tests.unit.simulator.kubelet.cluster import Cluster


@pytest.fixture(autouse=True)
def _mounts_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount, "EVERY_S", 3600.0)
    monkeypatch.setattr(mount, "EVERY_S_UNREMEMBERED", 3600.0)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.azure.connect(monkeypatch)
    yield made
    made.claims.stop()
