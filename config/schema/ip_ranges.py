"""Ranges of IPv4 addresses from which a cluster's API server may be reached."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field

from config.schema.base import Text, may_be, unfit

MOST_RANGES = 200
"""AKS's page on authorized IP ranges."""
_WIDE = 8
"""Prefix of ranges that are wholly public or wholly not; shorter ones hold public addresses among others."""
_ALLOWED = "a range of public IPv4 addresses by its first one, as in 137.117.106.88/29; or one address"


def _reachable(text: str) -> str:
    """Refuses ranges that AKS does not take, and those by which nobody gets in from the internet, or everybody does.

    0.0.0.0/32 too, by which AKS lets in the cluster's own nodes alone: `pulumi up` could not go on.
    """
    try:
        network = IPv4Network(text, strict=False)
    except ValueError:
        raise unfit(f"is {text!r}, not an IPv4 range", None, allowed=_ALLOWED) from None
    if network.prefixlen == 0:
        raise unfit(f"is {text}, all addresses, as without a range", None, allowed=_ALLOWED)
    if network.prefixlen >= _WIDE and not network.network_address.is_global:
        what = f"is {text}, from where nobody comes over the internet, the deployer neither"
        raise unfit(what, None, allowed=_ALLOWED)
    if text.partition("/")[0] != str(network.network_address):
        raise unfit(f"is {text}, which begins in the middle of a range", str(network), allowed=_ALLOWED)
    return str(network)


IpRange = Annotated[Text, AfterValidator(_reachable), may_be(_ALLOWED)]
IpRanges = Annotated[tuple[IpRange, ...], Field(max_length=MOST_RANGES)]
