from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from simulator.plugins import sdk
from simulator.plugins.azure_native import VERSION
from tests.support.waiting import eventually

PLUGIN = [sys.executable, "-m", "simulator.plugins.azure_native"]
# Starts the plugin and prints its port and process id.
PARENT = """
import subprocess, sys
plugin = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
print(plugin.stdout.readline().strip(), plugin.pid, flush=True)
sys.stdin.read()
"""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _version(port: str) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        version: str = provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(Empty(), timeout=20).version
    return version


@contextlib.contextmanager
def _unanswering_azure() -> Iterator[tuple[dict[str, str], socket.socket]]:
    with socket.socket() as listener, tempfile.NamedTemporaryFile("w") as token:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(30)
        endpoint = f"https://127.0.0.1:{listener.getsockname()[1]}"
        yield {"SIMULATOR_ARM_ENDPOINT": endpoint, "SIMULATOR_ARM_TOKEN_FILE": token.name}, listener


def test_a_plugin_ends_with_its_parent_during_a_call() -> None:
    command = [sys.executable, "-c", PARENT, *PLUGIN]
    with (
        _unanswering_azure() as (environment, azure),
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment
        ) as parent,
    ):
        assert parent.stdout is not None
        port, pid = parent.stdout.readline().split()
        assert _version(port) == VERSION
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            call = stub.CheckConfig.future(
                provider_pb2.CheckRequest(urn="urn:pulumi:dev::p::pulumi:providers:azure-native::x")
            )
            connection, _ = azure.accept()
            with connection:
                assert not call.done()
                parent.kill()
                eventually(lambda: not _alive(int(pid)), "the plugin ends")
            assert call.exception(20) is not None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_plugin_ends_at_a_signal(number: signal.Signals) -> None:
    """The engine interrupts each plugin after every command, and kills it after 5 s."""
    with subprocess.Popen(PLUGIN, stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout is not None
        plugin.stdout.readline()
        try:
            plugin.send_signal(number)
            assert plugin.wait(20) == 0
        finally:
            plugin.kill()


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
    command = [sys.executable, "-c", f"import sys{program}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["azure_native.provider", "kubernetes.provider", "language_host.host"])
def test_a_plugin_starts_without_the_sdk(module: str) -> None:
    assert printed(f"; import simulator.plugins.{module}; print('pulumi' in sys.modules)") == "False"


def test_the_sdk_can_be_imported_after_the_protocol() -> None:
    both = "; import simulator.plugins.protocol as ours; import pulumi.runtime; from pulumi.runtime import proto"
    assert printed(f"{both}; print(pulumi.Output, proto.provider_pb2 is ours.provider_pb2)").endswith("True")


def test_deferred_annotations_keep_the_types_of_properties() -> None:
    deferred = "; from simulator.plugins.language_host.deferred import defer_annotations; defer_annotations()"
    ordinary = {token: sdk.properties(sdk.arguments(made)) for token in TOKENS if (made := sdk.resource(token))}
    assert len(ordinary) == len(TOKENS)
    assert printed(deferred + TYPES, *TOKENS) == str(ordinary)
