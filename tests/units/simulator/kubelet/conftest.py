"""Mounts copy only when a test says so."""

from __future__ import annotations

import pytest

from simulator.kubelet.csi import mount


@pytest.fixture(autouse=True)
def _mounts_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount, "EVERY_S", 3600.0)
    monkeypatch.setattr(mount, "EVERY_S_UNREMEMBERED", 3600.0)
