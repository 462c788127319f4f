"""Fixtures: an empty subscription, one with a cluster, and the plugin in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2_grpc

from simulator.azure.types.agent_pool import life
from simulator.plugins.azure_native.provider import AzureNativeProvider
from tests.support.arm import CLUSTER, GROUP, TOKEN, Arm, FakeBackend, cluster_body, start
from tests.support.scaled_cluster import ScaledCluster
from tests.units.simulator.azure.plugin import AzurePlugin


@pytest.fixture
def arm(tmp_path: Path) -> Iterator[Arm]:
    """An empty subscription."""
    started = start(tmp_path / "azure", FakeBackend())
    yield started
    started.stop()


@pytest.fixture
def cluster(arm: Arm) -> Arm:
    """A subscription with a resource group and a cluster in it."""
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    assert arm.put(CLUSTER, cluster_body()).status_code == 201
    arm.done()
    return arm


@pytest.fixture
def scaled(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> ScaledCluster:
    """That cluster with an autoscaler, whose machines are allocated at once."""
    monkeypatch.setattr(life, "ALLOCATION_S", 0.01)
    return ScaledCluster(cluster)


@pytest.fixture
def plugin(arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzurePlugin]:
    """The plugin over gRPC, its simulator being `arm`."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    monkeypatch.setenv("SIMULATOR_ARM_ENDPOINT", arm.server.endpoint)
    monkeypatch.setenv("SIMULATOR_ARM_TOKEN_FILE", str(token))
    monkeypatch.setenv("SSL_CERT_FILE", arm.ca_file)
    server = grpc.server(ThreadPoolExecutor(4))
    servicer = AzureNativeProvider()
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield AzurePlugin(provider_pb2_grpc.ResourceProviderStub(channel))
    server.stop(None).wait()
    servicer.close()
