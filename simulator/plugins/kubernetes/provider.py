"""The plugin's gRPC service."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from google.protobuf.empty_pb2 import Empty
from grpc import ServicerContext as Context

from simulator.kube.client import ApiError, NoKindMatch
from simulator.plugins.errors import PluginError, abort
from simulator.plugins.kubernetes import VERSION, check, configuration, diff, objects
from simulator.plugins.kubernetes.engine import INFO, WARNING, Engine, Severity
from simulator.plugins.kubernetes.kinds import RELEASE_TYPE, urn_type
from simulator.plugins.kubernetes.options import Options
from simulator.plugins.kubernetes.release import resource as release
from simulator.plugins.kubernetes.session import Cancelled, Session, describe
from simulator.plugins.marshal import MarshalError, encode
from simulator.plugins.protocol import plugin_pb2, provider_pb2, provider_pb2_grpc

_GONE = provider_pb2.ReadResponse()  # an empty id removes the resource from the state


class KubernetesProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The service for one provider resource. Requests arrive on several threads."""

    def __init__(self, engine: Engine, *, retry_unit: float = 1.0) -> None:
        self.session = Session(engine, retry_unit=retry_unit)

    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: provider_pb2.GetSchemaRequest, context: Context) -> provider_pb2.GetSchemaResponse:
        """Returns the schema of types that users can import: no Lists or Patches. Only this call imports the SDK."""
        from simulator.plugins import sdk
        from simulator.plugins.schema import schema

        tokens = [token for token in sdk.tokens("kubernetes") if not token.endswith(("List", "Patch"))]
        return provider_pb2.GetSchemaResponse(schema=schema("kubernetes", VERSION, tokens))

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        if request.engine_address:
            self.session.engine = Engine(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:
        self.session.engine = Engine(request.address)
        return Empty()

    def Cancel(self, request: Empty, context: Context) -> Empty:
        self.session.cancelled.set()
        return Empty()

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        with _reported(context):
            return configuration.check(request)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        with _reported(context):
            return configuration.diff(request)

    def Configure(self, request: provider_pb2.ConfigureRequest, context: Context) -> provider_pb2.ConfigureResponse:
        with _reported(context):
            self.session.configure(Options.from_variables(request.variables))
            return provider_pb2.ConfigureResponse(
                acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
            )

    def Invoke(self, request: provider_pb2.InvokeRequest, context: Context) -> provider_pb2.InvokeResponse:
        with _reported(context):
            raise PluginError(
                f'the function "{request.tok}" needs the official kubernetes plugin. Charts install with '
                "helm.v3.Release, and manifests as resources of their kinds"
            )

    def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        with _reported(context):
            if urn_type(request.urn) != RELEASE_TYPE:
                return provider_pb2.CheckResponse(inputs=encode(check.check(self.session, request)))
            inputs, wrong = release.check(self.session, request)
            failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in wrong.items()]
            return provider_pb2.CheckResponse(inputs=encode(inputs), failures=failures)

    def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        with _reported(context):
            return release.diff(request) if _is_release(request) else diff.diff(self.session, request)

    def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        with _reported(context):
            if not request.preview:
                self.session.require_cluster()
            operation: Callable[..., Any] = release.create if _is_release(request) else objects.create
            identity, state = operation(self.session, request)
            return provider_pb2.CreateResponse(id=identity, properties=encode(state))

    def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        with _reported(context):
            if self.session.client is None:
                return self._read_unreachable(request)
            operation: Callable[..., Any] = release.read if _is_release(request) else objects.read
            found = operation(self.session, request)
            if found is None:
                return _GONE
            identity, state, inputs = found
            return provider_pb2.ReadResponse(id=identity, properties=encode(state), inputs=encode(inputs))

    def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        with _reported(context):
            if not request.preview:
                self.session.require_cluster()
            operation: Callable[..., Any] = release.update if _is_release(request) else objects.update
            return provider_pb2.UpdateResponse(properties=encode(operation(self.session, request)))

    def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> Empty:
        with _reported(context):
            if _is_release(request):
                release.delete(self.session, request)
            elif self.session.client is not None:
                objects.delete(self.session, request)
            else:
                self._delete_unreachable(request.urn)
            return Empty()

    def _read_unreachable(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        self._log(request.urn, f"configured Kubernetes cluster is unreachable: {self.session.unreachable}", WARNING)
        if self.session.options.delete_unreachable:
            self._log(request.urn, "`deleteUnreachable` is enabled: deleting the resource from Pulumi state", INFO)
            return _GONE
        raise PluginError(f"failed to read resource state due to unreachable cluster. {_UNREACHABLE_ADVICE}")

    def _delete_unreachable(self, urn: str) -> None:
        self._log(urn, f"configured Kubernetes cluster is unreachable: {self.session.unreachable}", WARNING)
        if not self.session.options.delete_unreachable:
            raise PluginError(f"configured Kubernetes cluster is unreachable. {_UNREACHABLE_ADVICE}")
        self._log(urn, "`deleteUnreachable` is enabled: deleting the resource from Pulumi state", INFO)

    def _log(self, urn: str, message: str, severity: Severity) -> None:
        self.session.engine.log(urn, message, severity)


_UNREACHABLE_ADVICE = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the "
    'PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)


def _is_release(request: Any) -> bool:
    return urn_type(request.urn) == RELEASE_TYPE


@contextlib.contextmanager
def _reported(context: Context) -> Iterator[None]:
    """Reports expected errors to the engine. Other exceptions are bugs."""
    try:
        yield
    except (PluginError, MarshalError, ApiError, NoKindMatch) as error:
        abort(context, error)
    except httpx.HTTPError as error:
        abort(context, PluginError(f"configured Kubernetes cluster is unreachable: {describe(error)}"))
    except Cancelled:
        abort(context, PluginError("the operation was cancelled"))
