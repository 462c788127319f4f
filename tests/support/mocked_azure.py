"""Mocks of Azure and Kubernetes for Pulumi's mock monitor."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc
import pulumi
import yaml

from config.schema.network import JUMP_BOX
from tests.support.lookups import Fetch, everything

SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
DEPLOYER = "00000000-0000-0000-0000-00000000000b"
TOKEN = "a-token"
SECRET = "[secret]"
ORGANIZATION = "organization"
"""Pulumi's organization in a file backend."""
KUBELET = "00000000-0000-0000-0000-00000000000c"
ISSUER = "https://eastus.oic.prod-aks.azure.com/tenant/cluster/"
CLIENT, PRINCIPAL = "00000000-0000-0000-0000-00000000000d", "00000000-0000-0000-0000-00000000000e"
_NAMES = (
    "federatedIdentityCredentialResourceName", "privateDnsZoneGroupName", "privateEndpointName",
    "virtualNetworkLinkName", "privateZoneName", "virtualNetworkName", "natGatewayName", "publicIpAddressName",
    "vmName", "networkInterfaceName", "bastionHostName",
    "agentPoolName", "roleAssignmentName", "containerName", "accountName", "registryName", "resourceName",
    "resourceGroupName",
)  # fmt: skip
"""Inputs that name a resource, innermost first."""
KEY = base64.b64encode(b"the account's key").decode()
ADDRESS = "20.1.2.3"
ABSENT = (
    "invocation of azure-native:storage:getStorageAccount returned an error: request failed /subscriptions/...: "
    'Status=404 Code="ResourceNotFound" Message="The Resource was not found."'
)
WINDOW = {"start": "2026-01-01T00:00:00Z", "expiry": "2099-01-01T00:00:00Z"}
ADDED: dict[str, dict[str, Any]] = {
    "ManagedCluster": {
        "identityProfile": {"kubeletidentity": {"objectId": KUBELET}},
        "oidcIssuerProfile": {"enabled": True, "issuerURL": ISSUER},
    },
    "PublicIPAddress": {"ipAddress": ADDRESS},
    "UserAssignedIdentity": {"clientId": CLIENT, "principalId": PRINCIPAL},
    "StorageAccount": {"primaryEndpoints": {"blob": "https://account.blob.core.windows.net/"}},
    "SasWindow": WINDOW,
    "DelegationSas": {"sas": "skoid=login&sig=delegation"},
}
"""Outputs that a provider adds, by the last part of the type."""
SERVER_APP = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""AKS's API servers in Entra ID. This id and the device code client's are the same in every tenant (Azure/kubelogin).
"""
_CLIENT_APP = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
LOGIN_OPTIONS = ["--environment", "AzurePublicCloud", "--server-id", SERVER_APP, "--client-id", _CLIENT_APP,
                 "--tenant-id", "00000000-0000-0000-0000-0000000000aa"]  # fmt: skip
"""kubelogin's arguments from AKS after `--login devicecode`."""
_LOGIN = {"exec": {"command": "kubelogin", "args": ["get-token", "--login", "devicecode", *LOGIN_OPTIONS]}}
SIGNED_IN = {
    "clientId": "04b07795-8ddb-461a-bbee-02f9e1bf7b46",
    "objectId": DEPLOYER,
    "subscriptionId": SUBSCRIPTION,
    "tenantId": "",
}
"""The deployer: a user of the Azure CLI."""
KUBECONFIGS = {
    "Admin": {"users": [{"name": "admin", "user": {}}]},
    "User": {"users": [{"name": "user", "user": _LOGIN}]},
}


class Exports(Protocol):
    outputs: dict[str, Any]
    shown: dict[str, Any]
    """Outputs with secrets, as in `pulumi stack output --show-secrets`."""


class EngineError(grpc.RpcError):  # type: ignore[misc]  # grpc has no types
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return str(self)


def there(found: Mapping[str, Any] | None) -> dict[Any, Any]:
    """Raises EngineError if the resource does not exist."""
    if found is None:
        raise EngineError(ABSENT)
    return dict(found)


@dataclass(eq=False)
class Azure(pulumi.runtime.Mocks):
    """Azure before the program runs. `calls` has called functions with arguments."""

    feature: str = "Registered"
    """The state of AKSInfinibandSupport."""
    stacks: Mapping[str, Exports] = field(default_factory=dict)
    account: Mapping[str, Any] | None = None
    pools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    location: str = "eastus"
    cluster: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """The stack's outputs from its last `up`."""
    registry: str = ""
    """The tier of any existing registry."""
    reservations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Location and machines by VM size of capacity reservation groups."""
    identities: Collection[str] = ()
    address_space: str = ""
    jump_box_key: str | None = None
    tags: Mapping[str, str] | None = None
    inside: bool = True
    """Whether this machine is inside the private network."""
    profiles: Mapping[str, Any] = field(default_factory=dict)
    """More properties of the existing cluster: networkProfile and apiServerAccessProfile."""
    fetch: Fetch = everything
    calls: list[tuple[str, dict[Any, Any]]] = field(default_factory=list)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        kind = args.typ.split(":")[-1]
        if kind == "StackReference":
            return args.resource_id, self._stack_outputs(args.inputs["name"])
        self.cluster = self.cluster or kind == "ManagedCluster"
        inputs = {**args.inputs, **ADDED.get(kind, {})}
        if identities := inputs.get("identity", {}).get("userAssignedIdentities"):  # a map in answers
            shown = {name: {"clientId": "", "principalId": ""} for name in identities}
            inputs["identity"] = {**inputs["identity"], "userAssignedIdentities": shown}
        if args.typ.startswith("azure-native:"):
            name = next(inputs[key] for key in _NAMES if key in inputs)
            return f"/subscriptions/{SUBSCRIPTION}/{kind}/{name}", {**inputs, "name": name}
        metadata = inputs.get("metadata", {})
        return "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")])) or args.name, dict(inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        self.calls.append((args.token, args.args))
        match args.token.split(":")[-1]:
            case "getClientConfig" | "getClientToken":
                return {**SIGNED_IN, "token": TOKEN}, []
            case "getManagedCluster":
                pools = [{"name": name, **profile} for name, profile in self.pools.items()]
                named = {"name": args.args["resourceName"], "location": self.location, "agentPoolProfiles": pools}
                return there({**ADDED["ManagedCluster"], **named, **self.profiles} if self.cluster else None), []
            case "getCapacityReservationGroup" | "getCapacityReservation":
                return self._reservation(args.args), []
            case (
                "getRegistry"
                | "getUserAssignedIdentity"
                | "getStorageAccount"
                | "getVirtualNetwork"
                | "getVirtualMachine"
                | "getResourceGroup"
            ) as kind:
                return there(self._one(kind, args.args)), []
            case "listStorageAccountKeys":
                return {"keys": [{"keyName": "key1", "value": KEY, "permissions": "FULL", "creationTime": ""}]}, []
            case "readStackOutputs":
                return self._stack_outputs(args.args["name"]), []
            case "getSubscriptionFeatureRegistration":
                return {"id": "", "name": "", "properties": {"state": self.feature}, "type": ""}, []
            case "listStorageAccountServiceSAS":
                return {"serviceSasToken": f"?sp={args.args['permissions']}&sig=service"}, []
        text = yaml.safe_dump(next(config for kind, config in KUBECONFIGS.items() if kind in args.token))
        return {"kubeconfigs": [{"name": "kubeconfig", "value": base64.b64encode(text.encode()).decode()}]}, []

    def _one(self, kind: str, args: dict[Any, Any]) -> Mapping[str, Any] | None:
        if kind == "getRegistry":
            found = {"name": args["registryName"], "location": self.location, "sku": {"name": self.registry}}
            return found if self.registry else None
        if kind == "getUserAssignedIdentity":
            return {"principalId": PRINCIPAL} if args["resourceName"] in self.identities else None
        if kind == "getResourceGroup":
            return None if self.tags is None else {"tags": self.tags}
        if kind == "getVirtualNetwork":
            subnets = [{"name": JUMP_BOX}] if self.jump_box_key else []
            space = {"addressPrefixes": [self.address_space]}
            return {"addressSpace": space, "subnets": subnets} if self.address_space else None
        if kind == "getVirtualMachine":
            keys = {"publicKeys": [{"keyData": self.jump_box_key}]}
            return {"name": args["vmName"], "osProfile": {"linuxConfiguration": {"ssh": keys}}}
        return None if self.account is None else {"sku": {"name": "Standard_LRS"}, **self.account}

    def _reservation(self, args: dict[Any, Any]) -> dict[str, Any]:
        group = there(self.reservations.get(args["capacityReservationGroupName"]))
        if size := args.get("capacityReservationName"):
            return {"location": group["location"], "sku": {"name": size, "capacity": group["machines"][size]}}
        members = [{"id": f"/capacityReservations/{size}"} for size in group["machines"]]
        return {"location": group["location"], "capacityReservations": members}

    def _stack_outputs(self, full_name: str) -> dict[str, Any]:
        if full_name == f"{ORGANIZATION}/ai-on-aks/{pulumi.get_stack()}":
            return {"name": full_name, "outputs": dict(self.outputs), "secretOutputNames": []}
        found = self.stacks.get(full_name.removeprefix(f"{ORGANIZATION}/ai-on-aks/"))
        if found is None:
            raise EngineError(f'invocation of readStackOutputs returned an error: unknown stack "{full_name}"')
        secret = [name for name, value in found.outputs.items() if value == SECRET]
        return {"name": full_name, "outputs": found.shown, "secretOutputNames": secret}
