"""The simulated subscription: identities, regions, versions, quotas, features. The data is in `subscription.yaml`."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from config.data import data
from config.data.skus import VmSku, series
from config.data.versions import versions

_SPACE = uuid.UUID("6f6b2c1e-0f0c-4d8e-9f5a-3c5b7f1d2e90")  # any fixed one: makes the simulated GUIDs repeatable


_AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"
"""The application by which users sign in here: Azure's CLI, the same in every tenant."""


class Principal(BaseModel):
    """Somebody whom Entra knows: a user, who has a name, or an application or managed identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    object_id: str
    client_id: str = _AZURE_CLI
    upn: str = ""
    groups: tuple[str, ...] = ()
    """Object ids."""


class Reservation(BaseModel):
    """A capacity reservation group."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    location: str
    identities: frozenset[str]
    """Which may use it, each as <resource group>/<name>."""
    machines: dict[str, int]
    """By VM size."""


class Subscription(BaseModel):
    """What an administrator could look up in the portal."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    subscription_id: str
    tenant_id: str
    client_id: str
    object_id: str
    directory: dict[str, Principal] = {}
    """Who else is in the tenant, beside managed identities."""
    regions: dict[str, list[str]]
    restricted: dict[str, list[str]]
    """Regions, each with families that are there but not open to this subscription."""
    quota: dict[str, int]
    """vCPUs per region, by family."""
    quota_without_gpus: int = 0
    """The same of each family without GPUs that `quota` does not have."""
    reservations: dict[str, Reservation] = {}
    """By <resource group>/<name>."""
    features: dict[str, str]
    providers: dict[str, str]
    """Resource providers, each with its state."""
    rights: list[dict[str, list[str]]]
    """What whoever is signed in may do, role by role."""
    taken: dict[str, frozenset[str]]
    """Names that others hold, by resource type."""

    @model_validator(mode="after")
    def _fill_quota(self) -> Self:
        for each in series():
            self.quota.setdefault(each.family, self.quota_without_gpus)
        return self

    @property
    def deployer(self) -> Principal:
        """Who is signed in."""
        return Principal(object_id=self.object_id, client_id=self.client_id)

    @property
    def kubernetes_patches(self) -> dict[str, str]:
        """The one patch of each minor version that AKS offers here.

        The API server behind a simulated cluster is the simulator's own, whatever the version asked for.
        """
        known = versions().kubernetes
        # AKS numbers patches of long-term support from 100 (Azure/AKS, CHANGELOG.md: 1.30.100).
        return known.newest | {minor: f"{minor}.100" for minor in known.lts_ends if minor not in known.newest}

    def region(self, location: str) -> str | None:
        """The region's name in ARM's spelling ("East US" is eastus); None when there is no such region."""
        name = location.replace(" ", "").lower()
        return name if name in self.regions else None

    def offers(self, sku: VmSku, location: str) -> bool:
        return not sku.gpus or sku.family in self.regions[location]

    def kubernetes(self, version: str) -> str | None:
        """The patch version that AKS installs for `1.35` or `1.35.4`; None when it is not offered."""
        minor = ".".join(version.split(".")[:2])
        patch = self.kubernetes_patches.get(minor)
        return patch if patch and version in (minor, patch) else None


def load(file: Path | None = None) -> Subscription:
    """The subscription of the data file beside this module, or of another one (tests have smaller quotas)."""
    source = file or Path(__file__).with_name("subscription.yaml")
    return Subscription.model_validate(data.parsed(source.read_text()))


def guid(*parts: str) -> str:
    """A GUID that is the same for the same parts: simulated object ids, resource UIDs."""
    return str(uuid.uuid5(_SPACE, "/".join(parts).lower()))
