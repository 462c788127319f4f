"""The gRPC server of a plugin, by the engine's conventions."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

from simulator.plugins.protocol import provider_pb2_grpc

_UNLIMITED = -1
_THREADS = 64  # only large stacks have more steps at once; further calls wait
_PARENT_POLL_SECONDS = 1.0


def serve(
    servicer: object,
    register: Callable[..., None] = provider_pb2_grpc.add_ResourceProviderServicer_to_server,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Serves on a free port of 127.0.0.1 until the parent process (the engine) ends, or SIGINT or SIGTERM.

    Prints the port as the first line of stdout. `servicer` is a resource provider, unless `register` adds another
    service. Calls `ended`, then ends the process.

    The engine sends SIGINT to stop a plugin and waits 5 s. For a user's Ctrl-C, the engine calls `Cancel` instead.
    """
    options = [("grpc.max_receive_message_length", _UNLIMITED), ("grpc.max_send_message_length", _UNLIMITED)]
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=options)
    register(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    parent, stopped = os.getppid(), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    server.start()
    print(port, flush=True)
    while not stopped.wait(_PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    server.stop(grace=None)
    ended()
    os._exit(0)  # running calls have no client, and the interpreter would wait for their threads
