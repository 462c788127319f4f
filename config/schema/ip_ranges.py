"""IPv4 ranges: clients of the API server, and address spaces of networks."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field

from config.schema.base import Text, may_be, unfit

MOST_RANGES = 200
"""The maximum number of ranges (AKS's page on authorized IP ranges)."""
_WIDEST_PUBLIC = 8
"""The largest block that IANA allocates (IPv4 Address Space Registry); a shorter prefix is a mistake."""
_LIKELY_TYPO = 16
"""If host bits are set and the prefix is shorter than this, the prefix is more likely mistyped than the address."""
_EXAMPLES = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
"""The documentation ranges of RFC 5737. Published settings have them in place of real ranges, and AKS accepts them."""
_ALLOWED = "a range of public IPv4 addresses that starts at its first address, as in 137.117.106.88/29; or one address"


def _reachable(text: str) -> str:
    """Rejects 0.0.0.0/32, too: AKS would admit only the cluster's nodes, and `pulumi up` could not continue."""
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        raise unfit(f"is {text!r}, not an IPv4 range", None, allowed=_ALLOWED) from None
    if network.prefixlen == 0:
        raise unfit(f"is {text}, which allows all addresses, the same as no range", None, allowed=_ALLOWED)
    if network.prefixlen < _WIDEST_PUBLIC:
        what = f"is {text}, which has {network.num_addresses:,} addresses, more than any organization has"
        raise unfit(what, None, allowed=f"{_ALLOWED}; with a prefix of /{_WIDEST_PUBLIC} or longer")
    public = network.network_address.is_global or any(network.subnet_of(each) for each in _EXAMPLES)
    if not public:
        what = f"is {text}, which is not public: all clients, including the deployer, would be locked out"
        raise unfit(what, None, allowed=_ALLOWED)
    if text.partition("/")[0] != str(network.network_address):
        what = f"is {text}, which does not start at its first address"
        if network.prefixlen < _LIKELY_TYPO:
            raise unfit(f"{what} and has {network.num_addresses:,} addresses", None, allowed=_ALLOWED)
        raise unfit(what, str(network), allowed=_ALLOWED)
    return str(network)


IpRange = Annotated[Text, AfterValidator(_reachable), may_be(_ALLOWED)]
IpRanges = Annotated[tuple[IpRange, ...], Field(max_length=MOST_RANGES)]


RESERVED = tuple(map(IPv4Network, ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")))
"""Ranges that AKS does not allow for nodes, pods and services (AKS's page on CNI networking, "AKS CNI networking
prerequisites").
"""
PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
"""RFC 1918 and RFC 6598: the only ranges that AKS supports for pods (CNI Overlay overview). Azure accepts others."""
_WIDEST, _NARROWEST = 8, 24
_NETWORK = (
    f"a private range of /{_WIDEST} to /{_NARROWEST} that starts at its first address, as in 10.0.0.0/16, outside "
    + ", ".join(map(str, RESERVED))
)


def _of_a_network(text: str) -> str:
    """Rejects public addresses, too: nodes could not reach the same addresses on the internet."""
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        raise unfit(f"is {text!r}, not an IPv4 range", None, allowed=_NETWORK) from None
    if not _WIDEST <= network.prefixlen <= _NARROWEST:
        raise unfit(f"is {text}, not between /{_WIDEST} and /{_NARROWEST}", None, allowed=_NETWORK)
    if clash := next((each for each in RESERVED if each.overlaps(network)), None):
        raise unfit(f"is {text}, which overlaps {clash}, a range that AKS reserves", None, allowed=_NETWORK)
    if not any(network.subnet_of(each) for each in PRIVATE):
        raise unfit(f"is {text}, which contains public addresses", None, allowed=_NETWORK)
    if text.partition("/")[0] != str(network.network_address):
        raise unfit(f"is {text}, which does not start at its first address", str(network), allowed=_NETWORK)
    return str(network)


NetworkRange = Annotated[Text, AfterValidator(_of_a_network), may_be(_NETWORK)]


def elsewhere(prefix: int, taken: Iterable[IPv4Network]) -> IPv4Network | None:
    occupied = (*RESERVED, *taken)
    for private in PRIVATE:
        for found in private.subnets(new_prefix=prefix) if prefix >= private.prefixlen else ():
            if not any(found.overlaps(other) for other in occupied):
                return found
    return None
