"""Managed clusters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from ipaddress import ip_network

from simulator.azure.errors import ArmError, bad_request, in_progress
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import life
from simulator.azure.types.agent_pool import rules as pools
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.managed_cluster import credentials, networks
from simulator.azure.world import World

TYPE = "Microsoft.ContainerService/managedClusters"
SHOWN_TYPE = "Microsoft.ContainerService/ManagedClusters"  # so AKS writes it in answers, and its ids as TYPE has it
_PLUGIN = ("networkPlugin", "networkPluginMode")
_VERSIONS_HELP = (
    "which is not supported in this region. Please use [az aks get-versions] command to get the supported version list "
    "in this region. For more information, please check https://aka.ms/supported-version-list"
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
_NO_ENTRA = (  # cilium/cilium#48265; what Azure names as target is not known
    "Since kubernetes version 1.25, disableLocalAccounts can only be set on Azure AD integration enabled cluster. "
    "Please integrate your cluster with AAD."
)
_NOT_USER_ASSIGNED = (
    "Failed to perform resource identity operation. Status: 'BadRequest'. Response: '"
    '{"error":{"code":"BadRequest","message":"The request format was unexpected, a non-UserAssigned identity type '
    """should not contain: userAssignedIdentities"}}'."""
)


class ManagedClusters(Kind):
    """A control plane, and the pools written inline in it."""

    asynchronous = True
    actions = {
        "listclusteradmincredential": lambda world, record, _query, _body: credentials.admin(world, record),
        "listclusterusercredential": lambda world, record, query, _body: credentials.user(
            world, record, query.get("format")
        ),
    }

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        body["location"] = _rules.location(world, record.id, body, existing)
        properties: Body = body["properties"]
        profiles: list[Body] = properties.pop("agentPoolProfiles", [])
        _rules.check_fixed(record.id, body, existing)
        _check_identity(record.id, body, existing)
        _keep(properties, existing.properties if existing else {})
        _fill(world, record.id, body)
        _check_version(world, record.id.name, properties, existing)
        _check_access(properties)
        networks.check(properties["networkProfile"])
        _check_profiles(world, record.id, profiles, existing)
        _check_pool_versions(world, record.id, profiles, properties["kubernetesVersion"])
        properties["provisioningState"] = "Updating" if existing else "Creating"
        record.body, record.error = body, None
        _store_pools(world, record, profiles)
        world.store.put(record)  # last: a kill before this leaves pools without a cluster, which the next start removes

    def check_idle(self, world: World, record: Record) -> None:
        """Pools may change side by side (Azure/AKS#1913), but not while their cluster does."""
        super().check_idle(world, record)
        for pool in world.store.within(record.id):
            if pool.busy:
                raise in_progress(f"agentpool operation ({pool.id.name} - {pool.state})")

    def view(self, world: World, record: Record) -> Body:
        shown = pools.aks_envelope(
            record, record.body | {"identity": _identity(world, record), "properties": _properties(world, record)}
        )
        return shown | {"type": SHOWN_TYPE}

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:
        for pool in self.inline(world, record):
            if pool.busy:
                life.allocate(world, pool, pause)

    def settle(self, world: World, record: Record) -> None:
        life.boot(world, record.id)

    def inline(self, world: World, record: Record) -> Sequence[Record]:
        return of_cluster(world, record.id)

    def end(self, world: World, record: Record) -> None:
        world.backend.delete(record.id.text)


KIND = ManagedClusters()


def _store_pools(world: World, cluster: Record, profiles: list[Body]) -> None:
    """All inline pools, or none of the changes if one is refused."""
    done: list[tuple[ResourceId, Record | None]] = []
    try:
        for profile in profiles:
            pool = cluster.id.child("agentPools", profile["name"])
            before = world.store.get(pool)
            done.append((pool, before))
            body = {"properties": {key: value for key, value in profile.items() if key != "name"}}
            pools.store(world, cluster, world.store.get(pool) or Record(pool, {}), body, before)
    except ArmError:
        for pool, before in done:
            if before:
                world.store.put(before)
            else:
                world.store.remove(pool)
        raise


def kubelet_identity(record: Record) -> str:
    """Object id of the identity that the nodes pull images with."""
    given = record.properties.get("identityProfile", {}).get("kubeletidentity", {}).get("objectId")
    return given or guid(record.id.text, "kubelet")


def identities(record: Record) -> tuple[str, str]:
    """Object ids of the identities that AKS makes with the cluster: its own, and the kubelets'."""
    return guid(record.id.text, "identity"), kubelet_identity(record)


def issuer(world: World, record: Record) -> str:
    """URL of the issuer of its service accounts' tokens; empty where it is not on."""
    if not record.properties["oidcIssuerProfile"]["enabled"]:
        return ""
    path = f"{world.subscription.tenant_id}/{guid(record.id.text, 'issuer')}/"
    return f"https://{record.body['location']}.oic.prod-aks.azure.com/{path}"


def _keep(properties: Body, old: Body) -> None:
    """What an update that leaves it out does not change. Of Entra: Azure/acs-engine, v20180331/merge.go."""
    fixed = (
        path.split(".")[1] for path in schemas()[TYPE.lower()].immutable if path.count(".") == 1 and path != "location"
    )
    for name in (*fixed, "aadProfile", "kubernetesVersion"):
        if name in old:
            properties.setdefault(name, old[name])
    network = properties.setdefault("networkProfile", {})
    if "networkPlugin" not in network:
        network |= {name: old["networkProfile"][name] for name in _PLUGIN if name in old.get("networkProfile", {})}


def _fill(world: World, resource: ResourceId, body: Body) -> None:
    properties = body["properties"]
    newest = list(world.subscription.kubernetes_patches)[0]
    properties.setdefault("kubernetesVersion", newest)
    default_group = f"MC_{resource.group}_{resource.name}_{body['location']}"[:80]
    properties.setdefault("nodeResourceGroup", default_group)
    network = properties.setdefault("networkProfile", {})
    _fill_plugin(network)
    network.setdefault("networkDataplane", "azure")
    network.setdefault("networkPolicy", "none")
    if network.get("networkPluginMode") == "overlay" or network.get("networkPlugin") == "kubenet":
        network.setdefault("podCidr", "10.244.0.0/16")
        network.setdefault("podCidrs", [network["podCidr"]])
    network.setdefault("serviceCidrs", [network["serviceCidr"]])
    if properties.get("aadProfile", {}).get("managed"):
        properties["aadProfile"].setdefault("tenantID", world.subscription.tenant_id)


def _fill_plugin(network: Body) -> None:
    """Whoever names no plugin gets Azure CNI Overlay, as recorded runs did."""
    if "networkPlugin" not in network:
        network |= {"networkPlugin": "azure"} | (
            {} if "networkPluginMode" in network else {"networkPluginMode": "overlay"}
        )
    if network["outboundType"] == "loadBalancer" and network["loadBalancerSku"] == "standard":
        balancer = network.setdefault("loadBalancerProfile", {})
        balancer.setdefault("managedOutboundIPs", {"count": 1})
        balancer.setdefault("backendPoolType", "nodeIPConfiguration")


def _check_version(world: World, name: str, properties: Body, existing: Record | None) -> None:
    asked = properties["kubernetesVersion"]
    if world.subscription.kubernetes(asked) is None:
        offered = ", ".join(world.subscription.kubernetes_patches)
        message = f"Managed cluster {name} is on version {asked} {_VERSIONS_HELP} (Offered here: {offered}.)"
        raise bad_request(message, code="K8sVersionNotSupported", target="properties.kubernetesVersion")
    if existing:
        now = existing.properties["kubernetesVersion"]
        old, new = (int(text.split(".")[1]) for text in (now, asked))
        if new < old:
            raise bad_request(f"Downgrading cluster from {now} to {asked} is not allowed.", code="OperationNotAllowed")
        if new > old + 1:
            message = f"Upgrading Kubernetes version {now} to {asked} is not allowed: minor versions cannot be skipped."
            raise bad_request(message, code="OperationNotAllowed")


def _check_identity(resource: ResourceId, body: Body, existing: Record | None) -> None:
    """Texts: Azure/azure-cli#12219. Of identities of one's own, those that other types are refused with
    (hashicorp/terraform-provider-azurerm#17082, Azure/azure-rest-api-specs#17650, Azure/azure-cli#31837).
    """
    identity: Body = body.get("identity", {})
    kind, principal = identity.get("type", "None"), body["properties"].get("servicePrincipalProfile")
    if kind == "UserAssigned" and not identity.get("userAssignedIdentities"):
        message = "The identity ids must not be null or empty for 'UserAssigned' identity type."
        raise bad_request(message, code="MissingIdentityIds")
    if kind != "UserAssigned" and "userAssignedIdentities" in identity:
        message = f"Identity operation for resource '{resource.text}' failed with error '{_NOT_USER_ASSIGNED}'."
        raise bad_request(message, code="FailedIdentityOperation")
    if kind == "None" and not principal and existing is None:  # an update keeps what it leaves out
        message = "Required parameter servicePrincipalProfile is missing (null)."
        raise bad_request(message, code="InvalidParameter", target="servicePrincipalProfile")


def _check_access(properties: Body) -> None:
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
        message = f"authorizedIPRanges has what is no IPv4 address or CIDR range: {', '.join(not_cidr)}."
        raise bad_request(message, code="InvalidParameter", target="properties.apiServerAccessProfile")
    workload = properties.get("securityProfile", {}).get("workloadIdentity", {})
    if workload.get("enabled") and not properties["oidcIssuerProfile"]["enabled"]:
        message = "Workload identity needs the OIDC issuer: set oidcIssuerProfile.enabled to true."
        raise bad_request(message, target="properties.securityProfile.workloadIdentity")


def _is_range(text: str) -> bool:
    """By the first address of it (AKS's page on authorized IP ranges)."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _check_profiles(world: World, resource: ResourceId, profiles: list[Body], existing: Record | None) -> None:
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


def _check_pool_versions(world: World, resource: ResourceId, profiles: list[Body], control_plane: str) -> None:
    asked = {profile["name"]: profile.get("orchestratorVersion") for profile in profiles}
    if not any(asked.values()):
        return
    for pool in of_cluster(world, resource):
        if asked.get(pool.id.name) not in (control_plane, pool.properties["orchestratorVersion"]):
            raise bad_request(_POOL_VERSIONS, code="NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged")


def _identity(world: World, record: Record) -> Body:
    identity: Body = record.body.get("identity", {"type": "None"})
    if identity.get("type") != "SystemAssigned":
        return identity
    return identity | {"principalId": guid(record.id.text, "identity"), "tenantId": world.subscription.tenant_id}


def _properties(world: World, record: Record) -> Body:
    """What the request set and what ARM adds."""
    properties, location = record.properties, record.body["location"]
    version = world.subscription.kubernetes(properties["kubernetesVersion"])
    digest = hashlib.sha256(record.id.key.encode()).hexdigest()[:8]
    host = f"{properties.get('dnsPrefix') or properties.get('fqdnSubdomain')}-{digest}"
    group = f"/subscriptions/{record.id.subscription}/resourcegroups/{properties['nodeResourceGroup']}"
    kubelet = f"{record.id.name}-agentpool"
    outputs = {
        "azurePortalFQDN": f"{host}.portal.hcp.{location}.azmk8s.io",
        "currentKubernetesVersion": version,
        "fqdn": f"{host}.hcp.{location}.azmk8s.io",
        "identityProfile": properties.get("identityProfile")
        or {
            "kubeletidentity": {
                "clientId": guid(record.id.text, "kubelet client"),
                "objectId": kubelet_identity(record),
                "resourceId": f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{kubelet}",
            }
        },
        "maxAgentPools": 100,
        "networkProfile": _network(record),
        "powerState": {"code": "Running"},
        "resourceUID": guid(record.id.text, "uid").replace("-", "")[:24],
        "servicePrincipalProfile": properties.get("servicePrincipalProfile") or {"clientId": "msi"},
        "agentPoolProfiles": [
            {"name": pool.id.name, **pools.view_properties(pool)} for pool in of_cluster(world, record.id)
        ],
    }
    if url := issuer(world, record):
        outputs["oidcIssuerProfile"] = {"enabled": True, "issuerURL": url}
    return properties | outputs


def _network(record: Record) -> Body:
    """With the public addresses that the load balancer has for traffic that leaves the cluster."""
    network: Body = record.properties["networkProfile"]
    balancer = network.get("loadBalancerProfile")
    if not balancer or "managedOutboundIPs" not in balancer:
        return network
    group = f"/subscriptions/{record.id.subscription}/resourceGroups/{record.properties['nodeResourceGroup']}"
    addresses = f"{group}/providers/Microsoft.Network/publicIPAddresses"
    count = balancer["managedOutboundIPs"]["count"]
    ids = [{"id": f"{addresses}/{guid(record.id.text, 'outbound', str(number))}"} for number in range(count)]
    return network | {"loadBalancerProfile": balancer | {"effectiveOutboundIPs": ids}}
