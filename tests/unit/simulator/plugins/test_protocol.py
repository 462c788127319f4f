"""The engine's protocol in a plugin, which has no more of the SDK."""

from __future__ import annotations

import subprocess
import sys

DEEP = """
from simulator.plugins.protocol import provider_pb2
request = provider_pb2.CreateRequest()
properties = request.properties
for _ in range({levels}):
    properties = properties.fields["properties"].struct_value
assert provider_pb2.CreateRequest.FromString(request.SerializeToString()) == request
"""


def test_objects_may_be_as_deep_as_the_sdk_and_gos_plugins_have_them() -> None:
    """In a process of its own: in this one the SDK may be there."""
    done = subprocess.run([sys.executable, "-c", DEEP.format(levels=200)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
