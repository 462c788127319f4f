"""Log lines and resource statuses for the engine."""

from __future__ import annotations

import contextlib
from typing import TypeAlias

import grpc

from simulator.plugins.protocol import engine_pb2, engine_pb2_grpc

Severity: TypeAlias = "engine_pb2.LogSeverity.ValueType"
INFO = engine_pb2.INFO
WARNING = engine_pb2.WARNING


class Engine:
    """The engine at `address` (host:port). Without an address, drops messages. Never fails an operation."""

    def __init__(self, address: str = "") -> None:
        self._stub = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address)) if address else None

    def log(self, urn: str, message: str, severity: Severity = INFO) -> None:
        self._send(urn, message, severity, ephemeral=False)

    def status(self, urn: str, message: str) -> None:
        """Shows the message until the next status. An empty message clears the status."""
        self._send(urn, message, INFO, ephemeral=True)

    def _send(self, urn: str, message: str, severity: Severity, *, ephemeral: bool) -> None:
        if self._stub is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        with contextlib.suppress(grpc.RpcError):  # an engine that shuts down must not fail the operation
            self._stub.Log(request, timeout=5)
