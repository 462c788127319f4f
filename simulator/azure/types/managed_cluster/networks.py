"""A cluster's network profile: plugin, addresses (services, pods, DNS), outbound type.

Error codes: AKS's list (Azure/aks-deployer, pkg/apierror/const.go), except `InvalidParameter` (a guess). Rules: AKS's
pages on Azure CNI ("Service address CIDR must be smaller than /12", "Don't use the first IP address in your address
range"), and AKS's older API (Azure/acs-engine, pkg/api/agentPoolOnlyApi/v20180331: validate.go accepts /12; errors.go
has the error texts). Sources of other error texts are next to the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import product

from simulator.azure.errors import Problem, bad_request, invalid
from simulator.azure.store import Body, Record
from simulator.azure.subscription import guid
from simulator.azure.types.agent_pool.subnets import RESERVED

Range = IPv4Network | IPv6Network
_DNS = "networkProfile.dnsServiceIP"
_TARGETS = {"serviceCidr": "networkProfile.serviceCIDR", "podCidr": "networkProfile.podCIDR"}
_SERVICE_BITS = 20
"""Host bits of the largest service range: 2^20 addresses (kube-apiserver's limit), /12 for IPv4."""


def keep(network: Body, old: Body) -> None:
    if "networkPlugin" not in network:
        network |= {name: old[name] for name in ("networkPlugin", "networkPluginMode") if name in old}


def fill(network: Body) -> None:
    """Sets defaults. The default plugin is Azure CNI Overlay, as in recorded runs."""
    if "networkPlugin" not in network:
        network["networkPlugin"] = "azure"
        network.setdefault("networkPluginMode", "overlay")
    network.setdefault("networkDataplane", "azure")
    # Cilium's data plane also enforces network policies (AKS's page on Azure CNI Powered by Cilium).
    network.setdefault("networkPolicy", "cilium" if network["networkDataplane"] == "cilium" else "none")
    if network.get("networkPluginMode") == "overlay" or network["networkPlugin"] == "kubenet":
        network.setdefault("podCidr", "10.244.0.0/16")
        network.setdefault("podCidrs", [network["podCidr"]])
    network.setdefault("serviceCidrs", [network["serviceCidr"]])
    if network["outboundType"] == "loadBalancer" and network["loadBalancerSku"] == "standard":
        balancer = network.setdefault("loadBalancerProfile", {})
        balancer.setdefault("managedOutboundIPs", {"count": 1})
        balancer.setdefault("backendPoolType", "nodeIPConfiguration")


def shown(cluster: Record) -> Body:
    network: Body = cluster.properties["networkProfile"]
    balancer = network.get("loadBalancerProfile", {})
    if "managedOutboundIPs" not in balancer:
        return network
    group = f"/subscriptions/{cluster.id.subscription}/resourceGroups/{cluster.properties['nodeResourceGroup']}"
    addresses = f"{group}/providers/Microsoft.Network/publicIPAddresses"
    count = balancer["managedOutboundIPs"]["count"]
    ids = [{"id": f"{addresses}/{guid(cluster.id.text, 'outbound', str(number))}"} for number in range(count)]
    return network | {"loadBalancerProfile": balancer | {"effectiveOutboundIPs": ids}}


def check(network: Body) -> None:
    """Raises ArmError for an inconsistent network profile. The profile must contain the defaults."""
    services, pods = _ranges(network, "serviceCidr"), _ranges(network, "podCidr")
    problems = [
        *_engine(network),
        *_reserved(services, "serviceCidr", "service", "ServiceCidrOverlapping"),
        *_reserved(pods, "podCidr", "pod", "InvalidParameter"),
        *_sizes(services),
        *_overlaps(services, pods),
        *_dns_problems(network["dnsServiceIP"], services[0]),
    ]
    if problems:
        raise invalid(problems)


def _engine(network: Body) -> Iterator[Problem]:
    """Yields an error if only the data plane or only the policy engine is Cilium.

    Error texts: Azure/AKS-Construction#535, AdminTurnedDevOps/DevOps-The-Hard-Way-Azure#1.
    """
    target, plane, policy = "networkProfile.networkPolicy", network["networkDataplane"], network["networkPolicy"]
    if plane == "cilium" and policy != "cilium":
        yield Problem(target, "Cilium dataplane requires network policy cilium.", "BadRequest")
    elif plane != "cilium" and policy == "cilium":
        yield Problem(target, "Network Policy cilium requires NetworkDataplane cilium", "NetworkPolicyNotSupported")


def _ranges(network: Body, name: str) -> list[Range]:
    """Returns the ranges in `serviceCidrs` or `podCidrs` (the primary range first), else the single range."""
    texts: list[str] = network.get(f"{name}s") or ([network[name]] if name in network else [])
    try:
        return [ip_network(text, strict=False) for text in texts]
    except ValueError as error:  # Azure/AKS#506
        raise bad_request("Cidr is invalid", code="CidrStringParseError", target=_TARGETS[name]) from error


def _reserved(ranges: list[Range], name: str, what: str, code: str) -> Iterator[Problem]:
    """The error text is a guess from the text for overlapping ranges."""
    for found, reserved in product(ranges, RESERVED):
        if found.version == reserved.version and found.overlaps(reserved):
            text = f"The specified {what} CIDR {found} is conflicted with the reserved range {reserved}"
            yield Problem(_TARGETS[name], text, code)


def _sizes(services: list[Range]) -> Iterator[Problem]:
    for found in services:
        if found.max_prefixlen - found.prefixlen > _SERVICE_BITS:
            least = found.max_prefixlen - _SERVICE_BITS
            text = f"ServiceCidr is too large: {found}, the largest is a /{least}."
            yield Problem(_TARGETS["serviceCidr"], text)


def _overlaps(services: list[Range], pods: list[Range]) -> Iterator[Problem]:
    for pod in pods:
        for service in services:
            if pod.version == service.version and pod.overlaps(service):
                # A guess from the text of ServiceCidrOverlapExistingSubnetsCidr (Azure/azure-cli#20810).
                text = f"The specified pod CIDR {pod} is conflicted with the service CIDR {service}"
                yield Problem(_TARGETS["podCidr"], text, "PodCidrOverlapServiceCidr")


def _dns_problems(text: str, service: Range) -> Iterator[Problem]:
    """The DNS address cannot be one of the first two addresses in the range (Azure/AKS#2579)."""
    try:
        address = ip_address(text)
    except ValueError:
        yield Problem(_DNS, "DNSServiceIP is not a valid IP address", "DnsServiceIpParseError")
        return
    if address not in service:  # Microsoft's page "Troubleshoot the DnsServiceIpOutOfServiceCidr error code"
        message = f"The DNS service IP {address} is out of the range defined by service CIDR {service}."
        yield Problem(_DNS, message, "DnsServiceIpOutOfServiceCidr")
    elif int(address) - int(service.network_address) <= 1:
        message = "DNSServiceIP can not be the first IP address in ServiceCidr"
        yield Problem(_DNS, message, "DnsServiceIpConflicting")
