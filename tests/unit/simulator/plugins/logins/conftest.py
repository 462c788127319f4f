from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from simulator.azure import domains
from simulator.azure.gateway import Gateway
from simulator.command import environment
from simulator.host import paths
from tests.support.arm import GROUP, TOKEN, Arm, FakeBackend, start

Enter = Callable[[str], Arm]
"""Starts a simulated Azure with a resource group and its environment variables, without a login."""


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Enter]:
    with ExitStack() as started:

        def entered(name: str) -> Arm:
            home = tmp_path / name
            arm = start(home / "azure", FakeBackend())
            started.callback(arm.stop)
            assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
            gateway = Gateway(0, arm.server.world, arm.server.port)
            started.callback(gateway.stop)
            for variable, value in _variables(home, arm, gateway.port).items():
                monkeypatch.setenv(variable, value)
            return arm

        yield entered


@pytest.fixture
def arm(enter: Enter) -> Arm:
    return enter("simulator")


def _variables(home: Path, arm: Arm, proxy: int) -> dict[str, str]:
    return {
        "SIMULATOR_ARM_ENDPOINT": arm.server.endpoint,
        "SIMULATOR_HOME": str(home),
        "SIMULATOR_PYTHON": sys.executable,
        "SIMULATOR_TOOLS": str(paths.tool("kubelogin").parent),
        "IDENTITY_ENDPOINT": f"{arm.server.endpoint}/identity/token",
        "IDENTITY_HEADER": TOKEN,
        "SSL_CERT_FILE": arm.ca_file,
        "AZURE_CONFIG_DIR": str(home / "azure-cli"),
        "KUBECACHEDIR": str(home / "kube-cache"),
        "HTTPS_PROXY": domains.proxy(proxy, ""),
        "NO_PROXY": "127.0.0.1",
        "PATH": os.pathsep.join([str(environment.LOGINS), os.environ["PATH"]]),
    }
