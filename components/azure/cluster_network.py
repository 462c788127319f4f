"""What a cluster is told of its network: pure functions of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import containerservice

from config.schema.cluster import ClusterSettings
from config.schema.models import Settings
from config.schema.network import NetworkSettings

_OUTBOUND = {"natGateway": "userAssignedNATGateway"}
"""AKS's names of `network.outbound`, where they differ."""
SYSTEM_ZONE = "system"
"""The private DNS zone that AKS makes itself."""


@dataclass(frozen=True, kw_only=True)
class OwnNetwork:
    """What a cluster in another network than AKS's has of it."""

    subnet: pulumi.Input[str]
    """Of all its nodes."""
    identity: pulumi.Input[str]
    """Of its control plane."""
    needs: Sequence[pulumi.Resource]
    """What has to be there before it."""
    outbound_address: pulumi.Output[str] | None = None
    """From which its nodes go out, where the stack has made the gateway."""


def identity(cluster: ClusterSettings, own: OwnNetwork | None) -> containerservice.ManagedClusterIdentityArgs:
    """Of the control plane. Another one changes in place (AKS's page on managed identities)."""
    kinds = containerservice.ResourceIdentityType
    id_ = own.identity if own else cluster.identity
    if id_ is None:
        return containerservice.ManagedClusterIdentityArgs(type=kinds.SYSTEM_ASSIGNED)
    return containerservice.ManagedClusterIdentityArgs(type=kinds.USER_ASSIGNED, user_assigned_identities=[id_])


def network_profile(network: NetworkSettings) -> containerservice.ContainerServiceNetworkProfileArgs:
    """CNI Overlay: pods have addresses of their own. In AKS's network, services have AKS's range."""
    of_ones_own = {"service_cidr": network.service_range, "dns_service_ip": network.dns_service} if network.own else {}
    return containerservice.ContainerServiceNetworkProfileArgs(
        network_plugin="azure",
        network_plugin_mode="overlay",
        network_policy=None if network.policy == "none" else network.policy,
        network_dataplane="cilium" if network.policy == "cilium" else None,
        pod_cidr=network.pod_range,
        load_balancer_sku="standard",
        outbound_type=_OUTBOUND.get(network.outbound, network.outbound) if network.own else "loadBalancer",
        **of_ones_own,
    )


def with_nodes(ip_ranges: list[str], own: OwnNetwork | None) -> pulumi.Input[list[str]]:
    """Authorized ranges, with the address from which nodes come.

    AKS adds that of its load balancer by itself, but no gateway's (its page on authorized IP ranges, "Recommended IP
    ranges to allow"): nodes could not join, and the cluster would fail (MicrosoftDocs/azure-docs#111834).
    """
    if not ip_ranges or own is None or own.outbound_address is None:
        return ip_ranges
    return own.outbound_address.apply(lambda address: list(dict.fromkeys([*ip_ranges, f"{address}/32"])))


def api_server(
    settings: Settings, ip_ranges: pulumi.Input[list[str]]
) -> containerservice.ManagedClusterAPIServerAccessProfileArgs:
    """From where the API server may be reached.

    Ranges are stated when empty too, or taking them away would change nothing. A private one has none, and no name
    outside the network: by default AKS gives it one that the whole world can resolve, if not reach.
    """
    if not settings.network.private:
        return containerservice.ManagedClusterAPIServerAccessProfileArgs(authorized_ip_ranges=ip_ranges)
    return containerservice.ManagedClusterAPIServerAccessProfileArgs(
        enable_private_cluster=True,
        enable_private_cluster_public_fqdn=False,
        private_dns_zone=settings.network.zone("cluster", settings.location) or SYSTEM_ZONE,
    )
