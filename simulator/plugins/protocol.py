"""The engine's protocol, as Pulumi's SDK has it (`pulumi.runtime.proto`), without the SDK around it.

To import all of `pulumi` takes most of a plugin's start, and every pulumi command starts four of them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator

from google.protobuf.pyext import cpp_message


@contextlib.contextmanager
def _sdk_left_out() -> Iterator[None]:
    """Makes of the packages above the protocol empty ones meanwhile. Who imports the SDK afterwards gets all of it."""
    above = [name for name in ("pulumi", "pulumi.runtime") if name not in sys.modules]
    for name in above:
        spec = importlib.util.find_spec(name)
        assert spec is not None  # noqa: S101 - a locked dependency
        sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        for name in above:
            del sys.modules[name]


with _sdk_left_out():
    from pulumi.runtime.proto import (
        engine_pb2,
        engine_pb2_grpc,
        language_pb2,
        language_pb2_grpc,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
        status_pb2,
    )

# As the SDK does (pulumi/runtime/rpc.py), and Go's plugins may: objects of more than thirty levels, as CRDs of jobs
# are, go beyond the depth at which Python's protobuf takes a message for malicious.
cpp_message._message.SetAllowOversizeProtos(True)

__all__ = [
    "engine_pb2",
    "engine_pb2_grpc",
    "language_pb2",
    "language_pb2_grpc",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "status_pb2",
]
