"""What the processes of a pulumi command import: the protocol without the SDK, the SDKs without their annotations."""

from __future__ import annotations

import subprocess
import sys

import pytest

from simulator.plugins import sdk

TYPES = """
from simulator.plugins import sdk
print({token: sdk.properties(sdk.arguments(sdk.resource(token))) for token in sys.argv[1:]})
"""
TOKENS = (
    "azure-native:containerservice:ManagedCluster",
    "azure-native:storage:StorageAccount",
    "kubernetes:core/v1:Namespace",
    "kubernetes:helm.sh/v3:Release",
)


def printed(program: str, *arguments: str) -> str:
    """By a process of its own: this one has imported everything."""
    command = [sys.executable, "-c", f"import sys{program}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["azure_native.provider", "kubernetes.provider", "language_host.host"])
def test_a_stand_in_starts_without_the_sdk(module: str) -> None:
    assert printed(f"; import simulator.plugins.{module}; print('pulumi' in sys.modules)") == "False"


def test_the_sdk_is_whole_for_who_imports_it_after_the_protocol() -> None:
    both = "; import simulator.plugins.protocol as ours; import pulumi.runtime; from pulumi.runtime import proto"
    assert printed(f"{both}; print(pulumi.Output, proto.provider_pb2 is ours.provider_pb2)").endswith("True")


def test_types_of_properties_are_the_same_with_deferred_annotations() -> None:
    deferred = "; from simulator.plugins.language_host.deferred import defer_annotations; defer_annotations()"
    ordinary = {token: sdk.properties(sdk.arguments(made)) for token in TOKENS if (made := sdk.resource(token))}
    assert len(ordinary) == len(TOKENS)
    assert printed(deferred + TYPES, *TOKENS) == str(ordinary)
