from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.azure.server import Server
from simulator.command import environment
from simulator.host import ports
from tests.support.arm import SUBSCRIPTION, Arm, FakeBackend, FakeBlobs, ca_file, client_of
from tests.support.azure_resources import parents


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    """This process gets simulated Azure's environment variables."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in environment.unset():
            patch.delenv(name, raising=False)
        patch.setenv("SIMULATOR_HOME", str(home))
        for name, value in environment.settings().items():
            patch.setenv(name, value)
        secret, backend, blobs = environment.token_file().read_text(), FakeBackend(), FakeBlobs()
        server = Server(ports.require_free("arm"), secret, SUBSCRIPTION, backend, blobs)
        server.start()
        started = Arm(server, backend, blobs, client_of(server.endpoint, home, secret=secret), ca_file(home))
        for path, body in parents().items():
            assert started.put(path, body).status_code in (200, 201, 202), path
            started.done()
        yield started
        started.stop()
