"""Ids of existing Azure and Entra objects that a stack uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from config.schema.base import may_be

_IDENTITY, _RESERVATIONS, _NETWORK, _ZONE = (
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    "Microsoft.Compute/capacityReservationGroups",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Network/privateDnsZones",
)
_SUBNET = "/subnets/"


def _pattern(kind: str, below: str = "") -> str:
    """Returns a case-insensitive pattern, because ARM ignores the case of ids."""
    name = "[A-Za-z0-9_.()-]+"
    child = f"{below}{name}" if below else ""
    return rf"^(?i:/subscriptions/[0-9a-f-]{{36}}/resourceGroups/{name}/providers/{kind}/{name}{child})$"


def _example(kind: str) -> str:
    return f"/subscriptions/<id>/resourceGroups/<group>/providers/{kind}/<name>"


ObjectId = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
    may_be("an object id, as in 0a0b0c0d-0000-0000-0000-000000000000"),
]
UserAssignedIdentityId = Annotated[
    str, StringConstraints(pattern=_pattern(_IDENTITY)), may_be(f"the resource id, as in {_example(_IDENTITY)}")
]
CapacityReservationGroupId = Annotated[
    str, StringConstraints(pattern=_pattern(_RESERVATIONS)), may_be(f"the resource id, as in {_example(_RESERVATIONS)}")
]
VirtualNetworkId = Annotated[
    str, StringConstraints(pattern=_pattern(_NETWORK)), may_be(f"the resource id, as in {_example(_NETWORK)}")
]
SubnetId = Annotated[
    str,
    StringConstraints(pattern=_pattern(_NETWORK, _SUBNET)),
    may_be(f"the resource id, as in {_example(_NETWORK)}{_SUBNET}<name>"),
]
PrivateZoneId = Annotated[
    str, StringConstraints(pattern=_pattern(_ZONE)), may_be(f"the resource id, as in {_example(_ZONE)}")
]


@dataclass(frozen=True)
class ResourceName:
    """The name of a resource and of its resource group."""

    group: str
    name: str

    @classmethod
    def of(cls, resource_id: str) -> ResourceName:
        parts = resource_id.split("/")
        return cls(parts[4], parts[8])


def group_id(resource_id: str) -> str:
    _, _, subscription, _, group, *_ = resource_id.split("/")
    return f"/subscriptions/{subscription}/resourceGroups/{group}"


def network_of(subnet_id: str) -> str:
    return subnet_id.rpartition("/")[0].rpartition("/")[0]


def same_id(one: str, other: str) -> bool:
    return one.lower() == other.lower()
