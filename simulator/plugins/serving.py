"""Serves a plugin's gRPC server as the engine expects: the port on the first line of stdout, gone with its parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

_UNLIMITED = -1
_THREADS = 64  # the engine starts that many steps at once only in large stacks; more of them wait
_PARENT_POLL_SECONDS = 1.0


def serve(
    servicer: object,
    register: Callable[..., None] = provider_pb2_grpc.add_ResourceProviderServicer_to_server,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Serves on a free port of 127.0.0.1 until the parent process (the engine) has gone or SIGTERM arrives.

    `servicer` is a resource provider, unless `register` adds another kind of service to the gRPC server.
    The process ends here; `ended` is called before.
    SIGINT is ignored: Ctrl-C reaches the whole process group, and the engine asks for an orderly end with `Cancel`.
    """
    options = [("grpc.max_receive_message_length", _UNLIMITED), ("grpc.max_send_message_length", _UNLIMITED)]
    server = grpc.server(ThreadPoolExecutor(_THREADS), options=options)
    register(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    parent, stopped = os.getppid(), threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server.start()
    print(port, flush=True)
    while not stopped.wait(_PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    server.stop(grace=None)
    ended()
    os._exit(0)  # calls under way have nobody to answer to, and the interpreter would wait for their threads
