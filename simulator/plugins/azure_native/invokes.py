"""Invoke: the functions that read from Azure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.azure.subscription import Subscription
from simulator.plugins.azure_native import convert
from simulator.plugins.azure_native.arm import ArmClient, ArmFailure, Deadline
from simulator.plugins.azure_native.resources import API_VERSION, DEFINITIONS, Definition
from simulator.plugins.errors import PluginError
from simulator.plugins.marshal import Properties, has_unknown, reveal

_CLUSTER = "/resourceGroups/{resourceGroupName}/providers/Microsoft.ContainerService/managedClusters/{resourceName}"
_COMPUTE = "/resourceGroups/{resourceGroupName}/providers/Microsoft.Compute"
_RESERVATIONS = f"{_COMPUTE}/capacityReservationGroups/{{capacityReservationGroupName}}"
_ACCOUNT = "/resourceGroups/{resourceGroupName}/providers/Microsoft.Storage/storageAccounts/{accountName}"
_SERVICE_SAS = {
    "canonicalizedResource": "canonicalizedResource",
    "keyToSign": "keyToSign",
    "permissions": "signedPermission",
    "protocols": "signedProtocol",
    "resource": "signedResource",
    "sharedAccessExpiryTime": "signedExpiry",
    "sharedAccessStartTime": "signedStart",
}
_FEATURE = (
    "/providers/Microsoft.Features/featureProviders/{providerNamespace}/subscriptionFeatureRegistrations/{featureName}"
)


@dataclass(frozen=True)
class Function:
    """A function of the provider. The arguments in `path` are required.

    `query` and `body` map the SDK names of optional arguments to ARM's names.
    """

    method: str
    path: str
    api_version: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)
    resource: Definition | None = None
    """The resource type of a getter, or None if it is not simulated."""
    flat: bool = False
    """Whether the SDK shows ARM's `properties` at the top level (for getters without `resource`)."""


_SUBSCRIPTION = "/subscriptions/{subscriptionId}"


def _getters() -> Mapping[str, Function]:
    found: dict[str, Function] = {}
    for token, definition in DEFINITIONS.items():
        module, _, name = token.rpartition(":")
        path = definition.sdk.path
        if path.startswith(_SUBSCRIPTION):
            path = path.removeprefix(_SUBSCRIPTION)
            found[f"{module}:get{name}"] = Function("GET", path, definition.api_version, resource=definition)
    return found


FUNCTIONS: Mapping[str, Function] = {
    **_getters(),
    "azure-native:compute:getCapacityReservation": Function(
        "GET", f"{_RESERVATIONS}/capacityReservations/{{capacityReservationName}}", "2024-11-01", flat=True
    ),
    "azure-native:compute:getCapacityReservationGroup": Function("GET", _RESERVATIONS, "2024-11-01", flat=True),
    "azure-native:containerservice:listManagedClusterAdminCredentials": Function(
        "POST", f"{_CLUSTER}/listClusterAdminCredential", "2025-09-01", {"serverFqdn": "server-fqdn"}
    ),
    "azure-native:containerservice:listManagedClusterUserCredentials": Function(
        "POST", f"{_CLUSTER}/listClusterUserCredential", "2025-09-01", {"serverFqdn": "server-fqdn", "format": "format"}
    ),
    "azure-native:features:getSubscriptionFeatureRegistration": Function("GET", _FEATURE, "2021-07-01"),
    "azure-native:storage:listStorageAccountKeys": Function("POST", f"{_ACCOUNT}/listKeys", "2024-01-01"),
    "azure-native:storage:listStorageAccountServiceSAS": Function(
        "POST", f"{_ACCOUNT}/listServiceSas", "2024-01-01", body=_SERVICE_SAS
    ),
}
_CLIENT_CONFIG = "azure-native:authorization:getClientConfig"
_CLIENT_TOKEN = "azure-native:authorization:getClientToken"  # noqa: S105 - the name of a function


def invoke(
    token: str,
    arguments: Properties,
    arm: Callable[[], ArmClient],
    subscription: Subscription,
    subscription_id: str,
    deadline: Deadline,
) -> Properties:
    """Returns the result, which is not secret, as in the official plugin. Raises PluginError."""
    if token == _CLIENT_CONFIG:
        return {
            "clientId": subscription.client_id,
            "objectId": subscription.object_id,
            "subscriptionId": subscription_id,
            "tenantId": subscription.tenant_id,
        }
    if token == _CLIENT_TOKEN:
        return {"token": arm().token}
    function = FUNCTIONS.get(token)
    if function is None:
        known = ", ".join((*FUNCTIONS, _CLIENT_CONFIG, _CLIENT_TOKEN))
        raise PluginError(f"Function {token} is not simulated. The simulator has: {known}.")
    given: dict[str, Any] = {name: value for name, value in reveal(arguments).items() if value is not None}
    if has_unknown(given):
        raise PluginError(f"Function {token} was called with an argument that is not known yet.")
    path = f"/subscriptions/{subscription_id}{_path(token, function, given)}"
    query = {function.query[name]: str(value) for name, value in given.items() if name in function.query}
    body = {function.body[name]: value for name, value in given.items() if name in function.body}
    try:
        return _call(function, path, query, body, arm(), deadline)
    except ArmFailure as error:
        raise PluginError(f"request failed {path}: {error}") from error


def _call(
    function: Function,
    path: str,
    query: Mapping[str, str],
    body: Mapping[str, Any],
    arm: ArmClient,
    deadline: Deadline,
) -> Properties:
    if function.method == "POST":
        return arm.post(path, function.api_version, deadline, query, body)
    found = arm.get(path, function.api_version, deadline)
    if function.resource:
        return convert.outputs(function.resource, found)
    shown = {**found, **found.pop("properties", {})} if function.flat else found
    return shown | {API_VERSION: function.api_version}


def _path(token: str, function: Function, given: Mapping[str, Any]) -> str:
    try:
        path = function.path.format(**given)
    except KeyError as missing:
        raise PluginError(f"Function {token}: missing required property {missing}") from missing
    optional = {*function.query, *function.body}
    unknown = [name for name in given if f"{{{name}}}" not in function.path and name not in optional]
    if unknown:
        raise PluginError(f"Function {token}: unknown property '{unknown[0]}'")
    return path
