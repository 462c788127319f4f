"""The engine's protocol (`pulumi.runtime.proto`), imported without the rest of Pulumi's SDK.

Importing all of `pulumi` takes most of a plugin's start-up time.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator

from google.protobuf.pyext import cpp_message


@contextlib.contextmanager
def _sdk_left_out() -> Iterator[None]:
    """Replaces the parent packages with empty packages during an import. Later imports load the whole SDK."""
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

# As in the SDK (pulumi/runtime/rpc.py). Objects of more than 30 levels (CRDs of jobs) exceed the depth that Python's
# protobuf accepts by default.
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
