"""What it takes to use one blob container, as one stack has it and another may be given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    def plain(self) -> dict[str, Any]:
        """All but the SAS, as a stack output."""
        sas = self.sas
        opens = {"rotation": sas.rotation, "start": sas.start, "expiry": sas.expiry} if sas else {"scope": self.scope}
        return {
            "account": self.account,
            **({"accountKey": self.account_key} if self.account_key else {}),
            "container": self.container,
            "hierarchicalNamespace": self.hierarchical_namespace,
            "settings": self.settings.model_dump(by_alias=True),
            "generation": self.generation,
            "url": self.url,
            **opens,
        }

    def secrets(self) -> dict[str, pulumi.Output[str]]:
        """The SAS, as a stack output."""
        if self.sas is None:
            return {}
        return {"sas": self.sas.mount, **({"uploadSas": self.sas.upload} if self.sas.upload is not None else {})}

    @classmethod
    def of(cls, plain: Mapping[str, Any], secrets: pulumi.Output[Any]) -> ContainerAccess:
        """From another stack's outputs."""
        settings = ContainerSettings.model_validate(plain["settings"])
        return cls(
            account=plain["account"],
            account_key=plain.get("accountKey", ""),
            container=plain["container"],
            hierarchical_namespace=plain["hierarchicalNamespace"],
            settings=settings,
            generation=plain["generation"],
            url=plain["url"],
            sas=None if by_identity(plain) else _sas(plain, secrets, upload=settings.upload),
            scope=plain.get("scope", ""),
        )


def by_identity(plain: Mapping[str, Any]) -> bool:
    """Whether identities open a container of another stack's outputs."""
    return "rotation" not in plain


def _sas(plain: Mapping[str, Any], secrets: pulumi.Output[Any], *, upload: bool) -> Sas:
    return Sas(
        rotation=plain["rotation"],
        start=plain["start"],
        expiry=plain["expiry"],
        mount=pulumi.Output.secret(secrets["sas"]),
        upload=pulumi.Output.secret(secrets["uploadSas"]) if upload else None,
    )
