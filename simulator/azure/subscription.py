"""The simulated subscription: identities, regions, versions, quotas, features. Data: `subscription.yaml`."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from config.data import data
from config.data.skus import VmSku, series
from config.data.versions import versions

_SPACE = uuid.UUID("6f6b2c1e-0f0c-4d8e-9f5a-3c5b7f1d2e90")  # constant, so that simulated GUIDs are repeatable


_AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"
"""The application with which users log in: the Azure CLI. It has this id in every tenant."""


class Principal(BaseModel):
    """Entra's principal: a user (with `upn`), an application or a managed identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    object_id: str
    client_id: str = _AZURE_CLI
    upn: str = ""
    groups: tuple[str, ...] = ()
    """The object ids of the principal's groups."""


class Reservation(BaseModel):
    """A capacity reservation group."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    location: str
    identities: frozenset[str]
    """Identities that can use the group (`<resource group>/<name>`)."""
    machines: dict[str, int]


class Subscription(BaseModel):
    """The subscription and its tenant."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    subscription_id: str
    tenant_id: str
    client_id: str
    object_id: str
    directory: dict[str, Principal] = {}
    """The tenant's other principals by name, without managed identities."""
    regions: dict[str, list[str]]
    restricted: dict[str, list[str]]
    """VM families by region that the region offers, but not to this subscription."""
    quota: dict[str, int]
    quota_without_gpus: int = 0
    """The quota of families not in `quota`."""
    reservations: dict[str, Reservation] = {}
    """Capacity reservation groups by `<resource group>/<name>`."""
    features: dict[str, str]
    providers: dict[str, str]
    rights: list[dict[str, list[str]]]
    """The deployer's permissions, one entry per role."""
    taken: dict[str, frozenset[str]]
    """Names that other subscriptions use, by resource type."""

    @model_validator(mode="after")
    def _fill_quota(self) -> Self:
        for each in series():
            self.quota.setdefault(each.family, self.quota_without_gpus)
        return self

    @property
    def deployer(self) -> Principal:
        return Principal(object_id=self.object_id, client_id=self.client_id)

    @property
    def kubernetes_patches(self) -> dict[str, str]:
        """AKS's patch version of each minor version.

        The API server of a simulated cluster always has the version of the simulator's binary.
        """
        known = versions().kubernetes
        # AKS numbers long-term support patches from 100 (Azure/AKS, CHANGELOG.md: 1.30.100).
        return known.newest | {minor: f"{minor}.100" for minor in known.lts_ends if minor not in known.newest}

    def region(self, location: str) -> str | None:
        """Returns the region's normalized name (eastus for "East US"), or None if unknown."""
        name = location.replace(" ", "").lower()
        return name if name in self.regions else None

    def offers(self, sku: VmSku, location: str) -> bool:
        return not sku.gpus or sku.family in self.regions[location]

    def kubernetes(self, version: str) -> str | None:
        """Returns AKS's patch version for `1.35` or `1.35.4`, or None if AKS does not offer the version."""
        minor = ".".join(version.split(".")[:2])
        patch = self.kubernetes_patches.get(minor)
        return patch if patch and version in (minor, patch) else None


def load(file: Path | None = None) -> Subscription:
    """Loads the subscription from `file`, by default `subscription.yaml`."""
    source = file or Path(__file__).with_name("subscription.yaml")
    return Subscription.model_validate(data.parsed(source.read_text()))


def guid(*parts: str) -> str:
    return str(uuid.uuid5(_SPACE, "/".join(parts).lower()))
