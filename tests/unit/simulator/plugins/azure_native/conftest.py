"""The plugin in front of an empty subscription."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.arm import Arm, FakeBackend, start
from tests.support.azure_plugin import AzurePlugin, serve


@pytest.fixture
def arm(tmp_path: Path) -> Iterator[Arm]:
    started = start(tmp_path / "azure", FakeBackend())
    yield started
    started.stop()


@pytest.fixture
def plugin(arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzurePlugin]:
    with serve(arm, tmp_path, monkeypatch) as served:
        yield served
