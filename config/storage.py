"""Blob storage of a stack: the account, its containers, and the shared access signatures (SAS) that open them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from config.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Model, Text

ContainerName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9]){2,62}$"),
    Field(description="3 to 63 lower-case letters, digits and single hyphens"),
]


class ContainerSettings(Model):
    """One blob container, mounted by workloads through a SAS that can do no more than `permissions`."""

    sas: Literal["service", "user-delegation"] = "service"
    """Signed with the account's key, or with a key of the deployer's Entra login (seven days at most)."""
    permissions: Annotated[
        str, StringConstraints(pattern=r"^r?a?c?w?d?l?$", min_length=1), Field(description="some of racwdl, in order")
    ] = "rl"
    """Of the SAS that mounts use: read, add, create, write, delete, list."""
    days: Annotated[int, Field(ge=1, le=365), PLAIN_DIGITS] = 7
    """How long a SAS lasts, counted from its rotation."""
    size_gib: Annotated[int, Field(ge=1), PLAIN_DIGITS] = 1024
    """Capacity that the volume states; blob storage does not enforce it."""
    profile: Text = "sequential"
    """How blobfuse2 reads it: an entry of config/blobfuse.yaml."""
    upload: bool = False
    """Issue a second SAS (`rcwl`) for jobs that fill the container."""


class StorageSettings(Model):
    """The storage account; without containers there is none."""

    account_name: Annotated[str | None, EMPTY_IS_UNSET] = None
    """Globally unique, 3 to 24 lower-case letters and digits; by default derived from stack and subscription."""
    sku: Literal["Standard_LRS", "Standard_ZRS", "Premium_LRS", "Premium_ZRS"] = "Standard_LRS"
    hierarchical_namespace: bool = False
    """Data Lake Gen2; cannot be changed later."""
    protect: bool = True
    """Refuse to delete or replace account and containers."""
    driver: Literal["addon", "chart"] = "addon"
    """The blob CSI driver as AKS's own add-on, or from its Helm chart; never both."""
    rotation: Text = "1"
    """Any text; changing it issues new SAS for all containers, whose expiry moves with it."""
    containers: dict[ContainerName, ContainerSettings] = {}
