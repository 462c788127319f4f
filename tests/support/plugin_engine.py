"""A minimal Pulumi engine: check, diff, create, read, update and delete over gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from simulator.plugins.kubernetes.engine import Engine
from simulator.plugins.kubernetes.provider import KubernetesProvider
from simulator.plugins.marshal import Properties, decode, encode


class RecordingEngine(Engine):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def _send(self, urn: str, message: str, severity: Any, *, ephemeral: bool) -> None:
        if message:
            self.messages.append(message)


@dataclass
class Resource:
    urn: str
    id: str
    inputs: Properties
    state: Properties


class Failed(Exception):
    """`partial` is the partial state of an object that was created anyway."""

    def __init__(self, error: grpc.RpcError) -> None:
        super().__init__(error.details())
        self.partial: provider_pb2.ErrorResourceInitFailed | None = None
        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                self.partial = provider_pb2.ErrorResourceInitFailed()
                status_pb2.Status.FromString(value).details[0].Unpack(self.partial)


@dataclass
class KubernetesPlugin:
    variables: Mapping[str, str]
    retry_unit: float = 0.01
    engine: RecordingEngine = field(default_factory=RecordingEngine)

    def __post_init__(self) -> None:
        self.provider = KubernetesProvider(self.engine, retry_unit=self.retry_unit)
        self._server = grpc.server(ThreadPoolExecutor(8))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(self.provider, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        size = ("grpc.max_metadata_size", 16 << 20), ("grpc.absolute_max_metadata_size", 16 << 20)  # as grpc-go has it
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", size)
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        variables = {f"kubernetes:config:{name}": value for name, value in self.variables.items()}
        self.stub.Configure(provider_pb2.ConfigureRequest(variables=variables, acceptSecrets=True))

    def close(self) -> None:
        self._channel.close()
        self._server.stop(None).wait()
        self.provider.session.close()

    def check(self, token: str, name: str, properties: Properties, old: Properties | None = None) -> Properties:
        request = provider_pb2.CheckRequest(urn=urn(token, name), news=encode(properties), olds=encode(old or {}))
        response = self._call(self.stub.Check, request)
        assert not response.failures, response.failures
        return decode(response.inputs)

    def preview(self, token: str, name: str, properties: Properties) -> Properties:
        inputs = self.check(token, name, properties)
        request = provider_pb2.CreateRequest(urn=urn(token, name), properties=encode(inputs), preview=True)
        return decode(self._call(self.stub.Create, request).properties)

    def create(self, token: str, name: str, properties: Properties, timeout: float = 0) -> Resource:
        inputs = self.check(token, name, properties)
        request = provider_pb2.CreateRequest(urn=urn(token, name), properties=encode(inputs), timeout=timeout)
        response = self._call(self.stub.Create, request)
        return Resource(urn(token, name), response.id, inputs, decode(response.properties))

    def diff(self, resource: Resource, properties: Properties) -> Any:
        request = provider_pb2.DiffRequest(
            id=resource.id,
            urn=resource.urn,
            olds=encode(resource.state),
            news=encode(self._recheck(resource, properties)),
            old_inputs=encode(resource.inputs),
        )
        return self._call(self.stub.Diff, request)

    def update(self, resource: Resource, properties: Properties) -> Resource:
        inputs = self._recheck(resource, properties)
        request = provider_pb2.UpdateRequest(
            id=resource.id, urn=resource.urn, olds=encode(resource.state), news=encode(inputs)
        )
        return Resource(resource.urn, resource.id, inputs, decode(self._call(self.stub.Update, request).properties))

    def refresh(self, resource: Resource) -> Resource | None:
        request = provider_pb2.ReadRequest(
            id=resource.id, urn=resource.urn, properties=encode(resource.state), inputs=encode(resource.inputs)
        )
        response = self._call(self.stub.Read, request)
        if not response.id:
            return None
        return Resource(resource.urn, response.id, decode(response.inputs), decode(response.properties))

    def refresh_unready(self, resource: Resource) -> Resource:
        """Returns the failure's partial state, as the engine keeps it."""
        try:
            found = self.refresh(resource)
        except Failed as error:
            if error.partial is None:
                raise
            inputs, state = decode(error.partial.inputs), decode(error.partial.properties)
            return Resource(resource.urn, error.partial.id, inputs, state)
        assert found is not None
        return found

    def delete(self, resource: Resource, timeout: float = 0) -> None:
        request = provider_pb2.DeleteRequest(
            id=resource.id, urn=resource.urn, properties=encode(resource.state), timeout=timeout
        )
        self._call(self.stub.Delete, request)

    def cancel(self) -> None:
        self.stub.Cancel(empty_pb2.Empty())

    def _recheck(self, resource: Resource, properties: Properties) -> Properties:
        _, _, token, name = resource.urn.split("::")
        return self.check(token, name, properties, resource.inputs)

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request)
        except grpc.RpcError as error:
            raise Failed(error) from error


def urn(token: str, name: str) -> str:
    return f"urn:pulumi:test::ai-on-aks::{token}::{name}"
