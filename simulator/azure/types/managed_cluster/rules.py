"""Managed clusters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, in_progress
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, Use, ZoneRecord
from simulator.azure.schema import schemas
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import life
from simulator.azure.types.agent_pool import rules as pools
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.managed_cluster import checks, credentials, networks, private, run_command
from simulator.azure.types.user_assigned_identity import rules as user_identities
from simulator.world.boots import BootStore

TYPE = "Microsoft.ContainerService/managedClusters"
_SHOWN_TYPE = "Microsoft.ContainerService/ManagedClusters"  # the spelling in AKS's responses; ids contain TYPE
_ISSUER_SINCE = 34
"""The first minor version of Kubernetes whose new clusters have an OIDC issuer by default (AKS's page on it)."""


class ManagedClusters(Kind):
    asynchronous = True
    actions = {
        "listclusteradmincredential": lambda world, record, *_: credentials.admin(world, record),
        "listclusterusercredential": lambda world, record, query, _: credentials.user(world, record, query),
        "stop": lambda world, record, *_: _stop(world, record),
        "start": lambda world, record, *_: _start(world, record),
        "rotateclustercertificates": lambda world, record, *_: _rotate_certificates(world, record),
        "runcommand": lambda world, record, _query, body: run_command.run(world, record, body),
    }

    def put(self, world: World, record: Record, body: Body, existing: Record | None) -> None:
        _rules.check_region(world, record, body, existing)
        properties: Body = body["properties"]
        profiles: list[Body] = properties.pop("agentPoolProfiles", [])
        checks.identity(world, record.id, body, existing)
        _keep(properties, existing.properties if existing else {})
        private.fill(properties, existing.properties if existing else {})
        _fill(world, record.id, body)
        if existing is None:
            checks.node_group(world, record.id, properties)
        checks.version(world, record.id.name, properties, existing)
        checks.access(properties)
        checks.kubelet_identity(world, record.id, body)
        private.check(world, body, existing)
        networks.check(properties["networkProfile"])
        checks.profiles(world, record.id, profiles, existing)
        checks.pool_versions(world, record.id, profiles, properties["kubernetesVersion"])
        properties["provisioningState"] = "Updating" if existing else "Creating"
        record.body, record.error = body, None
        _store_pools(world, record, profiles)
        world.store.put(record)  # last: if killed before, the next start removes the pools

    def check_idle(self, world: World, record: Record) -> None:
        """Raises ArmError while the cluster or a pool is busy. Pools can change in parallel (Azure/AKS#1913)."""
        super().check_idle(world, record)
        life.check_runs(record, "updating")
        for pool in world.store.within(record.id):
            if pool.busy:
                raise in_progress(f"agentpool operation ({pool.id.name} - {pool.state})")

    def view(self, world: World, record: Record) -> Body:
        return super().view(world, record) | {"identity": _identity(world, record), "type": _SHOWN_TYPE}

    def outputs(self, world: World, record: Record) -> Body:
        properties, location = record.properties, record.body["location"]
        power = {"powerState": life.STOPPED} if life.stopped(record) else {}
        version = world.subscription.kubernetes(properties["kubernetesVersion"])
        host = _host(record)
        outputs = {
            "azurePortalFQDN": f"{host}.portal.hcp.{location}.azmk8s.io",
            "currentKubernetesVersion": version,
            **private.names(record, host),
            "identityProfile": properties.get("identityProfile")
            or {
                "kubeletidentity": {
                    "clientId": guid(record.id.text, "kubelet client"),
                    "objectId": kubelet_identity(record),
                    "resourceId": checks.made_kubelet_identity(record.id, properties),
                }
            },
            "maxAgentPools": 100,
            "networkProfile": networks.shown(record),
            "powerState": {"code": "Running"},
            "resourceUID": guid(record.id.text, "uid").replace("-", "")[:24],
            "servicePrincipalProfile": properties.get("servicePrincipalProfile") or {"clientId": "msi"},
            "agentPoolProfiles": [
                {"name": pool.id.name, **pools.view_properties(pool), **power}
                # AKS does not keep the request's order either (pulumi-azure-native#1298).
                for pool in sorted(of_cluster(world, record.id), key=lambda pool: pool.id.name)
            ],
        }
        if url := issuer(world, record):
            outputs["oidcIssuerProfile"] = {"enabled": True, "issuerURL": url}
        return outputs | power

    def prepare(self, world: World, record: Record, pause: Callable[[float], object]) -> None:
        for pool in self.inline(world, record):
            if pool.busy:
                life.allocate(world, pool, pause)

        private.prepare(world, record)

    def settle(self, world: World, record: Record) -> None:
        if record.busy:  # AKS creates the node resource group, with the cluster's tags, after accepting the cluster
            faults.check_policy(world, record.properties["nodeResourceGroup"], record.body.get("tags"), inner=True)
        refused = life.boot(world, record.id)
        for pool in of_cluster(world, record.id):
            life.check_ready(refused, pool)
            if record.busy:
                life.check_allocated(world, pool)

    def inline(self, world: World, record: Record) -> Sequence[Record]:
        return of_cluster(world, record.id)

    def end(self, world: World, record: Record) -> None:
        world.backend.delete(record.id.text)
        private.end(world, record)

    def uses(self, world: World, record: Record) -> Sequence[Use]:
        return private.uses(world, record)

    def zone_records(self, world: World, record: Record) -> Sequence[ZoneRecord]:
        return private.zone_records(record, private.names(record, _host(record)))

    def hosts(self, world: World, record: Record) -> Mapping[str, str]:
        return private.hosts(record, private.names(record, _host(record)))


KIND = ManagedClusters()


def _stop(world: World, record: Record) -> None:
    """Stops the cluster at once. Azure takes minutes."""
    life.check_runs(record, "stopping")
    KIND.check_idle(world, record)
    record.properties["powerState"] = life.STOPPED
    world.store.put(record)
    world.backend.halt(record.id.text)


def _start(world: World, record: Record) -> None:
    record.properties.pop("powerState", None)
    world.store.put(record)
    for node in life.by_node(of_cluster(world, record.id)):
        BootStore().boot(node)
    life.boot(world, record.id)


def _rotate_certificates(world: World, record: Record) -> None:
    """Replaces the CA, which invalidates kubeconfigs, and reboots all nodes."""
    life.check_runs(record, "rotating certificates")
    KIND.check_idle(world, record)
    world.backend.rotate(record.id.text)
    _start(world, record)


def _store_pools(world: World, cluster: Record, profiles: list[Body]) -> None:
    """Stores all pools, or if one is invalid, none."""
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
    """Returns the object id of the nodes' identity, which pulls images."""
    given = record.properties.get("identityProfile", {}).get("kubeletidentity", {}).get("objectId")
    return given or guid(record.id.text, "kubelet")


def identities(record: Record) -> tuple[str, str]:
    return guid(record.id.text, "identity"), kubelet_identity(record)


def issuer(world: World, record: Record) -> str:
    """Returns the OIDC issuer's URL, or an empty string if the issuer is disabled."""
    if not record.properties["oidcIssuerProfile"]["enabled"]:
        return ""
    path = f"{world.subscription.tenant_id}/{guid(record.id.text, 'issuer')}/"
    return f"https://{record.body['location']}.oic.prod-aks.azure.com/{path}"


def _keep(properties: Body, old: Body) -> None:
    """Keeps some properties that an update omits. Source for `aadProfile`: Azure/acs-engine, v20180331/merge.go."""
    fixed = (
        path.split(".")[1] for path in schemas()[TYPE.lower()].immutable if path.count(".") == 1 and path != "location"
    )
    for name in (*fixed, "aadProfile", "kubernetesVersion", "oidcIssuerProfile"):
        if properties.get(name) == "":  # the Azure CLI sends unset properties as empty strings
            del properties[name]
        if name in old:
            properties.setdefault(name, old[name])
    networks.keep(properties.setdefault("networkProfile", {}), old.get("networkProfile", {}))


def _fill(world: World, resource: ResourceId, body: Body) -> None:
    properties = body["properties"]
    newest = list(world.subscription.kubernetes_patches)[0]
    properties.setdefault("kubernetesVersion", newest)
    default_group = f"MC_{resource.group}_{resource.name}_{body['location']}"[:80]
    properties.setdefault("nodeResourceGroup", default_group)
    networks.fill(properties["networkProfile"])
    patch = world.subscription.kubernetes(properties["kubernetesVersion"]) or "1.0"
    is_default = int(patch.split(".")[1]) >= _ISSUER_SINCE
    properties.setdefault("oidcIssuerProfile", {}).setdefault("enabled", is_default)
    if not properties.get("addonProfiles"):
        properties.pop("addonProfiles", None)
    if properties.get("aadProfile", {}).get("managed"):
        properties["aadProfile"].setdefault("tenantID", world.subscription.tenant_id)


def _identity(world: World, record: Record) -> Body:
    identity = user_identities.shown(world, record.body.get("identity", {"type": "None"}))
    if identity.get("type") != "SystemAssigned":
        return identity
    return identity | {"principalId": guid(record.id.text, "identity"), "tenantId": world.subscription.tenant_id}


def server_names(record: Record) -> list[str]:
    """Returns the host names of a private API server (the first is in kubeconfigs), else an empty list."""
    found = private.names(record, _host(record)) if private.is_private(record.properties) else {}
    return [found[name] for name in ("privateFQDN", "fqdn") if name in found]


def _host(record: Record) -> str:
    digest = hashlib.sha256(record.id.key.encode()).hexdigest()[:8]
    return f"{record.properties.get('dnsPrefix') or record.properties.get('fqdnSubdomain')}-{digest}"
