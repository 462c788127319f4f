"""Errors of plugin operations, and how the engine receives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import grpc

from simulator.plugins.marshal import encode
from simulator.plugins.protocol import provider_pb2, status_pb2


class PluginError(Exception):
    """The failure of an operation that left nothing for the engine to record. Users see the message."""


class InitializationFailed(PluginError):
    """The object exists but failed to initialize. The engine stores `outputs` and retries in the next update."""

    def __init__(
        self,
        message: str,
        identity: str,
        outputs: Mapping[str, Any],
        reasons: Sequence[str] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.identity, self.outputs, self.inputs, self.reasons = identity, outputs, inputs, [message, *reasons]

    def details(self) -> bytes:
        failed = provider_pb2.ErrorResourceInitFailed(
            id=self.identity,
            properties=encode(self.outputs),
            reasons=self.reasons,
            inputs=None if self.inputs is None else encode(self.inputs),
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(self))
        status.details.add().Pack(failed)
        serialized: bytes = status.SerializeToString()
        return serialized


def abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    if isinstance(error, InitializationFailed):
        context.set_trailing_metadata((("grpc-status-details-bin", error.details()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort always raises")
