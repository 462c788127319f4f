"""Private clusters: the API server's private address and DNS zone.

Source: AKS's page "Create a private AKS cluster". AKS creates the API server's endpoint in the first pool's subnet. It
stores the private name in AKS's own zone (`system`) or in the user's zone. If necessary, it links the zone to the
network. Two rules are guesses: without a zone, a cluster has no private name; with a cluster, AKS deletes the zone
and link that AKS created for it.

Error codes: AKS's list (Azure/aks-deployer, pkg/apierror/const.go). Error texts: Microsoft's pages on
CustomPrivateDNSZoneMissingPermissionError, CreateOrUpdateVirtualNetworkLinkFailed and LinkedAuthorizationFailed; other
texts are guesses.
"""

from __future__ import annotations

import re

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.kind import Use, ZoneRecord
from simulator.azure.operations import remove
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import subnets as pool_subnets
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.private_dns_zone.rules import TYPE as ZONES
from simulator.azure.types.role_assignment.allowed import allows
from simulator.azure.types.subnet.rules import TYPE as SUBNETS
from simulator.azure.types.subnet.rules import take_addresses
from simulator.azure.types.user_assigned_identity import rules as identities
from simulator.azure.types.virtual_network_link import rules as links

_ADDRESS = "apiServer"
"""The key of the API server's address in a cluster's facts."""
_MADE_BY = "cluster"
"""The key of the cluster's id in the facts of zones and links that AKS created."""
_AKS_NETWORK_ADDRESS = "10.224.0.4"  # the first usable address in AKS's managed network
_PROFILE = "properties.apiServerAccessProfile"
_ZONE = f"{_PROFILE}.privateDNSZone"


def profile(properties: Body) -> Body:
    found: Body = properties.get("apiServerAccessProfile", {})
    return found


def is_private(properties: Body) -> bool:
    return bool(profile(properties).get("enablePrivateCluster"))


def fill(properties: Body, old: Body) -> None:
    if is_private(old) and "enablePrivateCluster" not in profile(properties):
        properties["apiServerAccessProfile"] = profile(old) | profile(properties)
    if is_private(properties):
        kept = profile(old).get("privateDNSZone", "system")
        properties["apiServerAccessProfile"].setdefault("privateDNSZone", kept)
        properties["apiServerAccessProfile"].setdefault("enablePrivateClusterPublicFQDN", True)


def check(world: World, body: Body, existing: Record | None) -> None:
    """Raises ArmError for a request that AKS rejects before the operation starts."""
    properties, access = body["properties"], profile(body["properties"])
    if existing:
        _check_fixed(properties, existing.properties)
    if not is_private(properties):
        return
    if access.get("authorizedIPRanges"):
        message = "authorizedIPRanges apply to a public API server only: a private cluster cannot have them."
        raise bad_request(message, code="InvalidParameter", target=f"{_PROFILE}.authorizedIPRanges")
    zone = access["privateDNSZone"]
    if zone.lower() == "none" and not access["enablePrivateClusterPublicFQDN"]:
        message = "A private cluster with privateDNSZone none needs its public FQDN."
        raise bad_request(message, code="NonePrivateDNSZonePublicFQDNDisabledError", target=_ZONE)
    if zone.lower() not in ("none", "system"):
        _check_zone(world, zone, body)


def prepare(world: World, cluster: Record) -> None:
    """Assigns the address and name of a private API server. Raises ArmError, which fails the operation."""
    pools = of_cluster(world, cluster.id)
    subnet = pool_subnets.of(world, pools[0].properties) if pools else None
    if subnet:
        _check_subnet_role(world, cluster, pools)
    if not is_private(cluster.properties):
        return
    with world.store.lock:
        now = world.store.get(cluster.id)
        if now and _ADDRESS not in now.facts:
            now.facts[_ADDRESS] = take_addresses(world, subnet)[0] if subnet else _AKS_NETWORK_ADDRESS
            world.store.put(now)
        if zone := _zone(cluster):
            _make(world, cluster, zone, {"location": "global", "properties": {"provisioningState": "Succeeded"}})
            if subnet:
                _link(world, cluster, zone, subnet.id.parent)


def end(world: World, cluster: Record) -> None:
    for record in world.store.all():
        if record.facts.get(_MADE_BY) == cluster.id.key and world.store.get(record.id):
            remove(world, record)


def uses(world: World, cluster: Record) -> list[Use]:
    pools = of_cluster(world, cluster.id)
    subnet = pool_subnets.of(world, pools[0].properties) if pools else None
    if subnet is None or _ADDRESS not in cluster.facts:
        return []
    interface = f"Microsoft.Network/networkInterfaces/kube-apiserver.nic.{guid(cluster.id.text, 'api nic')}"
    part = f"{_group(cluster)}/providers/{interface}/ipConfigurations/privateEndpointIpConfig"
    return [Use(subnet.id.text, part, 1, cluster.facts[_ADDRESS])]


def names(cluster: Record, host: str) -> Body:
    """Returns `fqdn` and `privateFQDN`, if they exist. `host` is the label that AKS makes from the DNS prefix."""
    properties, location = cluster.properties, cluster.body["location"]
    public = {"fqdn": f"{host}.hcp.{location}.azmk8s.io"}
    if not is_private(properties):
        return public
    zone = _zone(cluster)
    private = {"privateFQDN": f"{properties.get('fqdnSubdomain') or host}.{zone.name}"} if zone else {}
    return private | (public if profile(properties)["enablePrivateClusterPublicFQDN"] else {})


def zone_records(cluster: Record, found: Body) -> list[ZoneRecord]:
    zone = _zone(cluster) if "privateFQDN" in found and _ADDRESS in cluster.facts else None
    if zone is None:
        return []
    name = found["privateFQDN"].removesuffix(f".{zone.name}")
    return [ZoneRecord(zone, name, cluster.facts[_ADDRESS], cluster.id)]


def hosts(cluster: Record, found: Body) -> dict[str, str]:
    return {found["fqdn"]: cluster.facts.get(_ADDRESS, "")} if "fqdn" in found else {}


def _check_fixed(properties: Body, old: Body) -> None:
    changed = [
        f"{_PROFILE}.{name}"
        for name in ("enablePrivateCluster", "privateDNSZone")
        if (profile(properties).get(name) or False) != (profile(old).get(name) or False)
    ]
    if changed:
        raise _rules.forbidden_changes(changed)


def _check_zone(world: World, text: str, body: Body) -> None:
    identity, region = body.get("identity", {}), body["location"]
    try:
        zone = parse_id(text)
    except ValueError:
        zone = None
    named = rf"([a-zA-Z0-9-]{{1,32}}\.)?private(link)?\.{region}\.azmk8s\.io"
    if zone is None or zone.type.lower() != ZONES.lower() or not re.fullmatch(named, zone.name):
        message = (
            f"The private DNS zone '{text}' must be system, none, or the id of a zone named "
            f"privatelink.{region}.azmk8s.io or <subzone>.privatelink.{region}.azmk8s.io."
        )
        raise bad_request(message, code="InvalidPrivateDNSZoneResourceID", target=_ZONE)
    if identity.get("type") == "SystemAssigned":
        message = "A system-assigned identity is not supported with a custom private DNS zone. Use a user-assigned one."
        code = "SystemAssignedIdentityNotSupportedForCustomPrivateDNSZone"
        raise bad_request(message, code=code, target=_ZONE)
    if world.store.get(zone) is None:
        message = f"The private DNS zone {text} was not found."
        raise bad_request(message, code="PrivateDNSZoneResourceNotFoundError", target=_ZONE)
    if allows(world, identities.principals(world, identity), f"{ZONES}/write", zone.text):
        return
    message = (
        "Service principal or user-assigned identity must be given permission to read and write to custom private dns "
        f"zone {text}. Check access result not allowed for action Microsoft.Network/privateDnsZones/read."
    )
    raise bad_request(message, code="CustomPrivateDNSZoneMissingPermissionError")


def _check_subnet_role(world: World, cluster: Record, pools: list[Record]) -> None:
    """Checks only a user-assigned identity. A system-assigned identity gets its role after creation."""
    for pool in pools:
        if (subnet := pool_subnets.of(world, pool.properties)) is None:
            continue
        target = f"{_group(cluster)}/providers/Microsoft.Compute/virtualMachineScaleSets/aks-{pool.id.name}"
        action = "Microsoft.Compute/virtualMachineScaleSets/write"
        _check_role(world, cluster, f"{SUBNETS}/join/action", subnet.id, (action, target))


def _check_role(world: World, cluster: Record, right: str, scope: ResourceId, doing: tuple[str, str]) -> None:
    mine = identities.principals(world, cluster.body.get("identity", {}))
    if not mine or allows(world, mine, right, scope.text):
        return
    action, target = doing
    message = (
        f"The client '{mine[0]}' with object id '{mine[0]}' has permission to perform action '{action}' on scope "
        f"'{target}'; however, it does not have permission to perform action '{right}' on "
        f"the linked scope(s) '{scope.text}' or the linked scope(s) are invalid."
    )
    raise ArmError(403, "LinkedAuthorizationFailed", message)


def _zone(cluster: Record) -> ResourceId | None:
    zone = profile(cluster.properties)["privateDNSZone"]
    if zone.lower() == "none":
        return None
    if zone.lower() != "system":
        return parse_id(zone)
    name = f"{guid(cluster.id.text, 'zone')}.privatelink.{cluster.body['location']}.azmk8s.io"
    return ResourceId(_group(cluster), ZONES, (name,))


def _group(cluster: Record) -> str:
    return f"/subscriptions/{cluster.id.subscription}/resourceGroups/{cluster.properties['nodeResourceGroup']}"


def _link(world: World, cluster: Record, zone: ResourceId, network: ResourceId) -> None:
    if any(link.id.parent == zone for link in links.of_network(world, network)):
        return
    link = zone.child("virtualNetworkLinks", f"{cluster.id.name}-{guid(cluster.id.text, 'link')[:8]}")
    action = "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write"
    _check_role(world, cluster, f"{links.NETWORKS}/join/action", network, (action, link.text))
    try:
        links.check_alone(world, link, network)
    except ArmError as error:
        message = (
            f"Reconcile private dns failed. Details: Create or update virtual network link failed. Subscription: "
            f"{link.subscription}; resource group: {link.group}; private dns zone: {zone.name}; virtual network link: "
            f"{link.name}. Message: {error.message}"
        )
        raise bad_request(message, code="CreateOrUpdateVirtualNetworkLinkFailed") from error
    states = {"provisioningState": "Succeeded", "virtualNetworkLinkState": "Completed"}
    settings = {"registrationEnabled": False, "resolutionPolicy": "Default", "virtualNetwork": {"id": network.text}}
    _make(world, cluster, link, {"location": "global", "properties": settings | states})


def _make(world: World, cluster: Record, resource: ResourceId, body: Body) -> None:
    if world.store.get(resource) is None:
        world.store.put(Record(resource, body, facts={_MADE_BY: cluster.id.key}))
