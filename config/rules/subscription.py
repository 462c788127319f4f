"""Checks Azure's answers (JSON of the REST API) about a subscription: VM sizes, resource providers and the deployer's
rights. Quota is in config/rules/vcpu_quota.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from config.data.azure_roles import guid
from config.schema.regions import region_name

Json = Mapping[str, Any]
PROVIDERS = (
    "Microsoft.Compute",
    "Microsoft.ContainerRegistry",
    "Microsoft.ContainerService",
    "Microsoft.Network",
    "Microsoft.Storage",
)
"""The providers of the stack's resources, and providers that AKS uses. Azure's CLI registers the latter before it
creates a cluster (Azure/azure-cli#6327; acs/custom.py).

The azure-native plugin registers the providers that it calls, if the deployer has this right, and waits five minutes
(azure-sdk-for-go, arm/runtime/policy_register_rp.go). It does not register providers that only AKS calls. Without
these, the cluster's creation fails halfway (dotnet/core#3776).
"""
IDENTITY_PROVIDERS = ("Microsoft.ManagedIdentity",)
ASSIGN = "Microsoft.Authorization/roleAssignments/write"
_ASSIGNERS = tuple(
    guid(name) for name in ("Owner", "User Access Administrator", "Role Based Access Control Administrator")
)
_EXCEPT = "guidnotequals"
_USABLE = ("Registered", "Registering")
"""Usable states: a registration runs region by region (Microsoft, "Azure resource providers and types")."""
_ACCESS = "https://learn.microsoft.com/troubleshoot/azure/general/region-access-request-process"


@dataclass(frozen=True)
class Objection:
    """A condition that Azure would reject, or that could not be checked."""

    what: str
    steps: tuple[str, ...] = ()
    stops: bool = True

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"    {step}" for step in self.steps)])


def refusal(objections: Iterable[Objection]) -> str:
    """Returns one message with all objections that stop an update; empty if no objection stops it."""
    stopping = [str(each) for each in objections if each.stops]
    return "\n".join([*stopping, "Nothing was changed. Do this, and then `pulumi up` again."]) if stopping else ""


def size_objections(sizes: Mapping[str, str], answer: Json, region: str) -> Iterator[Objection]:
    """Yields the VM sizes that a region does not offer. `sizes` maps names to the pools of that size, as text.

    `answer` is from Microsoft.Compute/skus (azure-rest-api-specs, Skus 2021-07-01,
    ListAvailableResourceSkusForARegion). Ignores restrictions of zones: pools name no zone, so Azure uses a zone
    without a restriction.
    """
    offered = {
        str(sku.get("name")).lower(): sku
        for sku in answer.get("value", ())
        if sku.get("resourceType") == "virtualMachines" and region in _regions(sku.get("locations"))
    }
    if not offered:
        yield Objection(f"VM sizes of {region} could not be read: Azure lists none", stops=False)
        return
    for size, pools in sizes.items():
        found = offered.get(size.lower())
        elsewhere = f"az vm list-skus --resource-type virtualMachines --size {size} --all --output table"
        if found is None:
            what = f"{size} ({pools}) is not offered in {region}"
            yield Objection(what, (f"{elsewhere}    # regions that offer it",))
        elif reasons := sorted({str(each.get("reasonCode")) for each in _of_region(found, region)}):
            what = f"{size} ({pools}) is not available to this subscription in {region}: {', '.join(reasons)}"
            yield Objection(what, (f"{_ACCESS}    # how to ask for access", f"{elsewhere}    # or another region"))


def _of_region(sku: Json, region: str) -> Iterator[Json]:
    for restriction in sku.get("restrictions") or ():
        info = restriction.get("restrictionInfo") or {}
        where = {*_regions(restriction.get("values")), *_regions(info.get("locations"))}
        if restriction.get("type") == "Location" and region in where:
            yield restriction


def _regions(names: Iterable[str] | None) -> Collection[str]:
    return [region_name(name) for name in names or ()]


def provider_objections(namespace: str, answer: Json) -> Iterator[Objection]:
    """Yields an unregistered provider. `answer` is from `/subscriptions/{id}/providers/{namespace}`."""
    state = str(answer.get("registrationState") or "NotRegistered")
    if state not in _USABLE:
        what = f"the resource provider {namespace} is not registered in this subscription: {state}"
        yield Objection(what, (f"az provider register --namespace {namespace} --wait",))


def rights_objections(answer: Json, deployer: str, scope: str) -> Iterator[Objection]:
    """Yields an objection if the deployer cannot assign roles, which image pulls and cluster access need.

    `answer` is from Microsoft.Authorization/permissions: the permissions of each role of the deployer
    (azure-rest-api-specs, Permissions_ListForResourceGroup).
    """
    if any(allows(role, ASSIGN) for role in answer.get("value", ())):
        return
    grant = f"az role assignment create --role 'User Access Administrator' --assignee {deployer} --scope {scope}"
    what = f"the deployer cannot assign roles in this subscription ({ASSIGN})"
    yield Objection(what, (f"{grant}    # an owner must run this; or activate your role, and log in again",))


def condition_objections(answer: Json, given: Mapping[str, str]) -> Iterator[Objection]:
    """Yields a warning if a condition of the deployer's right to assign roles excludes roles that the program assigns.
    It is only a warning, because only Azure can evaluate a condition.

    `answer` is from Microsoft.Authorization/roleAssignments, because permissions do not include conditions (Azure's
    page on delegating the assignment of roles). `given` maps GUIDs of the program's roles to their names.
    """
    found = (each["properties"] for each in answer.get("value", ()))
    assigners = [each for each in found if str(each["roleDefinitionId"]).rpartition("/")[2].lower() in _ASSIGNERS]
    conditions = [str(each.get("condition") or "") for each in assigners]
    if not conditions or "" in conditions:
        return
    lacking = min((_left_out(text, given) for text in conditions), key=len)
    if lacking:
        names = ", ".join(given[guid] for guid in lacking)
        what = f"the deployer can assign roles only under a condition, which excludes {names}"
        step = "ask an owner to allow these roles in the condition    # otherwise Azure rejects them"
        yield Objection(what, (step,), stops=False)


def _left_out(condition: str, given: Iterable[str]) -> list[str]:
    """Returns the roles that a condition excludes: those it names as exceptions or, without exceptions, those it does
    not name.

    Exceptions are usually Owner, User Access Administrator and Role Based Access Control Administrator (Azure's page of
    examples of delegated role assignments, "Allow most roles, but don't allow others to assign roles").
    """
    exceptions = _EXCEPT in condition.lower()
    return [guid for guid in given if (guid in condition.lower()) is exceptions]


def allows(role: Json, action: str) -> bool:
    """Returns whether a role allows an action: it matches `actions` and does not match `notActions`. Both may contain
    wildcards (Microsoft, "Understand Azure role definitions").
    """

    def among(patterns: Iterable[str] | None) -> bool:
        parts = (".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns or ())
        return any(re.fullmatch(each, action, re.IGNORECASE) for each in parts)

    return among(role.get("actions")) and not among(role.get("notActions"))
