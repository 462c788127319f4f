"""Serves a plugin's gRPC server as the engine expects: the port on the first line of stdout, gone with its parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

from simulator.plugins.protocol import provider_pb2_grpc

_UNLIMITED = -1
_THREADS = 64  # the engine starts that many steps at once only in large stacks; more of them wait
_PARENT_POLL_SECONDS = 1.0


def serve(
    servicer: object,
    register: Callable[..., None] = provider_pb2_grpc.add_ResourceProviderServicer_to_server,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Serves on a free port of 127.0.0.1 until the parent process (the engine) has gone, or SIGINT or SIGTERM arrives.

    `servicer` is a resource provider, unless `register` adds another kind of service to the gRPC server.
    The process ends here; `ended` is called before.
    SIGINT is how the engine ends a plugin, which it waits 5 s for. A user's Ctrl-C does not come here: the engine gives
    plugins a process group of their own, and asks for an orderly end of what is under way with `Cancel`.
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
    os._exit(0)  # calls under way have nobody to answer to, and the interpreter would wait for their threads
