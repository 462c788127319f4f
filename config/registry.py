"""The stack's container registry."""

from __future__ import annotations

from typing import Annotated, Literal

from config.base import EMPTY_IS_UNSET, Model


class RegistrySettings(Model):
    """Azure Container Registry for the images of `docker/`."""

    name: Annotated[str | None, EMPTY_IS_UNSET] = None
    """Globally unique, 5 to 50 letters and digits; by default derived from stack and subscription."""
    sku: Literal["Basic", "Standard", "Premium"] = "Basic"
