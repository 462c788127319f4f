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


@functools.cache
def regions() -> tuple[str, ...]:
    found = data.read("regions.yaml")
    return (*found["public"], *found["us_government"], *found["china"])


def region_name(location: str) -> str:
    """Returns a region's ARM name. ARM also accepts and returns display names (East US)."""
    return location.replace(" ", "").lower()


@dataclass(frozen=True)
class Cloud:
    """An Azure cloud: the URLs of two of its services."""

    management: str
    portal: str


def cloud(region: str) -> Cloud:
    found = data.read("regions.yaml")
    return next(Cloud(**urls) for name, urls in found["clouds"].items() if region in found[name])


def in_public_cloud(region: str) -> bool:
    return region in data.read("regions.yaml")["public"]


REGION = "azure-native:location"


def _known(name: str) -> str:
    """Rejects unknown regions, which ARM would reject only in the middle of an update."""
    if name in regions():
        return name
    plain = re.sub(r"[^a-z0-9]", "", name.lower()[:_LONGEST])
    likely = _of_same_letters(plain) or near(plain, regions())
    raise unfit(
        f"is {name!r}, not the name of an Azure region{hint(likely)}",
        likely[0] if likely and (_letters(likely[0]) == _letters(plain) or plainly(plain, likely[:1])) else None,
        allowed="a region that `az account list-locations -o table` lists; add regions that Azure opened after "
        f"{data.read('regions.yaml')['as_of']} to config/data/regions.yaml first",
    )


def _of_same_letters(name: str) -> list[str]:
    """Returns the regions with the same letters in another order (`us-east-1`), first those with the same number."""
    found = [region for region in regions() if _letters(region) == _letters(name)]
    return sorted(found, key=lambda region: sorted(region) != sorted(name))


def _letters(name: str) -> list[str]:
    return sorted(re.sub("[0-9]", "", name))


Region = Annotated[
    str, AfterValidator(_known), Field(json_schema_extra=lambda schema: schema.update(enum=list(regions())))
]
