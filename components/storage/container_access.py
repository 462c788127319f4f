from __future__ import annotations

from dataclasses import dataclass

import pulumi

from config.schema.storage import ContainerSettings


@dataclass(frozen=True, kw_only=True)
class Sas:
    rotation: str
    start: pulumi.Input[str]
    expiry: pulumi.Input[str]
    """ISO 8601"""
    mount: pulumi.Output[str]
    upload: pulumi.Output[str] | None


@dataclass(frozen=True, kw_only=True)
class ContainerAccess:
    """The SAS are secret and separate: everything else can be read without them."""

    account: str
    account_key: str = ""
    container: str
    hierarchical_namespace: bool
    settings: ContainerSettings
    generation: str
    url: pulumi.Input[str]
    sas: Sas | None
    """None if identities open the container by roles at `scope`."""
    scope: pulumi.Input[str]
