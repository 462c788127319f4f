from __future__ import annotations

from contextlib import nullcontext

import pytest
from azure.storage.blob import ContainerClient

from tests.unit.workloads.resim_cli import Cli
from workloads.resim.cli import session as sessions


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    found = Cli(capsys)
    monkeypatch.setattr(sessions, "outputs", lambda stack: found.outputs)
    monkeypatch.setattr(sessions, "kubectl", lambda *_: nullcontext(found.cluster))
    monkeypatch.setattr(ContainerClient, "from_container_url", lambda *_, **__: nullcontext(found.blobs))
    return found
