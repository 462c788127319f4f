"""The stack's container registry."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from config.base import EMPTY_IS_UNSET, Model
from config.global_names import global_name
from config.names import Names

MAX_REGISTRY_NAME = 50

RegistryName = Annotated[
    str,
    StringConstraints(pattern=rf"^[A-Za-z0-9]{{5,{MAX_REGISTRY_NAME}}}$"),
    Field(description=f"5 to {MAX_REGISTRY_NAME} letters and digits, a name that nobody else in Azure has"),
]


class RegistrySettings(Model):
    """Azure Container Registry for the images of `docker/`."""

    name: Annotated[RegistryName | None, EMPTY_IS_UNSET] = None
    """Globally unique; by default derived from stack and subscription."""
    sku: Literal["Basic", "Standard", "Premium"] = "Basic"

    def full_name(self, names: Names, subscription_id: str) -> str:
        """The registry's name in ARM."""
        return self.name or global_name(names, subscription_id, MAX_REGISTRY_NAME)


def login_server(registry_name: str) -> str:
    """The registry's host, before which images need no scheme; ARM writes it in lower case."""
    return f"{registry_name.lower()}.azurecr.io"
