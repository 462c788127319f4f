from __future__ import annotations

from tests.unit.simulator.azure.conftest import arm, plugin

__all__ = ["arm", "plugin"]
