"""The network settings of a cluster, as pure functions of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import containerservice

from config.schema.cluster import ClusterSettings
from config.schema.models import Settings
from config.schema.network import NetworkSettings

_OUTBOUND = {"natGateway": "userAssignedNATGateway"}
SYSTEM_ZONE = "system"


@dataclass(frozen=True, kw_only=True)
class OwnNetwork:
    """The parts of a custom network that a cluster uses."""

    subnet: pulumi.Input[str]
    identity: pulumi.Input[str]
    needs: Sequence[pulumi.Resource]
    outbound_address: pulumi.Output[str] | None = None


def identity(cluster: ClusterSettings, own: OwnNetwork | None) -> containerservice.ManagedClusterIdentityArgs:
    """Returns the control plane's identity. It can change in place (AKS's page on managed identities)."""
    kinds = containerservice.ResourceIdentityType
    id_ = own.identity if own else cluster.identity
    if id_ is None:
        return containerservice.ManagedClusterIdentityArgs(type=kinds.SYSTEM_ASSIGNED)
    return containerservice.ManagedClusterIdentityArgs(type=kinds.USER_ASSIGNED, user_assigned_identities=[id_])


def network_profile(network: NetworkSettings) -> containerservice.ContainerServiceNetworkProfileArgs:
    """Returns the profile of CNI Overlay. In a network that AKS creates, Services get AKS's default range."""
    custom_ranges = (
        {"service_cidr": network.service_range, "dns_service_ip": network.dns_service} if network.own else {}
    )
    return containerservice.ContainerServiceNetworkProfileArgs(
        network_plugin="azure",
        network_plugin_mode="overlay",
        network_policy=None if network.policy == "none" else network.policy,
        network_dataplane="cilium" if network.policy == "cilium" else None,
        pod_cidr=network.pod_range,
        load_balancer_sku="standard",
        outbound_type=_OUTBOUND.get(network.outbound, network.outbound) if network.own else "loadBalancer",
        **custom_ranges,
    )


def with_nodes(ip_ranges: list[str], own: OwnNetwork | None) -> pulumi.Input[list[str]]:
    """Returns the authorized ranges with the outbound address of a NAT gateway; empty if no ranges are set.

    AKS adds the address of its load balancer, but not of a NAT gateway (its page on authorized IP ranges, "Recommended
    IP ranges to allow"). Without this address, no node joins and the cluster fails (MicrosoftDocs/azure-docs#111834).
    """
    if not ip_ranges or own is None or own.outbound_address is None:
        return ip_ranges
    return own.outbound_address.apply(lambda address: list(dict.fromkeys([*ip_ranges, f"{address}/32"])))


def api_server(
    settings: Settings, ip_ranges: pulumi.Input[list[str]]
) -> containerservice.ManagedClusterAPIServerAccessProfileArgs:
    """Returns the profile that limits access to the API server.

    Empty ranges are explicit, because AKS keeps the previous value of omitted fields. A private API server has no
    ranges, and no public name: AKS adds a name by default, but no machine outside the network could use it.
    """
    if not settings.network.private:
        return containerservice.ManagedClusterAPIServerAccessProfileArgs(authorized_ip_ranges=ip_ranges)
    return containerservice.ManagedClusterAPIServerAccessProfileArgs(
        enable_private_cluster=True,
        enable_private_cluster_public_fqdn=False,
        private_dns_zone=settings.network.zone("cluster", settings.location) or SYSTEM_ZONE,
    )
