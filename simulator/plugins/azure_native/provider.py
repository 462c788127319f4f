"""The plugin's gRPC service."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpc import ServicerContext as Context

from simulator.azure import subscription
from simulator.plugins.azure_native import VERSION, convert, invokes
from simulator.plugins.azure_native.arm import ArmClient, ArmFailure, Deadline, OperationFailed, creator_of
from simulator.plugins.azure_native.check import check
from simulator.plugins.azure_native.diff import diff
from simulator.plugins.azure_native.resources import API_VERSION, DEFINITIONS, Definition, of_urn
from simulator.plugins.errors import InitializationFailed, PluginError, abort
from simulator.plugins.marshal import (
    UNKNOWN,
    MarshalError,
    Properties,
    decode,
    encode,
    has_unknown,
    without_nulls,
)
from simulator.plugins.protocol import plugin_pb2, provider_pb2, provider_pb2_grpc

_GROUP_API_VERSION = "2024-03-01"
_PREFIX = "azure-native:config:"
_STABLE = ("name", "location")  # outputs that updates never change


class AzureNativeProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The service for one provider resource. Requests arrive on several threads."""

    def __init__(self) -> None:
        self._subscription = subscription.load()
        self._settings: dict[str, str] = {}
        self._cancelled = threading.Event()
        self._client: ArmClient | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    # -- the plugin itself ---------------------------------------------------------------------------------------------

    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: provider_pb2.GetSchemaRequest, context: Context) -> provider_pb2.GetSchemaResponse:
        """Returns the schema of the simulated types. Only this call imports the azure-native SDK."""
        from simulator.plugins.schema import schema

        return provider_pb2.GetSchemaResponse(schema=schema("azure-native", VERSION, DEFINITIONS))

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Context
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(supports_autonaming_configuration=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:
        return Empty()

    def Cancel(self, request: Empty, context: Context) -> Empty:
        self._cancelled.set()
        return Empty()

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """Returns a failure if no simulator answers, so that no other call fails."""
        failures = []
        try:
            self._arm().get(self._group_path(""), _GROUP_API_VERSION, self._deadline(0))
        except PluginError as error:
            failures = [provider_pb2.CheckFailure(reason=str(error))]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: provider_pb2.ConfigureRequest, context: Context) -> provider_pb2.ConfigureResponse:
        """Declares no support for secrets: the engine reveals secrets, and marks outputs of the same name as secret."""
        self._settings = {name.removeprefix(_PREFIX): value for name, value in request.variables.items()}
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    def Invoke(self, request: provider_pb2.InvokeRequest, context: Context) -> provider_pb2.InvokeResponse:
        with _reported(context):
            arguments, deadline = decode(request.args), self._deadline(0)
            found = invokes.invoke(
                request.tok, arguments, self._arm, self._subscription, self._subscription_id, deadline
            )
            return provider_pb2.InvokeResponse(**{"return": encode(found)})

    # -- resources -----------------------------------------------------------------------------------------------------

    def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        with _reported(context):
            return check(request, self._settings.get("location"), self._group_location)

    def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        with _reported(context):
            return diff(request)

    def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        with _reported(context):
            definition, inputs = of_urn(request.urn), without_nulls(decode(request.properties))
            if request.preview:
                return provider_pb2.CreateResponse(properties=encode(convert.preview(definition, inputs)))
            deadline, creator = self._deadline(request.timeout), creator_of(request.urn)
            path = convert.path(definition, inputs, self._subscription_id)
            self._check_free(definition, path, creator, deadline)
            made = self._put(definition, path, inputs, {}, deadline, creator)
            return provider_pb2.CreateResponse(id=made["id"], properties=encode(convert.outputs(definition, made)))

    def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        with _reported(context):
            definition, inputs = of_urn(request.urn), without_nulls(decode(request.news))
            if request.preview:
                shown, old = convert.preview(definition, inputs), decode(request.olds)
                shown |= {name: old[name] for name in _STABLE if name in old}
                return provider_pb2.UpdateResponse(properties=encode(shown))
            path = convert.path(definition, inputs, self._subscription_id)
            before = decode(request.old_inputs)
            made = self._put(definition, path, inputs, before, self._deadline(request.timeout), creator="")
            return provider_pb2.UpdateResponse(properties=encode(convert.outputs(definition, made)))

    def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        with _reported(context):
            definition, before = of_urn(request.urn), without_nulls(decode(request.properties))
            found = self._arm().find(request.id, definition.api_version, self._deadline(0))
            if found is None:
                return provider_pb2.ReadResponse()  # an empty id removes the resource from the state
            outputs = convert.outputs(definition, found[0])
            if request.HasField("inputs"):
                inputs = convert.refreshed(definition, without_nulls(decode(request.inputs)), before, outputs)
            else:
                inputs = convert.imported(definition, request.id, outputs)
            return provider_pb2.ReadResponse(id=request.id, properties=encode(outputs), inputs=encode(inputs))

    def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> Empty:
        with _reported(context):
            definition = of_urn(request.urn)
            self._arm().delete(request.id, definition.api_version, self._deadline(request.timeout))
            return Empty()

    # -- helpers -------------------------------------------------------------------------------------------------------

    @property
    def _subscription_id(self) -> str:
        return self._settings.get("subscriptionId") or self._subscription.subscription_id

    def _arm(self) -> ArmClient:
        with self._lock:
            self._client = self._client or ArmClient.from_environment()
            return self._client

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(self._cancelled, seconds)

    def _group_path(self, name: str) -> str:
        return f"/subscriptions/{self._subscription_id}/resourceGroups/{name}".rstrip("/")

    def _group_location(self, group: Any) -> Any:
        if group is None:
            return None
        if has_unknown(group):
            return UNKNOWN
        try:
            return self._arm().get(self._group_path(group), _GROUP_API_VERSION, self._deadline(0))["location"]
        except ArmFailure:
            return None

    def _check_free(self, definition: Definition, path: str, creator: str, deadline: Deadline) -> None:
        """Raises PluginError if the resource exists, unless an interrupted creation of the same resource made it."""
        try:
            found = self._arm().find(path, definition.api_version, deadline)
        except ArmFailure as error:
            why = f"status code {error.status}, {error.body}"
            raise PluginError(f"cannot check existence of resource '{path}': {why}") from error
        if found is None:
            return
        if found[1] != creator:
            raise PluginError(f"cannot create already existing resource '{path}'")
        self._arm().settle(path, definition.api_version, deadline)

    def _put(
        self,
        definition: Definition,
        path: str,
        inputs: Properties,
        previous: Properties,
        deadline: Deadline,
        creator: str,
    ) -> dict[str, Any]:
        body = convert.body(definition, inputs, previous)
        try:
            return self._arm().put(path, definition.api_version, body, deadline, creator=creator)
        except OperationFailed as error:
            found = self._arm().find(path, definition.api_version, self._deadline(0))
            outputs = convert.outputs(definition, found[0]) if found else {API_VERSION: definition.api_version}
            raise InitializationFailed(str(error), path, outputs, inputs=inputs) from error


@contextlib.contextmanager
def _reported(context: Context) -> Iterator[None]:
    try:
        yield
    except (PluginError, MarshalError, ArmFailure) as error:
        abort(context, error)
