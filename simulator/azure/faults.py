"""Azure's faults that the user injects (`fault throttle|capacity|price|roles|policy|node-setup`). Sources of texts:

- Throttling: Azure's page "Understand how Azure Resource Manager throttles requests"; text: user reports
  (aka.ms/arm-throttling).
- Capacity: AKS's page on ZonalAllocationFailed and AllocationFailed, Azure/AKS#1272. Spot:
  Azure/karpenter-provider-azure (pkg/fake/akserrors.go), jenkins-infra/helpdesk#4337. On-demand with constraints:
  jenkins-infra/helpdesk#3584, Azure-Samples/aks-store-demo#115.
- Price: Azure's page "Error messages for Azure Spot Virtual Machines and scale sets". Evictions by price:
  billingProfile's maxPrice in Microsoft.Compute's REST reference.
- Roles: Azure's page "Troubleshoot Azure RBAC" (delays of role assignments and of new principals).
- Policies:
  https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-policy-requestdisallowedbypolicy; node
  resource group: Azure/azure-cli#7573.
- Node set-up: Azure/AKS#4584.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus

from simulator.azure import reservations
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request, conflict
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body, Record
from simulator.world.faults import FaultKind

CREATED = "created"
"""The key of the creation time (seconds since 1970) in a record's facts."""
_ANY_PRICE = -1
_READS = ("GET", "HEAD")
_ZONE, _EPHEMERAL = "Availability Zone", "Differencing (Ephemeral) Disks"
_NETWORKING, _SIZE = "Networking Constraints (such as Accelerated Networking or IPv6)", "VM Size"
_OF_SPOT = (
    "Low Priority VMs",
    _NETWORKING,
    "Preemptible VMs (VM might be preempted by another VM with a higher priority)",
    _SIZE,
)
_OF_REGULAR = (_NETWORKING, "Subscription Pinning", _SIZE)
_ASSIGNMENTS = "/providers/Microsoft.Management/managementGroups/contoso/providers/Microsoft.Authorization"
POLICY_ASSIGNMENT = f"{_ASSIGNMENTS}/policyAssignments/require-tag"
_TAG_POLICY = "/providers/Microsoft.Authorization/policyDefinitions/96670d01-0a4d-4649-9c89-2d3abc0a5025"
_REQUIRES = "Require a tag on resource groups"


def check_rate(world: World, method: str) -> None:
    """Raises ArmError (429) with the seconds to wait if requests are throttled."""
    fault = world.faults.find(FaultKind.THROTTLE)
    if fault is None:
        return
    kind = "read" if method in _READS else "delete" if method == "DELETE" else "write"
    who = f"subscription '{world.subscription.subscription_id}' actor '{world.subscription.object_id}'"
    seconds = max(1, math.ceil(fault.remaining(world.faults.clock())))
    message = (
        f"Number of '{kind}' requests for {who} exceeded. Please try again after '{seconds}' seconds after additional "
        "tokens are available. Refer to https://aka.ms/arm-throttling for additional information."
    )
    code = "SubscriptionRequestsThrottled"
    raise ArmError(HTTPStatus.TOO_MANY_REQUESTS, code, message, headers={"Retry-After": str(seconds)})


def check_policy(world: World, group: str, tags: Mapping[str, str] | None, *, inner: bool = False) -> None:
    """Raises ArmError if a resource group (`inner`: a node resource group) lacks a tag that a policy requires.

    Tag names are case-insensitive (https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources).
    """
    has = {name.lower() for name in tags or {}}
    for fault in world.faults.load():
        if fault.kind is FaultKind.POLICY and fault.tag.lower() not in has:
            raise _node_group_refusal(group, fault.tag) if inner else _policy_refusal(group)


def policy_assignment(world: World, _request: PathRequest) -> Body:
    """Returns the policy assignment that policy errors mention (PolicyAssignments_Get). Raises ArmError (404)."""
    for fault in world.faults.load():
        if fault.kind is FaultKind.POLICY:
            shown = {"displayName": _REQUIRES, "parameters": {"tagName": {"value": fault.tag}}}
            return {"id": POLICY_ASSIGNMENT, "name": "require-tag", "properties": shown}
    message = "The policy assignment 'require-tag' is not found."
    raise ArmError(HTTPStatus.NOT_FOUND, "PolicyAssignmentNotFound", message)


def _policy_refusal(group: str) -> ArmError:
    ids = (
        f'[{{"policyAssignment":{{"name":"{_REQUIRES}","id":"{POLICY_ASSIGNMENT}"}},'
        f'"policyDefinition":{{"name":"{_REQUIRES}","id":"{_TAG_POLICY}"}}}}]'
    )
    message = f"Resource '{group}' was disallowed by policy. Policy identifiers: '{ids}'."
    return ArmError(HTTPStatus.FORBIDDEN, "RequestDisallowedByPolicy", message)


def _node_group_refusal(group: str, tag: str) -> ArmError:
    refusal = _policy_refusal(group)
    evaluated = f'[{{"expression":"tags[{tag}]","operator":"Exists","result":"False","targetValue":"true"}}]'
    message = (
        "reconcile resource group failed: resources.GroupsClient#CreateOrUpdate: Failure responding to request: "
        "StatusCode=403 -- Original Error: autorest/azure: Service returned an error. "
        f'Status={refusal.status} Code="{refusal.code}" Message="{refusal.message}" AdditionalInfo=[{{"info":'
        f'{{"evaluationDetails":{{"evaluatedExpressions":{evaluated}}}}},"type":"PolicyViolation"}}]'
    )
    return bad_request(message, code="ReconcileResourceGroupError")


def node_setup_failure(exit_code: int) -> ArmError:
    output = f'{{"ExitCode": "{exit_code}", "Output": "...", "Error": ""}}'
    message = (
        "VM has reported a failure when processing extension 'vmssCSE' (publisher 'Microsoft.AKS' and type "
        "'Linux.AKSNode'). Error message: 'Enable failed: failed to execute command: command terminated with exit "
        f"status={exit_code}\n[stdout]\n{output}\n[stderr]\n'. More information on troubleshooting is available at "
        "https://aka.ms/VMExtensionCSELinuxTroubleshoot."
    )
    return bad_request(message, code="VMExtensionProvisioningError")


def price_above_maximum(world: World, pool: Record) -> float | None:
    most = float(pool.properties.get("spotMaxPrice", _ANY_PRICE))
    fault = world.faults.find(FaultKind.PRICE, pool.properties["vmSize"])
    pays = pool.properties.get("scaleSetPriority") != "Spot" or most == _ANY_PRICE
    return None if fault is None or pays or fault.usd <= most else fault.usd


def machines_left(world: World, pool: Record, has: int, spot: int) -> int | None:
    """Returns how many more machines the pool can get, or None if no fault limits the number.

    `has` counts the pool's machines. `spot` counts Spot machines of its VM size in all pools. Capacity faults do not
    limit reserved machines.
    """
    if price_above_maximum(world, pool) or world.faults.find(FaultKind.NODE_SETUP):
        return 0
    fault = world.faults.find(FaultKind.CAPACITY, pool.properties["vmSize"])
    if fault is None or (fault.spot is not None and pool.properties.get("scaleSetPriority") != "Spot"):
        return None
    reserved = max(reservations.free(world, pool.properties, pool.id) - has, 0)
    return max((fault.spot or 0) - spot, reserved)


def allocation_failure(world: World, pool: Record) -> ArmError:
    """Returns the error of a pool's operation if Azure has too few machines.

    For an on-demand pool, the error lists constraints only if OS disks are ephemeral, because fewer hosts fit them.
    """
    properties = pool.properties
    if setup := world.faults.find(FaultKind.NODE_SETUP):
        return node_setup_failure(setup.code)
    if price := price_above_maximum(world, pool):
        message = (
            f"Unable to perform operation 'Allocate' since the provided max price '{properties['spotMaxPrice']} USD' "
            f"is lower than the current spot price '{price} USD' for Azure Spot Virtual Machine size "
            f"'{properties['vmSize']}'."
        )
        return conflict(message, code="SpotPriceGreaterThanProvidedMaxPrice")
    zonal, spot = bool(properties.get("availabilityZones")), properties.get("scaleSetPriority") == "Spot"
    ephemeral = properties.get("osDiskType") == "Ephemeral"
    if not spot and not ephemeral:
        message = (
            f"Allocation failed. We do not have sufficient capacity for the requested VM size in this "
            f"{'zone' if zonal else 'region'}. Read more about improving likelihood of allocation success at "
            "https://aka.ms/allocation-guidance"
        )
        return conflict(message, code="ZonalAllocationFailed" if zonal else "AllocationFailed")
    applied = [_ZONE] * zonal + [_EPHEMERAL] * ephemeral + list(_OF_SPOT if spot else _OF_REGULAR)
    message = (
        "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too "
        "restrictive. Please remove some constraints and try again. Constraints applied are:"
        + "".join(f"\n  - {constraint}" for constraint in applied)
    )
    return conflict(message, code=f"Overconstrained{'Zonal' if zonal else ''}AllocationRequest")


def waits(world: World, record: Record) -> bool:
    """Returns whether a role assignment or the identity of a resource has not propagated yet."""
    fault = world.faults.find(FaultKind.ROLES)
    return fault is not None and float(record.facts.get(CREATED, 0)) >= fault.since
