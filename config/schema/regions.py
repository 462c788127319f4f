"""Azure's regions, from `regions.yaml`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from config.data import data
from config.data.near import hint, near, plainly
from config.schema.base import unfit

_LONGEST = 100
"""Characters of what may be meant for a region."""


@functools.cache
def regions() -> tuple[str, ...]:
    """Their names in ARM, those of the public cloud first."""
    found = data.read("regions.yaml")
    return (*found["public"], *found["us_government"], *found["china"])


def region_name(location: str) -> str:
    """A region's name, for which ARM also takes and gives the one that it displays: East US."""
    return location.replace(" ", "").lower()


@dataclass(frozen=True)
class Cloud:
    """One of Azure's clouds, by the URLs of two of its services."""

    management: str
    """Azure Resource Manager."""
    portal: str


def cloud(region: str) -> Cloud:
    """The cloud that a region is of."""
    found = data.read("regions.yaml")
    return next(Cloud(**urls) for name, urls in found["clouds"].items() if region in found[name])


def in_public_cloud(region: str) -> bool:
    """Whether a region is of Azure's public cloud."""
    return region in data.read("regions.yaml")["public"]


REGION = "azure-native:location"
"""The provider's key of the region, which stands for `location`."""


def _known(name: str) -> str:
    """Refuses a region that there is not, before ARM does so in the middle of an update."""
    if name in regions():
        return name
    plain = re.sub(r"[^a-z0-9]", "", name.lower()[:_LONGEST])
    likely = _of_same_letters(plain) or near(plain, regions())
    raise unfit(
        f"is {name!r}, not the name of an Azure region{hint(likely)}",
        likely[0] if likely and (_letters(likely[0]) == _letters(plain) or plainly(plain, likely[:1])) else None,
        allowed="a region's name as `az account list-locations -o table` prints it; one that Azure has opened after "
        f"{data.read('regions.yaml')['as_of']} goes into config/data/regions.yaml first",
    )


def _of_same_letters(name: str) -> list[str]:
    """Regions with the same words in another order, as in `us-east-1`; those with its number too come first."""
    found = [region for region in regions() if _letters(region) == _letters(name)]
    return sorted(found, key=lambda region: sorted(region) != sorted(name))


def _letters(name: str) -> list[str]:
    return sorted(re.sub("[0-9]", "", name))


Region = Annotated[
    str, AfterValidator(_known), Field(json_schema_extra=lambda schema: schema.update(enum=list(regions())))
]
"""Name of an Azure region, of any of its clouds."""
