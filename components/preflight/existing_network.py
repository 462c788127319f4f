"""Rejects changes to the network of an existing cluster.

AKS cannot move a cluster to other subnets, and can make it private only by API Server VNet Integration (AKS's page on
private clusters). If the policy engine, a range or the outbound type changed, the provider would replace the cluster
(pulumi-azure-native's rules for networkProfile).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from components.azure.cluster_network import SYSTEM_ZONE
from config.problems.errors import lines
from config.problems.fixes import Fix, Path, remove_command, say, set_command
from config.schema.jump_box import USER
from config.schema.models import Settings
from config.schema.network import NODES
from config.schema.resource_ids import same_id

_OUTBOUND: Mapping[str, str] = {"userAssignedNATGateway": "natGateway", "loadBalancer": "loadBalancer"}


@dataclass(frozen=True)
class Difference:
    """A setting that differs from Azure, and the fix that keeps Azure's value."""

    what: str
    keep: Fix
    change: str = ""


def network_refusal(settings: Settings, cluster: Any, address_space: str | None) -> str:
    """Returns the error if the settings require another network than `cluster` has, or an empty string.

    `cluster` is None if it does not exist. `address_space` is the range of the network that the stack created, or None.
    """
    found = [*_address_space(settings, address_space), *(_cluster(settings, cluster, address_space) if cluster else ())]
    if not found:
        return ""
    stack, private = settings.stack, _is_private(cluster)
    destroy = "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh" if private else "pulumi destroy"
    if all(difference.change for difference in found):
        why, others = "An update cannot change that.", ["Or let AKS change it in place, and then refresh the stack:"]
        others += [f"    {difference.change} && pulumi up --refresh -s {stack}" for difference in found]
    else:
        why = "Azure cannot change a network that is in use."
        others = ["Or destroy and re-create the stack. This deletes its registry and data, so save them first:"]
        others += [f"    {destroy} -s {stack} && pulumi up -s {stack}"]
    return lines(
        *(difference.what for difference in found),
        f"{why} Nothing was changed. Keep the existing network, and then `pulumi up` again:",
        *(f"    {difference.keep.text(stack)}" for difference in found),
        *others,
    )


def jump_box_warnings(settings: Settings, group: str, machine: Any) -> Iterator[str]:
    """Yields a warning if the update deletes the jump box (`machine`), or does not add a changed key to it."""
    path: Path = ("network", "jumpBox", "sshPublicKey")
    keys = [each.key_data for each in machine.os_profile.linux_configuration.ssh.public_keys]
    chosen = settings.network.jump_box
    if chosen is None:
        yield (
            f"this update deletes the jump box {machine.name} and its Bastion. If you need them to reach the cluster, "
            f"or if this machine is the jump box, keep them:\n    {set_command(path, keys[0]).text(settings.stack)}"
        )
    elif chosen.ssh_public_key not in keys:
        put = f"az vm user update --resource-group {group} --name {machine.name} --username {USER}"
        yield (
            "network.jumpBox.sshPublicKey is not the key that the jump box was created with. An update does not change "
            "the key of the jump box. To let the owner of the new key log in (this warning stays):\n"
            f"    {put} --ssh-key-value '{chosen.ssh_public_key}'"
        )


def _is_private(cluster: Any) -> bool:
    access = cluster.api_server_access_profile if cluster else None
    return bool(access and access.enable_private_cluster)


def _address_space(settings: Settings, has: str | None) -> Iterator[Difference]:
    wanted = settings.network.address_space
    if has and wanted and has != wanted:
        what = f"network.addressSpace is {wanted}, but the existing network has {has}"
        yield Difference(what, set_command(("network", "addressSpace"), has))


def _cluster(settings: Settings, cluster: Any, address_space: str | None) -> Iterator[Difference]:
    network, profile = settings.network, cluster.network_profile
    private = _is_private(cluster)
    if private != network.private:
        words = ("public", "private") if network.private else ("private", "public")
        what = f"the cluster's API server is {words[0]}, and would be {words[1]} (network.private)"
        yield Difference(what, set_command(("network", "private"), private))
    elif private:
        yield from _zone(settings, cluster.api_server_access_profile.private_dns_zone)
    yield from _subnet(settings, cluster, address_space)
    policy = (profile and profile.network_policy) or "none"
    if policy != network.policy:
        what = f"network.policy is {network.policy}, but the cluster has {policy}"
        keep = remove_command(("network", "policy")) if policy == "none" else set_command(("network", "policy"), policy)
        change = _policy_command(settings, policy)
        cost = ". For this change, AKS reimages the nodes of all pools at once, which ends their jobs" if change else ""
        yield Difference(f"{what}{cost}", keep, change)
    if profile and network.own:
        wanted = {"outbound": network.outbound, "podRange": network.pod_range, "serviceRange": network.service_range}
        outbound = _OUTBOUND.get(profile.outbound_type or "", profile.outbound_type)
        has = {"outbound": outbound, "podRange": profile.pod_cidr, "serviceRange": profile.service_cidr}
        for key, value in has.items():
            if value and value != wanted[key]:
                path: Path = ("network", key)
                what = f"network.{key} is {wanted[key]}, but the cluster has {value}"
                change = _wider_pod_range(settings, value) if key == "podRange" else ""
                yield Difference(what, set_command(path, value), change)


def _policy_command(settings: Settings, has: str) -> str:
    """Returns the command that installs a policy engine or replaces Calico by Cilium. Empty for all other changes,
    which AKS does not allow (https://learn.microsoft.com/azure/aks/use-network-policies).

    The command for Cilium requires both options (Azure/azure-container-networking#4417).
    """
    names, wanted = settings.names, settings.network.policy
    if (has, wanted) not in (("none", "calico"), ("none", "cilium"), ("calico", "cilium")):
        return ""
    plane = " --network-dataplane cilium" if wanted == "cilium" else ""
    group, cluster = names.resource_group, names.cluster
    return f"az aks update --resource-group {group} --name {cluster}{plane} --network-policy {wanted}"


def _wider_pod_range(settings: Settings, has: str) -> str:
    """Returns the command that widens the pods' range to the range in the settings, or an empty string if that range
    does not contain the range in use.

    https://learn.microsoft.com/azure/aks/azure-cni-overlay-pod-expand
    """
    names, wanted = settings.names, settings.network.pod_range
    if not IPv4Network(has).subnet_of(IPv4Network(wanted)):
        return ""
    return f"az aks update --resource-group {names.resource_group} --name {names.cluster} --pod-cidr {wanted}"


def _zone(settings: Settings, has: str | None) -> Iterator[Difference]:
    """Yields a changed DNS zone of the API server. AKS can only change it to `none` (its page on private clusters)."""
    zones, found = settings.network.zones, settings.network.zone("cluster", settings.location)
    if has in (None, "none") or str(has).lower() == (found or SYSTEM_ZONE).lower():
        return
    path: Path = ("network", "zones", zones.index(found) if found else len(zones))
    keep = remove_command(path) if has == SYSTEM_ZONE else set_command(path, has)
    what = f"the name of the cluster's API server is in the private DNS zone {has}, and would be in"
    yield Difference(f"{what} {found or SYSTEM_ZONE} (network.zones)", keep)


def _subnet(settings: Settings, cluster: Any, address_space: str | None) -> Iterator[Difference]:
    has = next((pool.vnet_subnet_id for pool in cluster.agent_pool_profiles or () if pool.vnet_subnet_id), None)
    if has and _is_ours(settings, has):
        if not settings.network.address_space and address_space:
            what = "the cluster's nodes are in the network that the stack created, and would be in another network"
            yield Difference(what, set_command(("network", "addressSpace"), address_space))
    elif has and not same_id(has, settings.network.node_subnet or ""):
        what = f"the cluster's nodes are in {has}, and would be in another subnet"
        yield Difference(what, set_command(("network", "nodeSubnet"), has))
    elif not has and settings.network.own:
        yield Difference(
            "the cluster's nodes are in AKS's own network, and would be in another network", _remove_network(settings)
        )


def _remove_network(settings: Settings) -> Fix:
    left = {"policy"} & settings.network.model_fields_set
    return say("remove all keys of network except policy from the stack file") if left else remove_command(("network",))


def _is_ours(settings: Settings, subnet: str) -> bool:
    end = f"/resourceGroups/{settings.names.resource_group}/providers/Microsoft.Network/virtualNetworks/"
    return subnet.lower().endswith(f"{end}{settings.names.cluster}/subnets/{NODES}".lower())
