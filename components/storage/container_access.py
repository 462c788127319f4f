"""Access to one blob container, for the stack that creates it and for others."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from config.schema.storage import ContainerSettings


@dataclass(frozen=True, kw_only=True)
class Sas:
    """The SAS of a container for mounts and uploads, with one validity period."""

    rotation: str
    start: pulumi.Input[str]
    expiry: pulumi.Input[str]
    """The end of the validity period. Both times are in ISO 8601."""
    mount: pulumi.Output[str]
    upload: pulumi.Output[str] | None


@dataclass(frozen=True, kw_only=True)
class ContainerAccess:
    """A container and the access to it. SAS are secret, so they are separate from the other fields."""

    account: str
    account_key: str = ""
    container: str
    hierarchical_namespace: bool
    settings: ContainerSettings
    generation: str
    url: pulumi.Input[str]
    sas: Sas | None
    """The SAS, or None if identities open the container with roles at `scope`."""
    scope: pulumi.Input[str]
