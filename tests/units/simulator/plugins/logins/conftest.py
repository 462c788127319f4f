"""Commands of `make shell` beside a simulated Azure that runs in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.arm import GROUP, TOKEN, Arm, FakeBackend, start


@pytest.fixture
def arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arm]:
    """A subscription with a resource group, which the environment leads to; nobody has logged in."""
    started = start(tmp_path / "azure", FakeBackend())
    assert started.put(GROUP, {"location": "eastus"}).status_code == 201
    for name, value in {
        "SIMULATOR_ARM_ENDPOINT": started.server.endpoint,
        "SIMULATOR_PYTHON": sys.executable,
        "IDENTITY_ENDPOINT": f"{started.server.endpoint}/identity/token",
        "IDENTITY_HEADER": TOKEN,
        "SSL_CERT_FILE": started.ca_file,
        "AZURE_CONFIG_DIR": str(tmp_path / "azure-cli"),
    }.items():
        monkeypatch.setenv(name, value)
    yield started
    started.stop()
