"""A client of the azure-native plugin, with plain Python values."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from simulator.plugins.azure_native.provider import AzureNativeProvider
from simulator.plugins.marshal import Properties, decode, encode
from tests.support.arm import TOKEN, Arm
from tests.support.sizes import H100

GROUP = "azure-native:resources:ResourceGroup"
CLUSTER = "azure-native:containerservice:ManagedCluster"
POOL = "azure-native:containerservice:AgentPool"
ROLE = "azure-native:authorization:RoleAssignment"
NETWORK = "azure-native:network:VirtualNetwork"
REGISTRY = "azure-native:containerregistry:Registry"
ACCOUNT = "azure-native:storage:StorageAccount"
CONTAINER = "azure-native:storage:BlobContainer"


def urn(token: str, name: str = "x") -> str:
    return f"urn:pulumi:dev::ai-on-aks::my:module:Component${token}::{name}"


@dataclass
class AzurePlugin:
    stub: provider_pb2_grpc.ResourceProviderStub

    def configure(self, **settings: str) -> None:
        variables = {f"azure-native:config:{name}": value for name, value in settings.items()}
        self.stub.Configure(provider_pb2.ConfigureRequest(variables=variables))

    def check(
        self, token: str, news: Properties, olds: Properties | None = None, name: str = "x", **more: Any
    ) -> tuple[Properties, list[str]]:
        request = provider_pb2.CheckRequest(urn=urn(token, name), news=encode(news), olds=encode(olds or {}), **more)
        answer = self.stub.Check(request)
        return decode(answer.inputs), [failure.reason for failure in answer.failures]

    def diff(
        self, token: str, olds: Properties, news: Properties, state: Properties | None = None
    ) -> provider_pb2.DiffResponse:
        """`olds` are the old inputs; `state` adds the outputs."""
        given = {"olds": encode(olds if state is None else state), "old_inputs": encode(olds), "news": encode(news)}
        answer: provider_pb2.DiffResponse = self.stub.Diff(provider_pb2.DiffRequest(urn=urn(token), **given))
        return answer

    def create(
        self, token: str, inputs: Properties, *, name: str = "x", preview: bool = False
    ) -> tuple[str, Properties]:
        request = provider_pb2.CreateRequest(
            urn=urn(token, name), properties=encode(inputs), preview=preview, timeout=20
        )
        answer = self.stub.Create(request)
        return answer.id, decode(answer.properties)

    def update(
        self,
        token: str,
        identity: str,
        olds: Properties,
        news: Properties,
        *,
        old_inputs: Properties | None = None,
        preview: bool = False,
    ) -> Properties:
        request = provider_pb2.UpdateRequest(
            urn=urn(token), id=identity, olds=encode(olds), news=encode(news), preview=preview, timeout=20
        )
        request.old_inputs.update(old_inputs or {})
        return decode(self.stub.Update(request).properties)

    def read(
        self, token: str, identity: str, outputs: Properties, inputs: Properties | None
    ) -> provider_pb2.ReadResponse:
        """Reads a resource; without inputs, imports it."""
        request = provider_pb2.ReadRequest(urn=urn(token), id=identity, properties=encode(outputs))
        if inputs is not None:
            request.inputs.CopyFrom(encode(inputs))
        answer: provider_pb2.ReadResponse = self.stub.Read(request)
        return answer

    def delete(self, token: str, identity: str) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(urn=urn(token), id=identity, timeout=20))

    def invoke(self, token: str, arguments: Properties) -> Properties:
        answer = self.stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=encode(arguments)))
        return decode(getattr(answer, "return"))

    def cancel(self) -> None:
        self.stub.Cancel(Empty())

    def stack(self) -> tuple[Properties, Properties]:
        _, group = self.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
        _, cluster = self.create(CLUSTER, cluster_inputs(), name="aks")
        return group, cluster


@contextmanager
def serve(arm: Arm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzurePlugin]:
    token = folder / "token"
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


def failure(raised: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    details: str = raised.value.details()
    return details


def cluster_inputs(**more: Any) -> Properties:
    pool = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D4ads_v5"}
    base: Properties = {
        "resourceGroupName": "rg",
        "resourceName": "aks",
        "location": "eastus",
        "dnsPrefix": "dev",
        "identity": {"type": "SystemAssigned"},
        "agentPoolProfiles": [pool],
    }
    return base | more


def pool_inputs(**more: Any) -> Properties:
    base: Properties = {
        "resourceGroupName": "rg",
        "resourceName": "aks",
        "agentPoolName": "gpu",
        "vmSize": H100,
        "count": 2,
        "mode": "User",
        "gpuProfile": {"driver": "None"},
        "nodeTaints": ["sku=gpu:NoSchedule"],
    }
    return base | more


OF_ACCOUNT = {"resourceGroupName": "rg", "accountName": "models"}
ACCOUNT_INPUTS: Properties = {
    **OF_ACCOUNT,
    "location": "eastus",
    "kind": "StorageV2",
    "sku": {"name": "Standard_LRS"},
    "enableHttpsTrafficOnly": True,
    "allowSharedKeyAccess": True,
    "isHnsEnabled": False,
}
REGISTRY_INPUTS: Properties = {
    "resourceGroupName": "rg",
    "registryName": "aionaks",
    "location": "eastus",
    "sku": {"name": "Basic"},
    "adminUserEnabled": False,
}
CONTAINER_INPUTS: Properties = {**OF_ACCOUNT, "containerName": "data"}
INPUTS: dict[str, tuple[str, Properties]] = {
    "account": (ACCOUNT, ACCOUNT_INPUTS),
    "cluster": (CLUSTER, cluster_inputs()),
    "container": (CONTAINER, CONTAINER_INPUTS),
    "group": (GROUP, {"resourceGroupName": "a", "location": "eastus"}),
    "network": (NETWORK, {"resourceGroupName": "rg", "location": "eastus", "virtualNetworkName": "ai"}),
    "pool": (POOL, pool_inputs()),
    "registry": (REGISTRY, REGISTRY_INPUTS),
    "role": (ROLE, {"scope": "/a", "principalId": "p"}),
}
