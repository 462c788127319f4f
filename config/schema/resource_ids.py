"""Ids of resources in Azure that a stack does not make, and only names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from config.schema.base import may_be

_IDENTITY, _RESERVATIONS = (
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    "Microsoft.Compute/capacityReservationGroups",
)


def _pattern(kind: str) -> str:
    """ARM compares ids without case."""
    name = "[A-Za-z0-9_.()-]+"
    return rf"^(?i:/subscriptions/[0-9a-f-]{{36}}/resourceGroups/{name}/providers/{kind}/{name})$"


def _example(kind: str) -> str:
    return f"/subscriptions/<id>/resourceGroups/<group>/providers/{kind}/<name>"


UserAssignedIdentityId = Annotated[
    str, StringConstraints(pattern=_pattern(_IDENTITY)), may_be(f"its resource id, as in {_example(_IDENTITY)}")
]
CapacityReservationGroupId = Annotated[
    str, StringConstraints(pattern=_pattern(_RESERVATIONS)), may_be(f"its resource id, as in {_example(_RESERVATIONS)}")
]


@dataclass(frozen=True)
class ResourceName:
    """A resource by the names in its id."""

    group: str
    name: str

    @classmethod
    def of(cls, resource_id: str) -> ResourceName:
        """Of the id of a resource in a resource group, of a checked form."""
        parts = resource_id.split("/")
        return cls(parts[4], parts[8])
