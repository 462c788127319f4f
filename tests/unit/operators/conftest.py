from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.cluster.controlplane import ControlPlane
from tests.unit.operators.admission_cluster import policies

__all__ = ["policies"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(tmp_path_factory.mktemp("plane")))
        made = ControlPlane("policies")
        made.start()
        try:
            yield made
        finally:
            made.stop()
