"""What it takes to use one blob container, as one stack has it and another may be given it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from config.schema.storage import ContainerSettings


@dataclass(frozen=True, kw_only=True)
class Sas:
    """The SAS that open a container, all of one window."""

    rotation: str
    """The setting that issued them."""
    start: pulumi.Input[str]
    expiry: pulumi.Input[str]
    """Their window, as ISO 8601 has times."""
    mount: pulumi.Output[str]
    upload: pulumi.Output[str] | None
    """Where the settings ask for `upload`."""


@dataclass(frozen=True, kw_only=True)
class ContainerAccess:
    """A container and what opens it. The SAS are secret and kept apart: all else can be read without them."""

    account: str
    account_key: str = ""
    """Which of the stack's it is (config/schema/storage.py, Account)."""
    container: str
    hierarchical_namespace: bool
    settings: ContainerSettings
    generation: str
    """See Account.generation."""
    url: pulumi.Input[str]
    """Of the container, without a SAS."""
    sas: Sas | None
    """None where identities open it, by roles at `scope`."""
    scope: pulumi.Input[str]
    """Its id in ARM."""
