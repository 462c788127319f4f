"""A simulated Azure for a test that kills it: `python -m <this module> FOLDER`.

Never finishes an operation. Prints the endpoint, then serves until killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from simulator.azure.server import Server
from tests.support.arm import SUBSCRIPTION, TOKEN, FakeBackend, FakeBlobs

if __name__ == "__main__":
    backend = FakeBackend()
    backend.create = lambda cluster_id: time.sleep(600)  # type: ignore[method-assign]
    server = Server(0, TOKEN, SUBSCRIPTION, backend, FakeBlobs(), Path(sys.argv[1]))
    server.start()
    print(server.endpoint, flush=True)
    time.sleep(600)
