"""Access to one blob container, for the stack that creates it and for others."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from config.schema.storage import ContainerSettings


@dataclass(frozen=True, kw_only=True)
class Sas:
    """All SAS of a container have one validity period."""

    rotation: str
    """The value of the setting that issued them."""
    start: pulumi.Input[str]
    expiry: pulumi.Input[str]
    """The end of the validity period. Both times are in ISO 8601."""
    mount: pulumi.Output[str]
    upload: pulumi.Output[str] | None
    """None unless the settings enable `upload`."""


@dataclass(frozen=True, kw_only=True)
class ContainerAccess:
    """The SAS are secret and separate: everything else can be read without them."""

    account: str
    account_key: str = ""
    """The key of its storage account in the settings (config/schema/storage.py, Account)."""
    container: str
    hierarchical_namespace: bool
    settings: ContainerSettings
    generation: str
    """See Account.generation."""
    url: pulumi.Input[str]
    """The URL of the container, without a SAS."""
    sas: Sas | None
    """None if identities open the container by roles at `scope`."""
    scope: pulumi.Input[str]
    """The container's ARM id."""
