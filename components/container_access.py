"""What it takes to use one blob container, as one stack has it and another may be given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from config.schema.storage import ContainerSettings


@dataclass(frozen=True, kw_only=True)
class ContainerAccess:
    """A container and the SAS that open it. The SAS are secret and kept apart: all else can be read without them."""

    account: str
    container: str
    hierarchical_namespace: bool
    settings: ContainerSettings
    generation: str
    """See StorageSettings.generation."""
    url: pulumi.Input[str]
    """Of the container, without a SAS."""
    rotation: str
    """The setting that issued the SAS."""
    start: pulumi.Input[str]
    expiry: pulumi.Input[str]
    """The SAS' window, as ISO 8601 has times."""
    sas: pulumi.Output[str]
    upload_sas: pulumi.Output[str] | None
    """Where the settings ask for `upload`."""

    def plain(self) -> dict[str, Any]:
        """All but the SAS, as a stack output."""
        return {
            "account": self.account,
            "container": self.container,
            "hierarchicalNamespace": self.hierarchical_namespace,
            "settings": self.settings.model_dump(by_alias=True),
            "generation": self.generation,
            "url": self.url,
            "rotation": self.rotation,
            "start": self.start,
            "expiry": self.expiry,
        }

    def secrets(self) -> dict[str, pulumi.Output[str]]:
        """The SAS, as a stack output."""
        return {"sas": self.sas, **({"uploadSas": self.upload_sas} if self.upload_sas is not None else {})}

    @classmethod
    def of(cls, plain: Mapping[str, Any], secrets: pulumi.Output[Any]) -> ContainerAccess:
        """From another stack's outputs."""
        settings = ContainerSettings.model_validate(plain["settings"])
        return cls(
            account=plain["account"],
            container=plain["container"],
            hierarchical_namespace=plain["hierarchicalNamespace"],
            settings=settings,
            generation=plain["generation"],
            url=plain["url"],
            rotation=plain["rotation"],
            start=plain["start"],
            expiry=plain["expiry"],
            sas=pulumi.Output.secret(secrets["sas"]),
            upload_sas=pulumi.Output.secret(secrets["uploadSas"]) if settings.upload else None,
        )
