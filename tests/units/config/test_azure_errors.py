"""Azure's errors, in the forms in which they arrive, are explained by their cause."""

from __future__ import annotations

import json
import re

import pytest

from config.rules.azure_errors import Place, entries, explain, explain_log

CSE = (
    "VM has reported a failure when processing extension 'vmssCSE' (publisher 'Microsoft.AKS' and type "
    "'Linux.AKSNode'). Error message: 'Enable failed: failed to execute command: command terminated with "
    'exit status={0} [stdout] {{"ExitCode": "{0}", "Output": "...", "Error": ""}}\'.'
)
QUOTA = "If you want to increase the quota, please follow this instruction: https://learn.microsoft.com/azure/quotas."
CASES = {
    # code, message: a part of what is said, and a part of the fix
    ("RequestDisallowedByPolicy", 'expressions":[{"expression":"tags[Cost Center]","operator":"Exists"}]'): (
        "requires a tag",
        "'tags[\"Cost Center\"]'",
    ),
    ("RequestDisallowedByPolicy", 'Expressions\\":[{\\"expression\\":\\"tags[\'Owner\']\\"}]'): (
        "requires a tag",
        "tags.Owner",
    ),
    (
        "RequestDisallowedByPolicy",
        'Resource \'x\' was disallowed by policy. Policy identifiers: \'[{"policyAssignment":{"name":"Allowed regions",'
        '"id":"/subscriptions/s/providers/Microsoft.Authorization/policyAssignments/a1"}}]\'.',
    ): ("forbids the resource", "--name 'a1' --scope /subscriptions/s "),
    ("ScopeLocked", "cannot perform delete operation because following scope(s) are locked: '/subscriptions/s/rg'."): (
        "lock",
        "'/subscriptions/s/rg/providers/Microsoft.Authorization/locks",
    ),
    (
        "AuthorizationFailed",
        "The client 'c' does not have authorization to perform action 'Microsoft.Authorization/roleAssignments/write' "
        "over scope '/subscriptions/s/rg' or the scope is invalid.",
    ): ("right Microsoft.Authorization/roleAssignments/write", "--scope /subscriptions/s/rg "),
    (
        "LinkedAuthorizationFailed",
        "The client 'c' has permission to perform action 'Microsoft.Compute/x/write' on scope '/subscriptions/s/x'"
        "; however, it does not have permission to perform action(s) "
        "'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope(s) '/subscriptions/s/n' or",
    ): ("right Microsoft.Network/virtualNetworks/subnets/join/action", "--scope /subscriptions/s/n "),
    ("MissingSubscriptionRegistration", "not registered to use namespace 'Microsoft.ContainerService'."): (
        "provider",
        "--namespace Microsoft.ContainerService ",
    ),
    ("FeatureNotRegistered", "Preview feature Microsoft.ContainerService/SomePreview not registered."): (
        "preview feature",
        "--namespace Microsoft.ContainerService --name SomePreview ",
    ),
    ("OverconstrainedZonalAllocationRequest", "applied are:\n  - Availability Zone\n  - VM Size"): (
        "all constraints at once",
        "pulumi up",
    ),
    ("OverconstrainedAllocationRequest", "- Low Priority VMs\n  - VM Size"): ("Spot machine", "without `spot`"),
    ("ZonalAllocationFailed", "We do not have sufficient capacity for the requested VM size in this zone."): (
        "no machine",
        "pulumi up",
    ),
    (
        "Forbidden",
        'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope: '
        "User does not have access to the resource in Azure. Update role assignment to allow access.",
    ): ("Azure RBAC for Kubernetes", "az role assignment list"),
    ("RoleAssignmentExists", "The role assignment already exists."): (
        "already has this role",
        "az role assignment list",
    ),
    ("ResourceGroupBeingDeleted", "The resource group 'g' is in deprovisioning state and cannot perform this."): (
        "still being deleted",
        "az group wait",
    ),
    ("VMCacheSizeTooSmall", "Standard_E2ds_v5 has a cache size of 0 bytes, but the OS disk requires 68719476736."): (
        "does not fit",
        "osDiskType Managed",
    ),
    ("AvailabilityZoneNotSupported", "The supported zones for location centralus are (empty)."): (
        "in the zone",
        "az vm list-skus",
    ),
    (
        "ServiceCidrOverlapExistingSubnetsCidr",
        "The specified service CIDR 10.0.0.0/16 is conflicted with an existing subnet CIDR 10.0.239.0/24",
    ): ("(10.0.0.0/16) overlaps a subnet of the network (10.0.239.0/24)", "network.serviceRange"),
    ("AllocationTimeout", "The allocation timed out."): ("no machine", "pulumi up"),
    ("SkuNotAvailable", "The requested VM size 'Standard_ND96isr_H100_v5' is currently not available."): (
        "does not offer",
        "az vm list-skus",
    ),
    ("AKSCapacityHeavyUsage", "AKS is experiencing heavy usage"): ("no new clusters", "pulumi up"),
    (
        "ErrCode_InsufficientVCPUQuota",
        "Insufficient regional vcpu quota left for location eastus. left regional vcpu quota 3, requested quota 4. "
        + QUOTA,
    ): ("surge node", "az vm list-usage"),
    (
        "QuotaExceeded",
        "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
        "details - Current Limit: 100, Current Usage: 100, Additional Required: 4, (Minimum) New Limit Required: 104.",
    ): ("limit that is required", "Total Regional Cores: 104 or more"),
    ("PublicIPCountLimitReached", "Cannot create more than 10 public IP addresses"): ("public IP", "az network"),
    ("VMExtensionProvisioningError", CSE.format(50)): ("mcr.microsoft.com (exit code 50)", "aks-required-ports"),
    ("VMExtensionProvisioningError", CSE.format(51)): ("API server (exit code 51)", "authorizedIpRanges"),
    ("VMExtensionProvisioningError", CSE.format(52)): ("resolve the name", "168.63.129.16"),
    ("VMExtensionProvisioningError", CSE.format(84)): ("GPU driver or device plugin (exit code 84)", "gpuProfile"),
    ("VMExtensionProvisioningError", CSE.format(34)): ("kubelet or another service", "pulumi up"),
    ("VMExtensionProvisioningError", CSE.format(124)): ("in time", "pulumi up"),
    ("VMExtensionProvisioningError", CSE.format(41)): ("download on the node", "exit code|aks-required-ports"),
    ("VMExtensionProvisioningError", CSE.format(199)): ("could not be set up (exit code 199)", "az vmss run-command"),
    ("VMExtensionProvisioningError", "Unable to establish outbound connection from agents, please see ..."): (
        "mcr.microsoft.com",
        "aks-required-ports",
    ),
    ("VMExtensionProvisioningError", "CSE failed with 'VMExtensionError_K8SAPIServerDNSLookupFail', which means"): (
        "resolve the name",
        "168.63.129.16",
    ),
    (
        "ExistingRouteTableNotAssociatedWithSubnet",
        "An existing route table has not been associated with subnet /subscriptions/s/subnets/nodes. Please update the",
    ): ("no route table", "--ids /subscriptions/s/subnets/nodes --route-table"),
    ("RouteTableInvalidNextHop", "Default route 0.0.0.0/0 has a next hop of Internet but only next hops of"): (
        "no route of 0.0.0.0/0",
        "az network route-table route create",
    ),
    (
        "RouteTableMissingDefaultRouteError",
        "Default route 0.0.0.0/0 missing from route table "
        "/subscriptions/s/resourceGroups/hub/providers/Microsoft.Network/routeTables/out.",
    ): ("no route of 0.0.0.0/0", "--resource-group hub --route-table-name out"),
    ("OperationNotAllowed", "Operation is not allowed: Another agentpool operation (gpu - Updating) is in progress"): (
        "busy",
        "provisioningState",
    ),
    (
        "OperationNotAllowed",
        "managed cluster is in Provisioning State(Succeeded) and Power State(Stopped), updating cannot be performed",
    ): ("is stopped", "az aks start"),
    ("SubscriptionRequestsThrottled", "Number of 'write' requests exceeded."): ("too many requests", "pulumi up"),
    ("StorageAccountAlreadyTaken", "The storage account named data is already taken."): (
        "storage account is in use",
        "storage.accountName <name>",
    ),
    ("StorageAccountAlreadyExists", "The storage account named data already exists under the subscription."): (
        "storage account is in use",
        "storage.accountName <name>",
    ),
    ("AlreadyInUse", "The registry DNS name data.azurecr.io is already in use."): (
        "container registry is in use",
        "registry.name <name>",
    ),
    ("DnsRecordInUse", "DNS record a.eastus.cloudapp.azure.com is already used by another public IP."): (
        "DNS label",
        "azure-dns-label-name",
    ),
    ("PropertyChangeNotAllowed", "Changing property 'kind' is not allowed."): ("storage account", "storage.accounts"),
    ("StorageAccountTypeConversionNotAllowed", "Storage account type cannot be changed to Premium_LRS."): (
        "storage account",
        "storage.accounts",
    ),
    ("PropertyChangeNotAllowed", "Changing property 'properties.vmSize' is not allowed."): ("in place", "`pools`"),
    ("FeatureNotFound", "The feature 'AKSInfinibandSupport' could not be found."): (
        "no such preview feature",
        "without AKSInfinibandSupport",
    ),
    ("PrincipalNotFound", "Principal 0a does not exist in the directory 0b. Check that you have the correct"): (
        "not in the tenant",
        "az ad group show",
    ),
    (
        "NodeResourceGroupAlreadyExists",
        "Node resource group 'g-nodes' under subscription '0a' already exists, please",
    ): (
        "left behind",
        "az resource list --resource-group g-nodes",
    ),
    ("UnmatchedPrincipalType", "The PrincipalId '0a' has type 'User' , which is different from specified"): (
        "of another type",
        "cluster.adminGroupObjectIds",
    ),
    ("KeyBasedAuthenticationNotPermitted", "Key based authentication is not permitted on this storage account."): (
        "rejects its keys",
        "storage.auth identity",
    ),
    ("ExpiredAuthenticationToken", "The access token expiry UTC time '1' is earlier than current UTC time '2'."): (
        "token of the login expired",
        "az login",
    ),
    (
        "DenyAssignmentAuthorizationFailed",
        "The client '0a' has permission to perform action 'a/b/write' on scope '/s/g'; however, the access is denied "
        "because of the deny assignment with name 'locked' and Id 'aaaa' at scope '/s/g'.",
    ): ("no role lifts one", "'/s/g/providers/Microsoft.Authorization/denyAssignments"),
    ("BadRequest", "Feature Microsoft.ContainerService/AKSInfinibandSupport is not enabled."): (
        "preview feature",
        "--name AKSInfinibandSupport",
    ),
    ("InvalidParameter", "OS disk of Ephemeral VM with size greater than 64 GB is not allowed for VM size D."): (
        "does not fit",
        "Managed",
    ),
    ("UpgradeFailed", "Drain node failed: Cannot evict pod as it would violate the pod's disruption budget."): (
        "drained",
        "poddisruptionbudgets",
    ),
}


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "autorest"])
@pytest.mark.parametrize(("error", "expected"), CASES.items(), ids=[f"{code}-{n}" for n, (code, _) in enumerate(CASES)])
def test_the_cause_is_explained(error: tuple[str, str], expected: tuple[str, str], as_json: bool) -> None:
    code, message = error
    body = {"status": 400, "error": {"code": code, "message": message}}
    found = explain(json.dumps(body) if as_json else f'Status=400 Code="{code}" Message="{message}"')
    assert found
    assert expected[0] in found.says
    assert any(re.search(re.escape(expected[1]).replace(r"\|", "|"), fix) for fix in found.fixes), found.fixes


def test_every_failing_tag_is_named() -> None:
    expressions = [{"expression": f"tags[{tag}]", "result": "False"} for tag in ("CostCenter", "Owner", "Owner")]
    found = explain(json.dumps({"code": "RequestDisallowedByPolicy", "evaluatedExpressions": expressions}))
    assert found
    assert [fix.split()[-2] for fix in found.fixes] == ["tags.CostCenter", "tags.Owner"]


def test_tags_that_the_stack_has_are_not_named() -> None:
    error = 'RequestDisallowedByPolicy {"expression":"tags[env]"}, {"expression":"tags.Owner"}'
    some, all_ = explain(error, Place(tags=("Env",))), explain(error, Place(tags=("env", "owner")))
    assert some
    assert all_
    assert [fix.split()[-2] for fix in some.fixes] == ["tags.Owner"]
    assert len(all_.fixes) == 2, "the values are others than the policy allows"


REPORTS = {
    # As tools print them: az, terraform, the AKS portal, the autoscaler's events.
    "(ErrCode_InsufficientVCPUQuota) Insufficient regional vcpu quota left for location koreacentral.": "surge node",
    'unexpected status 400 with response: {\n  "code": "ErrCode_InsufficientVCPUQuota",': "surge node",
    'Status: "VMExtensionProvisioningError"\nMessage: "CSE failed with \'VMExtensionError_OutBoundConnFail\'': "mcr.",
    "OutboundConnFailVMExtensionError": "mcr.microsoft.com",
    "K8SAPIServerConnFailVMExtensionError": "connect to the API server",
    "vmssCSE exit status=50": "mcr.microsoft.com",
    "'vmssCSE' ... command terminated with exit status 52": "resolve the name",
    'extension "vmssCSE" ... Enable failed: ... {"ExitCode":"51","Output":': "connect to the API server",
    'VMExtensionError {\\"ExitCode\\": \\"31\\"': "download on the node",
    "VMExtensionProvisioningError: VM has reported a failure when processing extension": "exit code unknown",
    "was disallowed by policy. Reasons: 'Set a CostCenter'. See error details": "forbids the resource",
    'Code="RequestDisallowedByPolicy" Message="Resource \'MC_a_b_c\' was disallowed by policy.': "forbids the",
    "exceeding approved standardDSv3Family Cores quota. New Limit Required: 24.": "quota does not hold",
    "exceeding approved LowPriorityCores quota. Current Limit: 3": "quota does not hold",
    "Operation results in exceeding quota limits of Core. Maximum allowed: 10": "quota does not hold",
    "ZonalAllocationFailed: Allocation failed. We do not have sufficient capacity": "no machine",
    "The requested VM size Standard_NC24ads_A100_v4 is not available in the current region. SkuNotAvailable": "offer",
    "The VM size of Standard_ND96isr_H100_v5 is not allowed in your subscription in location 'westus'": "not offer",
    "SpotPriceGreaterThanProvidedMaxPrice": "A Spot machine costs more",
    'StatusCode=429 -- Original Error: Code="TooManyRequests"': "too many requests",
    "LinkedAuthorizationFailed: has permission to perform action 'a/write' on scope '/x'; however": "the right",
    "is currently not available in location 'eastus2' zones '1'. See https://aka.ms/azureskunotavailable": "not offer",
    "The PutAgentPoolHandler.PUT request limit has been exceeded for agentpool /x": "too many requests",
    "AADSTS7000222: The provided client secret keys for app 'x' are expired.": "login has expired",
    "Interactive authentication is needed. Please run: az login": "login has expired",
    "Operation is not allowed because there's an in progress update managed cluster operation": "busy",
    "(Conflict) Another operation on this or dependent resource is in progress.": "busy",
    '"code": "NotLatestOperation"': "busy",
    "managed cluster is in stopped state, no operations except for start are allowed": "is stopped",
    "managed cluster is in Provisioning State(Succeeded) and Power State(Stopped), stopping cannot be": "is stopped",
    "rejected the request because too many requests have been received for this subscription": "too many requests",
    "UpgradeFailed: blocked by PodDisruptionBudget ai/train": "drained",
    "(UpgradeFailed) Drain node aks-a failed when evicting pod b failed with Too Many Requests error": "drained",
    "Eviction blocked by Too many Requests (usually a pdb): a-0": "drained",
    "(InternalOperationError) Internal server error": "internal error",
    "We are unable to serve this request due to an internal error, Correlation ID: 0": "internal error",
    "AKSOperationPreempted": "busy with another operation",
    "Eviction blocked by Too Many Requests (usually a pdb): disruption budget": "drained",
}


@pytest.mark.parametrize("report", REPORTS)
def test_reports_of_other_tools_are_explained(report: str) -> None:
    found = explain(report)
    assert found
    assert REPORTS[report] in found.says


def test_each_error_of_a_log_is_explained_once() -> None:
    node = 'Status=200 Code="VMExtensionProvisioningError" Message="'
    log = f'error: {node}{CSE.format(50)}"\nerror: {node}{CSE.format(84)}"\nerror: {node}{CSE.format(50)}"\n'
    assert [each.says.split()[0] for each in explain_log(log)] == ["Nodes", "AKS"]
    assert explain_log("nothing") == []
    assert [each.says.split()[0] for each in explain_log("ScopeLocked")] == ["A"]


LOCKED = "following scope(s) are locked: '/s/g'"
QUOTA_14 = "exceeding approved Total Regional Cores quota. (Minimum) New Limit Required: 14."
SDK = 'PUT https://x\nRESPONSE 409: 409 Conflict\nERROR CODE: {0}\n{{"error": {{"code": "{0}", "message": "{1}"}}}}\n'


@pytest.mark.parametrize(
    "log",
    [
        json.dumps(
            {"code": "A", "details": [{"code": "ScopeLocked", "message": LOCKED}, {"code": "B", "m": QUOTA_14}]}
        ),
        f"ERROR: (ScopeLocked) {LOCKED}\nCode: ScopeLocked\nERROR: (QuotaExceeded) {QUOTA_14}\nCode: QuotaExceeded\n",
        SDK.format("ScopeLocked", LOCKED) + SDK.format("QuotaExceeded", QUOTA_14),
    ],
)
def test_all_errors_are_explained_with_their_details_in_the_form_of_each_tool(log: str) -> None:
    locked, quota = explain_log(log)
    assert "'/s/g/providers/Microsoft.Authorization/locks" in locked.fixes[0]
    assert "Total Regional Cores: 14 or more" in quota.fixes[0]


def test_other_errors_are_not() -> None:
    assert explain('Status=400 Code="InvalidParameter" Message="exit status=50 of something else"') is None
    assert explain("") is None


def test_no_exit_code_is_explained_twice() -> None:
    codes = [code for entry in entries() for code in entry.exit]
    assert len(codes) == len(set(codes))


def test_every_entry_says_where_it_is_from() -> None:
    assert all(entry.source.startswith("https://") and entry.fix for entry in entries())
