"""AKS's checks of a cluster, except those of the schema and of address ranges (`networks.py`)."""

from __future__ import annotations

from ipaddress import ip_network

from config.data.versions import versions
from simulator.azure import node_group as node_groups
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import GROUP_TYPE, ResourceId, parse_id
from simulator.azure.store import Body, Record
from simulator.azure.types.agent_pool.checks import VERSIONS_HELP
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.role_assignment.allowed import allows
from simulator.azure.types.user_assigned_identity import rules as user_identities

_ASSIGN = f"{user_identities.TYPE}/*/assign/action"  # the action's real name has an asterisk
_LTS_HELP = (  # apecloud/kubeblocks#10136
    "which is only available for Long-Term Support (LTS). If you intend to onboard to LTS, please ensure the cluster "
    "is in Premium tier and LTS support plan (see https://aka.ms/aks/enable-lts). Otherwise, use [az aks get-versions] "
    "command to get the supported version list in this region. For more information, please check "
    "https://aka.ms/supported-version-list"
)
_NEW_POOL = (
    "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed cluster "
    "operations. For agent pool specific change, please use per agent pool operations: https://aka.ms/agent-pool-rest-api"
)
_POOL_VERSIONS = (
    "Using managed cluster api, all Agent pools' OrchestratorVersion must be all specified or all unspecified. If all "
    "specified, they must be stay unchanged or the same with control plane. For agent pool specific change, please use "
    "per agent pool operations: https://aka.ms/agent-pool-rest-api"
)
_NO_ENTRA = (  # cilium/cilium#48265; Azure's target is unknown
    "Since kubernetes version 1.25, disableLocalAccounts can only be set on Azure AD integration enabled cluster. "
    "Please integrate your cluster with AAD."
)
_KUBELET = "kubeletidentity"
_NOT_USER_ASSIGNED = "The request format was unexpected, a non-UserAssigned identity type"


def version(world: World, name: str, properties: Body, existing: Record | None) -> None:
    wanted, plan = properties["kubernetesVersion"], properties.get("supportPlan")
    if world.subscription.kubernetes(wanted) is None:
        message = f"Managed cluster {name} is on version {wanted} which {VERSIONS_HELP}"
        raise bad_request(message, code="K8sVersionNotSupported", target="properties.kubernetesVersion")
    if ".".join(wanted.split(".")[:2]) not in versions().kubernetes.newest and plan != "AKSLongTermSupport":
        message = f"Managed cluster {name} is on version {wanted}, {_LTS_HELP}"
        raise bad_request(message, code="K8sVersionNotSupported", target="properties.kubernetesVersion")
    if existing:
        now = existing.properties["kubernetesVersion"]
        old, new = (int(text.split(".")[1]) for text in (now, wanted))
        if new < old:
            raise bad_request(f"Downgrading cluster from {now} to {wanted} is not allowed.", code="OperationNotAllowed")
        if new > old + longest_step(old):
            message = (
                f"Upgrading Kubernetes version {now} to {wanted} is not allowed: minor versions cannot be skipped."
            )
            raise bad_request(message, code="OperationNotAllowed")


def identity(world: World, resource: ResourceId, body: Body, existing: Record | None) -> None:
    """Raises ArmError for an invalid identity.

    Error texts: Azure/azure-cli#12219. For two identities: hashicorp/terraform-provider-azurerm#16890 (without code).
    For user-assigned identities, the texts are from other resource types (hashicorp/terraform-provider-azurerm#17082,
    Azure/azure-rest-api-specs#17650, Azure/azure-cli#31837).
    """
    identity: Body = body.get("identity", {})
    kind, principal = identity.get("type", "None"), body["properties"].get("servicePrincipalProfile")
    if kind == "UserAssigned" and not identity.get("userAssignedIdentities"):
        message = "The identity ids must not be null or empty for 'UserAssigned' identity type."
        raise bad_request(message, code="MissingIdentityIds")
    if kind != "UserAssigned" and "userAssignedIdentities" in identity:
        raise user_identities.failed(resource, f"{_NOT_USER_ASSIGNED} should not contain: userAssignedIdentities")
    user_identities.check(world, resource, identity)
    if (count := len(identity.get("userAssignedIdentities", {}))) > 1:
        named = "The count of user assigned identity specified in identity.userAssignedIdentities"
        raise bad_request(f"{named} is {count}, while expected value is 1.", code="InvalidParameter")
    if kind == "None" and not principal and existing is None:  # an update keeps omitted properties
        message = "Required parameter servicePrincipalProfile is missing (null)."
        raise bad_request(message, code="InvalidParameter", target="servicePrincipalProfile")


def kubelet_identity(world: World, resource: ResourceId, body: Body) -> None:
    """Adds the ids of a custom kubelet identity. Raises ArmError if the identity cannot be assigned to nodes.

    Source: AKS's page "Use a managed identity". The identity that AKS creates needs no role. Error codes: user reports.
    Only the error text for the missing role is AKS's. Its use for a missing identity is a guess.
    """
    properties, identity = body["properties"], body.get("identity", {})
    profile = properties.pop("identityProfile", {})
    if not profile:
        return
    text = profile.get(_KUBELET, {}).get("resourceId", "")
    path = user_identities.named(text)
    if path is None or set(profile) != {_KUBELET}:
        message = f"identityProfile has one key, {_KUBELET}, with the resourceId of a user-assigned identity."
        raise bad_request(message, code="CustomKubeletIdentityPropertyError", target="properties.identityProfile")
    if path.id == parse_id(made_kubelet_identity(resource, properties)):
        return
    if identity.get("type") != "UserAssigned":
        message = "Custom kubelet identity is only supported on a cluster with a user-assigned managed identity."
        raise bad_request(message, code="CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster")
    mine, found = user_identities.principals(world, identity), world.store.get(path.id)
    if found is None or not allows(world, mine, _ASSIGN, found.id.text):
        message = (
            "The cluster using user-assigned managed identity must be granted 'Managed Identity Operator' role to "
            "assign kubelet identity."
        )
        raise bad_request(message, code="CustomKubeletIdentityMissingPermissionError")
    ids = user_identities.principal(found)
    kubelet = {"resourceId": text, "clientId": ids.client_id, "objectId": ids.object_id}
    properties["identityProfile"] = {_KUBELET: kubelet}


def made_kubelet_identity(cluster: ResourceId, properties: Body) -> str:
    group = f"/subscriptions/{cluster.subscription}/resourcegroups/{properties['nodeResourceGroup']}"
    return f"{group}/providers/{user_identities.TYPE}/{cluster.name}-agentpool"


def node_group(world: World, resource: ResourceId, properties: Body) -> None:
    """Raises ArmError if the name is in use (Azure/azure-cli#27215, hashicorp/terraform-provider-azurerm#7562)."""
    name = properties["nodeResourceGroup"]
    if name.lower() == str(resource.group).lower():
        message = (
            f"Node resource group '{name}' is the same as ResourceGroup '{resource.group}', which is not allowed, "
            "please provide a different node resource group."
        )
        raise bad_request(message, code="NodeResourceGroupSameAsResourceGroup")
    group = ResourceId(f"/subscriptions/{resource.subscription}", GROUP_TYPE, (name,))
    if world.store.get(group) or node_groups.find(world, group):
        message = (
            f"Node resource group '{name}' under subscription '{resource.subscription}' already exists, please provide "
            "a new one."
        )
        raise bad_request(message, code="NodeResourceGroupAlreadyExists")


def longest_step(minor: int) -> int:
    """Returns how many minor versions an upgrade can advance: three from an LTS-only version, else one.

    Source: AKS's recorded upgrade lists (tests/contract/recordings/clusters.yaml).
    """
    return 1 if f"1.{minor}" in versions().kubernetes.newest else 3


def access(properties: Body) -> None:
    aad = properties.get("aadProfile", {})
    if properties.get("disableLocalAccounts") and not aad.get("managed"):
        raise bad_request(_NO_ENTRA, target="properties.disableLocalAccounts")
    if aad.get("enableAzureRBAC") and not aad.get("managed"):
        raise bad_request(
            "Azure RBAC needs aadProfile.managed to be true.", target="properties.aadProfile.enableAzureRBAC"
        )
    if not properties.get("dnsPrefix") and not properties.get("fqdnSubdomain"):
        message = "Required parameter 'properties.dnsPrefix' is missing (null)."
        raise bad_request(message, code="InvalidParameter", target="properties.dnsPrefix")
    ranges = properties.get("apiServerAccessProfile", {}).get("authorizedIPRanges", [])
    if not_cidr := [text for text in ranges if not _is_range(text)]:
        message = f"authorizedIPRanges must be IPv4 addresses or CIDR ranges, not {', '.join(not_cidr)}."
        raise bad_request(message, code="InvalidParameter", target="properties.apiServerAccessProfile")
    workload = properties.get("securityProfile", {}).get("workloadIdentity", {})
    if workload.get("enabled") and not properties["oidcIssuerProfile"]["enabled"]:
        message = "Workload identity needs the OIDC issuer: set oidcIssuerProfile.enabled to true."
        raise bad_request(message, target="properties.securityProfile.workloadIdentity")


def _is_range(text: str) -> bool:
    """Host bits are not allowed (AKS's page on authorized IP ranges)."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def profiles(world: World, resource: ResourceId, profiles: list[Body], existing: Record | None) -> None:
    names = [profile["name"] for profile in profiles]
    if len(set(names)) < len(names):
        raise bad_request(
            "Agent pool names must be unique.", code="InvalidParameter", target="properties.agentPoolProfiles"
        )
    if existing:
        here = {pool.id.name for pool in of_cluster(world, resource)}
        if set(names) - here:
            raise bad_request(_NEW_POOL, target="agentPoolProfiles")
        return
    if not profiles:
        message = "Required parameter agentPoolProfiles is missing (null)."
        raise bad_request(message, code="InvalidParameter", target="agentPoolProfiles")
    if not any(profile.get("mode") == "System" for profile in profiles):
        raise bad_request("Must define at least one system pool.", code="BadRequest", target="agentPoolProfiles")


def pool_versions(world: World, resource: ResourceId, profiles: list[Body], control_plane: str) -> None:
    wanted = {profile["name"]: profile.get("orchestratorVersion") for profile in profiles}
    if not any(wanted.values()):
        return
    for pool in of_cluster(world, resource):
        if wanted.get(pool.id.name) not in (control_plane, pool.properties["orchestratorVersion"]):
            raise bad_request(_POOL_VERSIONS, code="NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged")
